//! `posse agents`: lists agents, where each comes from, and their problems. One file per verb.

mod check;
mod list;
mod new;
mod show;

use super::{Common, run};
use crate::args::AgentsVerb;
use crate::clean::clean_line;
use crate::exit::{Code, Failure};
use crate::print;
use posse::AgentSpec;
use posse::agents::Problem;

pub async fn run(common: Common, verb: AgentsVerb) -> Result<Code, Failure> {
    match verb {
        AgentsVerb::List(options) => list::run(&common, &options),
        AgentsVerb::Show { name, grant: true, options } => {
            show::grant(&common, &name, &options).await
        }
        AgentsVerb::Show { name, options, .. } => show::run(&common, &name, &options),
        AgentsVerb::Check { paths, options } => check::run(&common, &paths, &options),
        AgentsVerb::New { name, user, cwd } => {
            let place = if user { new::AgentFolder::User } else { new::AgentFolder::Project(cwd) };
            new::run(&common, &name, &place)
        }
        AgentsVerb::Run { name, mut options } => {
            options.agent.agent = Some(name);
            run::run(common, *options).await
        }
    }
}

/// The tools in an agent's definition, in one line.
fn tools(agent: &AgentSpec) -> String {
    let all = match &agent.rights.tools {
        Some(tools) => tools.join(", "),
        None => "all".to_owned(),
    };
    let denied = match agent.rights.disallowed_tools.as_slice() {
        [] => String::new(),
        denied => format!(" but {}", denied.join(", ")),
    };
    clean_line(&format!("{all}{denied}"), 400)
}

/// The models in an agent's definition, in one line.
fn model(agent: &AgentSpec) -> String {
    let first = agent.models.model.as_deref().unwrap_or("inherit");
    let all = std::iter::once(first).chain(agent.models.fallbacks.iter().map(String::as_str));
    clean_line(&all.collect::<Vec<_>>().join(", "), 200)
}

/// Prints a hint if an agent is not used because its folder is not trusted.
fn tell_of_trust<'p>(common: &Common, mut problems: impl Iterator<Item = &'p Problem>) {
    let is_held_back = |problem: &Problem| {
        ["not trusted", "since you trusted"].iter().any(|why| problem.reason.contains(why))
    };
    if !common.global.quiet && problems.any(is_held_back) {
        print::note("`posse trust` shows what trusting this folder would allow");
    }
}
