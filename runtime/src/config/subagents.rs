//! What runs may start and how, as settings files and definitions of agents say it.

use super::{Origin, Setting};
use crate::definition::subagents::FileSubagents;
use crate::tool_facts::check_tools;
use posse_protocol::{Announce, Cleanup, NameRules, SubagentRules};
use std::time::Duration;

/// What runs may start and how, and where each value came from. Each file can only take away from
/// what the one before it leaves.
#[derive(Clone, Debug)]
pub struct SubagentSettings {
    /// Whether runs may start others at all.
    pub enabled: Setting<bool>,
    /// Whether a call must say which agent.
    pub require_agent: Setting<bool>,
    /// Agents that may be started, file by file; an agent must be in each.
    pub allowed_agents: Vec<Setting<Vec<String>>>,
    /// The model of children whose agent names none; without it, their parent's.
    pub default_model: Setting<Option<String>>,
    /// What becomes of the logs of children.
    pub default_cleanup: Setting<Cleanup>,
    /// How the ends of children are told that nobody waits for.
    pub default_announce: Setting<Announce>,
    /// How long children may work, in seconds; 0 is without limit.
    pub run_timeout_seconds: Setting<u64>,
    /// How long no result must have come before those there are, are told together, in seconds.
    pub quiet_seconds: Setting<u64>,
    /// Tools of children, file by file; each narrows.
    pub tools: Vec<Setting<NameRules>>,
    /// Skills of children, file by file; each narrows.
    pub skills: Vec<Setting<NameRules>>,
}

impl SubagentSettings {
    /// What holds when nobody says anything.
    pub(super) fn usual() -> Self {
        SubagentSettings {
            enabled: Setting::default(true),
            require_agent: Setting::default(false),
            allowed_agents: Vec::new(),
            default_model: Setting::default(None),
            default_cleanup: Setting::default(Cleanup::Keep),
            default_announce: Setting::default(Announce::Followup),
            run_timeout_seconds: Setting::default(0),
            quiet_seconds: Setting::default(QUIET.as_secs()),
            tools: Vec::new(),
            skills: Vec::new(),
        }
    }

    /// Takes over what a file says, and tells what of it has no effect.
    pub(super) fn narrow(
        &mut self,
        file: FileSubagents,
        origin: &Origin,
    ) -> Result<Vec<String>, String> {
        if let Some(why) = file.unfit() {
            return Err(why);
        }
        let quiet = file.quiet_seconds;
        let rules = SubagentRules::from(file);
        let odd = check_tools(&rules.tools, &[])?;
        // What is switched off stays off; what must be said must be said.
        self.enabled.set(rules.enabled.filter(|on| !on || self.enabled.value), origin);
        let must = rules.require_agent.filter(|must| *must || !self.require_agent.value);
        self.require_agent.set(must, origin);
        self.default_model.set_some(rules.default_model, origin);
        self.default_cleanup.set(rules.default_cleanup, origin);
        self.default_announce.set(rules.default_announce, origin);
        self.run_timeout_seconds.set(rules.run_timeout_seconds, origin);
        self.quiet_seconds.set(quiet, origin);
        let allowed = rules.allowed_agents;
        let from = |value| Setting { value, origin: origin.clone() };
        self.allowed_agents.extend(allowed.map(|value| Setting { value, origin: origin.clone() }));
        self.tools.extend(Some(rules.tools).filter(|it| !it.is_empty()).map(from));
        self.skills.extend(Some(rules.skills).filter(|it| !it.is_empty()).map(from));
        Ok(odd)
    }

    /// All of it as rules, each of which holds.
    pub fn rules(&self) -> Vec<SubagentRules> {
        let first = SubagentRules {
            enabled: Some(self.enabled.value),
            require_agent: Some(self.require_agent.value),
            default_model: self.default_model.value.clone(),
            default_cleanup: Some(self.default_cleanup.value),
            default_announce: Some(self.default_announce.value),
            run_timeout_seconds: Some(self.run_timeout_seconds.value),
            ..SubagentRules::default()
        };
        let none = SubagentRules::default;
        let agents = self
            .allowed_agents
            .iter()
            .map(|it| SubagentRules { allowed_agents: Some(it.value.clone()), ..none() });
        let tools = self.tools.iter().map(|it| SubagentRules { tools: it.value.clone(), ..none() });
        let skills =
            self.skills.iter().map(|it| SubagentRules { skills: it.value.clone(), ..none() });
        std::iter::once(first).chain(agents).chain(tools).chain(skills).collect()
    }

    /// How long no result must have come before those there are, are told together.
    pub fn quiet(&self) -> Duration {
        Duration::from_secs(self.quiet_seconds.value)
    }
}

/// How long no result must have come before those there are, are told together.
pub(crate) const QUIET: Duration = Duration::from_secs(10);
