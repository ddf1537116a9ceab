//! What runs may start and how, as settings files and definitions of agents say it.

use super::lifecycle::LONGEST_MINUTES;
use super::{Origin, Setting};
use crate::delegation::rules::check_tools;
use posse_protocol::{Announce, Cleanup, NameRules, SubagentRules};
use serde::Deserialize;
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

/// `[subagents]` as it is written, in settings and in definitions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FileSubagents {
    enabled: Option<bool>,
    #[serde(alias = "requireAgentId", alias = "require_agent_id")]
    require_agent: Option<bool>,
    #[serde(alias = "allowedAgents")]
    allowed_agents: Option<Vec<String>>,
    #[serde(alias = "defaultModel")]
    default_model: Option<String>,
    #[serde(alias = "defaultCleanup")]
    pub(super) default_cleanup: Option<Cleanup>,
    #[serde(alias = "defaultAnnounce", alias = "announce")]
    default_announce: Option<Announce>,
    #[serde(alias = "runTimeoutSeconds")]
    run_timeout_seconds: Option<u64>,
    #[serde(alias = "quietSeconds")]
    pub(crate) quiet_seconds: Option<u64>,
    #[serde(alias = "maxConcurrent")]
    pub(super) max_concurrent: Option<u32>,
    #[serde(alias = "archiveAfterMinutes")]
    pub(super) archive_after_minutes: Option<u64>,
    #[serde(alias = "allowNestedSubagents", alias = "allow_nested_subagents")]
    allow_nested: Option<bool>,
    tools: FileTools,
    skills: FileSkills,
}

impl FileSubagents {
    /// Takes away what can do more than narrow, and says which keys those were.
    pub(super) fn hold_back(&mut self) -> impl Iterator<Item = &'static str> {
        let held_back = [
            ("subagents.default_model", self.default_model.take().is_some()),
            ("subagents.default_announce", self.default_announce.take().is_some()),
            ("subagents.run_timeout_seconds", self.run_timeout_seconds.take().is_some()),
            ("subagents.quiet_seconds", self.quiet_seconds.take().is_some()),
        ];
        held_back.into_iter().filter(|(_, was_set)| *was_set).map(|(key, _)| key)
    }

    /// How many levels of runs it lets stand below a run, if it says whether children may have
    /// children. Either of two places may say it; that they may not is believed first.
    pub(crate) fn depth(&self) -> Option<u32> {
        let said = [self.allow_nested, self.tools.allow_nested];
        said.into_iter().flatten().min().map(|nested| if nested { NESTED } else { 1 })
    }

    /// What is asked for that there is no notion of here.
    pub(crate) fn unfit(&self) -> Option<String> {
        if self.tools.inherit_tools == Some(false) {
            let why = "`subagents.tools.inherit_tools` is false: a child never has other tools than \
                       its parent may hand on; leave it out, and name its tools in `allow`, or in \
                       its agent's `tools`";
            return Some(why.to_owned());
        }
        let dirs = self.skills.extra_skill_dirs.as_deref().unwrap_or_default();
        (!dirs.is_empty()).then(|| {
            "`subagents.skills.extra_skill_dirs` names folders for children alone, which there are \
             not: put them into `extra_dirs` of `[skills]`, and say here in `allow` and `deny` which \
             of all skills children have"
                .to_owned()
        })
    }

    /// What is wrong with it as part of an agent's definition, if something is.
    pub(crate) fn unfit_for_an_agent(&self) -> Option<String> {
        if let Some(why) = self.unfit() {
            return Some(why);
        }
        if self.quiet_seconds.is_some() {
            let why = "`subagents.quiet_seconds` belongs into the settings, not to one agent";
            return Some(why.to_owned());
        }
        if self.max_concurrent == Some(0) {
            let why = "`subagents.max_concurrent` is 0: it must be at least 1, or what it caps \
                       would never start";
            return Some(why.to_owned());
        }
        let too_long = |minutes: &u64| *minutes > LONGEST_MINUTES;
        self.archive_after_minutes.filter(too_long).map(|minutes| {
            format!(
                "`subagents.archive_after_minutes` is {minutes}: it can be up to \
                 {LONGEST_MINUTES}, and 0 is never"
            )
        })
    }
}

/// What it means that children may have children.
const NESTED: u32 = 2;

/// `tools`, with the words of other systems for what is so anyway, or stands elsewhere here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileTools {
    allow: Option<Vec<String>>,
    deny: Vec<String>,
    #[serde(alias = "inheritTools")]
    inherit_tools: Option<bool>,
    #[serde(alias = "inheritSkills")]
    inherit_skills: Option<bool>,
    #[serde(alias = "allowNestedSubagents", alias = "allow_nested_subagents")]
    allow_nested: Option<bool>,
}

/// `skills`, with the words of other systems.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileSkills {
    #[serde(alias = "allowSkills", alias = "allow_skills")]
    allow: Option<Vec<String>>,
    #[serde(alias = "denySkills", alias = "deny_skills")]
    deny: Vec<String>,
    inherit: Option<bool>,
    #[serde(alias = "extraSkillDirs")]
    extra_skill_dirs: Option<Vec<String>>,
}

impl FileSkills {
    /// The skills that children have at most. Without those of their parent there are none: nobody
    /// has other ones.
    fn rules(self, inherits: bool) -> NameRules {
        let allow = if inherits { self.allow } else { Some(Vec::new()) };
        NameRules { allow, deny: self.deny, ..NameRules::default() }
    }
}

impl From<FileSubagents> for SubagentRules {
    fn from(file: FileSubagents) -> Self {
        let inherits = [file.tools.inherit_skills, file.skills.inherit];
        let FileTools { allow, deny, .. } = file.tools;
        SubagentRules {
            enabled: file.enabled,
            require_agent: file.require_agent,
            allowed_agents: file.allowed_agents,
            default_model: file.default_model,
            default_cleanup: file.default_cleanup,
            default_announce: file.default_announce,
            run_timeout_seconds: file.run_timeout_seconds,
            max_concurrent: file.max_concurrent,
            archive_after_minutes: file.archive_after_minutes,
            tools: NameRules { allow, deny, ..NameRules::default() },
            skills: file.skills.rules(!inherits.contains(&Some(false))),
            ..SubagentRules::default()
        }
    }
}
