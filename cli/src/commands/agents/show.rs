//! `posse agents show`: an agent as Posse uses it.

use super::super::{Common, folder};
use super::list::{EntryView, standing};
use super::model;
use crate::args::CatalogOptions;
use crate::clean::{clean, clean_line};
use crate::exit::{Code, Failure};
use crate::format;
use crate::print;
use posse::agents::{AgentDefinition, Entry, Problem, built_in_tools, granted_tools};
use posse::config::Config;
use posse::protocol::{Context, DelegationStrategy, Effect, Limit, Limits, Network};
use posse::{AgentCatalog, AgentName, AgentSpec, LiveCatalog, RunSpec};
use serde::Serialize;

/// Prints the grant that a run of the agent would have here, as its log would store it.
pub async fn grant(common: &Common, name: &str, options: &CatalogOptions) -> Result<Code, Failure> {
    let folder = folder(options.cwd.as_ref())?;
    let config = common.config(&folder)?;
    let agents = common.agents(&folder, &options.agents)?;
    let agent = name.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let runtime = common.runtime(&config, agents).await?;
    let grant = runtime.grant_of(&RunSpec::new(agent, "", &folder)).await;
    runtime.shutdown().await;
    let grant = grant?;
    if common.global.json {
        print::json_pretty(&grant)?;
        return Ok(Code::Done);
    }
    let list = |names: &[String]| match names.is_empty() {
        true => "none".to_owned(),
        false => clean_line(&names.join(", "), 600),
    };
    let network = match &grant.network {
        Network::Off => "off".to_owned(),
        Network::Open => "open".to_owned(),
        Network::Hosts(hosts) => list(hosts),
    };
    let lines = [
        ("tools", list(&grant.tools)),
        ("hands on", list(&grant.hand_on)),
        ("only", grant.scopes.iter().map(|rules| list(rules)).collect::<Vec<_>>().join("; and ")),
        ("deny", list(&grant.permissions.deny)),
        ("ask", list(&grant.permissions.ask)),
        ("allow", list(&grant.permissions.allow)),
        ("mode", grant.mode.to_string()),
        ("commands", format!("{}, runs it starts: {}", grant.profile(), grant.reach)),
        ("network", network),
        ("folder", clean_line(&grant.workspace, 400)),
    ];
    for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        print::line(format!("{name:11} {value}"))?;
    }
    Ok(Code::Done)
}

pub fn run(common: &Common, name: &str, options: &CatalogOptions) -> Result<Code, Failure> {
    let folder = folder(options.cwd.as_ref())?;
    let config = common.config(&folder)?;
    let catalog = LiveCatalog::load(common.agent_sources(&folder, &options.agents)).current();
    let name: AgentName = name.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let agent = catalog.find(&name)?;
    let entry = catalog.entry(&name).ok_or_else(|| Failure::internal("it is gone"))?;
    let shown = Shown::of(&catalog, entry, agent, &config);
    if common.global.json {
        print::json_pretty(&shown)?;
        return Ok(Code::Done);
    }
    for (name, value) in shown.facts(agent, &config) {
        print::line(format!("{name:11} {value}"))?;
    }
    print::line(format!("\n{}", clean(&agent.instructions)))?;
    for problem in &shown.problems {
        print::note(clean_line(&problem.to_string(), 600));
    }
    super::tell_of_trust(common, shown.problems.iter().copied());
    Ok(Code::Done)
}

/// An agent in the output of `--json`.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    entry: EntryView<'a>,
    /// The definition as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<&'a AgentDefinition>,
    /// The tools it has when a person starts it.
    granted_tools: Vec<String>,
    /// The agents that it may then call.
    may_call: Vec<String>,
    /// The unused definitions with the same name.
    shadows: Vec<String>,
    problems: Vec<&'a Problem>,
    #[serde(skip)]
    standing: String,
}

impl<'a> Shown<'a> {
    fn of(catalog: &'a AgentCatalog, entry: &'a Entry, agent: &AgentSpec, config: &Config) -> Self {
        let depth = agent.children.max_depth.unwrap_or(config.max_depth.value);
        let delegates = depth > 0 && config.strategy.value != DelegationStrategy::Manual;
        let mut facts = built_in_tools();
        facts.retain(|tool| delegates || tool.effect != Effect::Delegate);
        let granted_tools = granted_tools(&facts, &agent.rights);
        let is_delegation = |name: &String| {
            facts.iter().any(|tool| tool.name == *name && tool.effect == Effect::Delegate)
        };
        let may_call = |other: &&AgentSpec| {
            let named =
                |name: &String| name == "*" || name.eq_ignore_ascii_case(other.name.as_str());
            agent.children.agents.as_ref().is_none_or(|names| names.iter().any(named))
        };
        let others = catalog.iter().filter(may_call).map(|other| other.name.to_string());
        let same = |other: &&Entry| {
            other.shadowed_by.is_some()
                && other.name.as_str().eq_ignore_ascii_case(entry.name.as_str())
        };
        let about = |problem: &&Problem| {
            problem.agent.as_deref() == Some(entry.name.as_str()) && problem.path == entry.path
        };
        Shown {
            entry: EntryView::of(entry),
            definition: entry.definition.as_deref(),
            may_call: if granted_tools.iter().any(is_delegation) {
                others.collect()
            } else {
                Vec::new()
            },
            granted_tools,
            standing: standing(entry),
            shadows: catalog
                .entries()
                .iter()
                .filter(same)
                .map(|it| it.source.to_string())
                .collect(),
            problems: catalog.problems().iter().filter(about).collect(),
        }
    }

    fn facts(&self, agent: &AgentSpec, config: &Config) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("agent", agent.name.to_string()),
            ("from", format!("{} {}", self.entry.place(), self.standing).trim_end().to_owned()),
            ("about", clean_line(&agent.description, 1_000)),
            ("model", format!("{}{}", model(agent), meaning(agent, config))),
            ("tools", clean_line(&self.granted_tools.join(", "), 400)),
        ];
        let mut add = |name, value: Option<String>| {
            facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value)));
        };
        add("may call", Some(clean_line(&self.may_call.join(", "), 400)));
        add("effort", agent.models.effort.map(|effort| format!("{effort:?}").to_lowercase()));
        add("limits", Some(limits(&agent.limits)));
        add("begins with", context(agent.start.context));
        add("colour", Some(clean_line(&agent.color, 40)));
        add("shadows", Some(clean_line(&self.shadows.join(", "), 400)));
        facts
    }
}

/// The model that the name of a role stands for.
fn meaning(agent: &AgentSpec, config: &Config) -> String {
    let Some(setting) = agent.models.model.as_deref().and_then(|model| config.role(model)) else {
        return String::new();
    };
    match &setting.value {
        Some(model) => format!(" ({}, {})", clean_line(model, 80), setting.origin),
        None => " (its caller's: the settings name none)".to_owned(),
    }
}

fn context(context: Context) -> Option<String> {
    match context {
        Context::Fresh => None,
        Context::Fork => Some("all of its caller's conversation".to_owned()),
        Context::ForkTurns(turns) => {
            Some(format!("the last {} of its caller's", format::count(turns.into(), "turn")))
        }
    }
}

fn limits(limits: &Limits) -> String {
    let all = [
        limits.turns.map(|turns| format::count(turns.into(), "turn")),
        limits.tool_calls.map(|calls| format::count(calls.into(), "tool call")),
        limits.input_tokens.map(|tokens| format!("{} tokens in", format::tokens(tokens))),
        limits.output_tokens.map(|tokens| format!("{} tokens out", format::tokens(tokens))),
        limits.cost.map(|cost| cost.to_string()),
        limits.wall_ms.map(format::duration),
        limits.written_bytes.map(|bytes| format!("{} written", Limit::WrittenBytes.amount(bytes))),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
