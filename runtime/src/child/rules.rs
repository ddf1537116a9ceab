//! What a run may start and how: what the settings, its agent and the call say, one after the
//! other. Each layer can only take away; where none says anything, the first that does counts.

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

/// What holds for whatever is started on behalf of a run, the nearest layer first.
pub(crate) struct Rules<'a>(Vec<&'a SubagentRules>);

impl Runtime {
    /// Why a run that began as `started`, and has nobody to hand work to, has nobody.
    pub(crate) fn why_alone(&self, started: &RunStarted) -> String {
        let enabled = check_enabled(&self.rules(&started.agent), &started.agent.name);
        enabled.err().map_or_else(|| deepest(started), |why| why.to_string())
    }

    /// What holds for children of a run of `agent`.
    pub(crate) fn rules<'a>(&'a self, agent: &'a AgentSpec) -> Rules<'a> {
        let own = std::iter::once(&agent.children.subagents);
        Rules(own.chain(&self.config().delegation.subagents).collect())
    }
}

impl<'a> Rules<'a> {
    /// True when nothing may be started.
    pub(crate) fn forbid_all(&self) -> bool {
        self.0.iter().any(|rules| rules.enabled == Some(false))
    }

    /// True when a call must say which agent.
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

    /// How long after its end a child is archived at the latest, in milliseconds. Never is the
    /// longest there is, and so no rule.
    pub(crate) fn archive_after_ms(&self) -> Option<u64> {
        let minutes = self.0.iter().filter_map(|rules| rules.archive_after_minutes);
        let least = minutes.filter(|minutes| *minutes > 0).min();
        least.map(|minutes| minutes.saturating_mul(60_000))
    }

    /// The lists of tools that a child has to be in.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &'a NameRules> {
        self.0.iter().map(|rules| &rules.tools).filter(|rules| !rules.is_empty())
    }

    /// The lists of skills that a child's have to be in.
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

/// Leaves of `tools` what whoever starts a run allows: `above`'s rules, and `spec`.
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

/// Refuses to start anything on behalf of a run of `agent` if that is switched off.
pub(crate) fn check_enabled(rules: &Rules<'_>, agent: &AgentName) -> Result<(), Error> {
    match rules.forbid_all() {
        true => Err(Error::InvalidInput(format!(
            "`{agent}` may start no others: `subagents.enabled` is false for it"
        ))),
        false => Ok(()),
    }
}
