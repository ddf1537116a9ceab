//! What a run may start and how, according to the settings, its agent and the call. All
//! restrictions apply; for defaults, the first layer that sets one wins.

use crate::child::deepest;
use crate::error::Error;
use crate::runtime::Runtime;
use crate::tool_facts::ToolFacts;
use crate::tool_facts::filter;
use crate::tool_facts::suggested;
use posse_protocol::{
    AgentName, AgentSpec, Announce, Cleanup, NameRules, RunSpec, RunStarted, SkillRules,
    SubagentRules, ToolRules,
};

/// The rules for children of a run, the nearest layer first.
pub(crate) struct Rules<'a>(Vec<&'a SubagentRules>);

impl Runtime {
    /// Why a run that began as `started` has no agents to call.
    pub(crate) fn why_alone(&self, started: &RunStarted) -> String {
        let enabled = check_enabled(&self.rules(&started.agent), &started.agent.name);
        enabled.err().map_or_else(|| deepest(started), |why| why.to_string())
    }

    /// The rules for children of a run of `agent`.
    pub(crate) fn rules<'a>(&'a self, agent: &'a AgentSpec) -> Rules<'a> {
        let own = std::iter::once(&agent.children.subagents);
        Rules(own.chain(&self.config().delegation.subagents).collect())
    }
}

impl<'a> Rules<'a> {
    /// True when a layer forbids all children.
    pub(crate) fn forbid_all(&self) -> bool {
        self.0.iter().any(|rules| rules.enabled == Some(false))
    }

    /// True when a call must name the agent.
    pub(crate) fn require_agent(&self) -> bool {
        self.0.iter().any(|rules| rules.require_agent == Some(true))
    }

    /// True when every layer allows `agent`.
    pub(crate) fn allow(&self, agent: &str) -> bool {
        let mut lists = self.0.iter().filter_map(|rules| rules.allowed_agents.as_ref());
        lists.all(|list| list.iter().any(|it| it == "*" || it.eq_ignore_ascii_case(agent)))
    }

    pub(crate) fn model(&self) -> Option<&'a String> {
        self.first(|rules| rules.default_model.as_ref())
    }

    pub(crate) fn cleanup(&self) -> Cleanup {
        self.first(|rules| rules.default_cleanup).unwrap_or_default()
    }

    pub(crate) fn announce(&self) -> Announce {
        self.first(|rules| rules.default_announce).unwrap_or_default()
    }

    /// How long a child may work, in milliseconds.
    pub(crate) fn timeout_ms(&self) -> Option<u64> {
        let seconds = self.first(|rules| rules.run_timeout_seconds);
        seconds.filter(|seconds| *seconds > 0).map(|seconds| seconds.saturating_mul(1_000))
    }

    /// How long after its end a child is archived at the latest, in milliseconds. The shortest time
    /// of all layers wins; 0 means never.
    pub(crate) fn archive_after_ms(&self) -> Option<u64> {
        let minutes = self.0.iter().filter_map(|rules| rules.archive_after_minutes);
        let least = minutes.filter(|minutes| *minutes > 0).min();
        least.map(|minutes| minutes.saturating_mul(60_000))
    }

    /// The lists that the tools of a child must be in.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &'a NameRules> {
        self.0.iter().map(|rules| &rules.tools).filter(|rules| !rules.is_empty())
    }

    /// The lists that the skills of a child must be in.
    pub(crate) fn skills(&self) -> impl Iterator<Item = SkillRules> {
        let skills = self.0.iter().map(|rules| &rules.skills).filter(|rules| !rules.is_empty());
        skills.map(|rules| SkillRules {
            allow: rules.allow.clone(),
            deny: rules.deny.clone(),
            ..SkillRules::default()
        })
    }

    fn first<T>(&self, find: impl Fn(&'a SubagentRules) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(|rules| find(rules))
    }
}

/// Keeps the `tools` that `rules`, the rules of the parent, and `spec` allow.
pub(crate) fn narrow(
    tools: &mut Vec<String>,
    all: &[ToolFacts],
    rules: Option<&Rules<'_>>,
    spec: &RunSpec,
) -> Result<(), Error> {
    for list in rules.into_iter().flat_map(Rules::tools) {
        keep(tools, all, list.allow.as_deref(), &list.deny);
    }
    let ToolRules { inherit, allow, deny } = &spec.rights.tools;
    if *inherit == Some(false) && allow.is_none() {
        return Err(Error::InvalidInput(
            "`tools.inherit` is false and `tools.allow` names none, so that it would have no tool: \
             name those it may call"
                .to_owned(),
        ));
    }
    for list in [allow.as_deref().unwrap_or_default(), deny] {
        if let Some(name) = filter::unknown(list, all) {
            let suggestion = suggested(name, all);
            return Err(Error::InvalidInput(format!("there is no tool `{name}`; {suggestion}")));
        }
    }
    keep(tools, all, allow.as_deref(), deny);
    Ok(())
}

fn keep(tools: &mut Vec<String>, all: &[ToolFacts], allow: Option<&[String]>, deny: &[String]) {
    let left = |name: &String| {
        all.iter().any(|tool| tool.name == *name && filter::leave(allow, deny, tool))
    };
    tools.retain(left);
}

/// Returns an error if runs of `agent` may not start others.
pub(crate) fn check_enabled(rules: &Rules<'_>, agent: &AgentName) -> Result<(), Error> {
    match rules.forbid_all() {
        true => Err(Error::InvalidInput(format!(
            "`{agent}` may start no others: `subagents.enabled` is false for it"
        ))),
        false => Ok(()),
    }
}
