//! What runs may start and how, according to settings files.

use super::Setting;
use super::table::{Layer, settings};
use super::value::{Elsewhere, Value};
use crate::definition::subagents::{FileSkills, FileSubagents, FileTools};
use crate::tool_facts::check_tools;
use posse_protocol::{Announce, Cleanup, NameRules, SubagentRules};
use serde_json::{Value as Json, json};
use std::ops::Deref;
use std::time::Duration;

settings! {
    /// What runs may start and how, and where each value came from. Each file can only take away from
    /// what the one before it leaves. Definitions of agents have most of these keys, too.
    pub struct SubagentSettings, "subagents.", from FileSubagents {
        /// Whether agents can start other agents.
        enabled: Setting<bool> = true, Lower, Anyone;
        /// Whether `spawn_subagent` must name the agent.
        require_agent | "requireAgentId" | "require_agent_id": Setting<bool> = false, Raise, Anyone;
        /// The model of children whose agent names none.
        default_model | "defaultModel": Setting<Option<String>> = None => "their parent's",
            Later, Trusted;
        /// `"keep"`, or `"delete"`: Posse removes the transcript of a read-only child after it has
        /// announced the result.
        default_cleanup | "defaultCleanup": Setting<Cleanup> = Cleanup::Keep, Later, User;
        /// How Posse announces results of background children.
        default_announce | "defaultAnnounce" | "announce": Setting<Announce> = Announce::Followup,
            Later, Trusted;
        /// How long children may work, in seconds; 0 is without limit.
        run_timeout_seconds | "runTimeoutSeconds": Setting<u64> = 0, Later, Trusted;
        /// The debounce interval for `collect` announcements, in seconds.
        quiet_seconds | "quietSeconds": Setting<u64> = QUIET.as_secs(), Later, Trusted;
        /// The agents that agents may start; `"*"` means all. An agent must be in the lists of all files.
        allowed_agents | "allowedAgents": Vec<Setting<Vec<String>>> => "all", All, Anyone;
        /// A table of `allow` and `deny`: the tools that children may have at most.
        tools: Vec<Setting<NameRules>> => "all", All, Anyone;
        /// A table of `allow` and `deny`: the skills that children may have at most.
        skills: Vec<Setting<ChildSkills>> => "all", All, Anyone;
        /// Sets `per_parent` of `[lanes]`: how many children of one run work at the same time. An agent
        /// can only set less.
        max_concurrent | "maxConcurrent": Elsewhere<u32> => "no cap", Elsewhere, User;
        /// Sets the key of that name outside of sections. In an agent's `subagents`: how many minutes
        /// after its end Posse archives a child. The shorter of the two holds, and 0 (never) is the
        /// longest.
        archive_after_minutes | "archiveAfterMinutes": Elsewhere<u64> => "7 days", Elsewhere, User;
        /// Sets `max_depth`, unless the file has that key: `true` sets it to 2, `false` to 1.
        /// `allowNestedSubagents`, here or in `tools`, means the same.
        allow_nested | "allowNestedSubagents" | "allow_nested_subagents": Elsewhere<bool>,
            Elsewhere, Anyone;
    }
}

/// The tools of children.
impl Value for NameRules {
    type Written = FileTools;

    fn read(written: FileTools, layer: &mut Layer<'_>) -> Result<Self, String> {
        let rules = written.rules();
        layer.warnings.extend(check_tools(&rules, &[])?);
        Ok(rules)
    }

    fn shown(&self) -> Option<Json> {
        (!self.is_empty()).then(|| json!(self))
    }
}

/// The skills of children.
#[derive(Clone, Debug)]
pub struct ChildSkills(NameRules);

impl Deref for ChildSkills {
    type Target = NameRules;

    fn deref(&self) -> &NameRules {
        &self.0
    }
}

impl Value for ChildSkills {
    type Written = FileSkills;

    fn read(written: FileSkills, _: &mut Layer<'_>) -> Result<Self, String> {
        Ok(ChildSkills(written.rules()))
    }

    fn shown(&self) -> Option<Json> {
        self.0.shown()
    }
}

impl SubagentSettings {
    /// The settings as rules. All of them apply.
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
            self.skills.iter().map(|it| SubagentRules { skills: it.value.0.clone(), ..none() });
        std::iter::once(first).chain(agents).chain(tools).chain(skills).collect()
    }

    /// The debounce interval for `collect` announcements.
    pub fn quiet(&self) -> Duration {
        Duration::from_secs(self.quiet_seconds.value)
    }
}

/// The default debounce interval for `collect` announcements.
pub(crate) const QUIET: Duration = Duration::from_secs(10);
