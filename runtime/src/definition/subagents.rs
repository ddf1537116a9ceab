//! What runs may start and how, as it is written in settings and in definitions of agents.

use crate::limits::LONGEST_MINUTES;
use posse_protocol::{Announce, Cleanup, NameRules, SubagentRules};
use serde::Deserialize;

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
    pub(crate) default_cleanup: Option<Cleanup>,
    #[serde(alias = "defaultAnnounce", alias = "announce")]
    default_announce: Option<Announce>,
    #[serde(alias = "runTimeoutSeconds")]
    run_timeout_seconds: Option<u64>,
    #[serde(alias = "quietSeconds")]
    pub(crate) quiet_seconds: Option<u64>,
    #[serde(alias = "maxConcurrent")]
    pub(crate) max_concurrent: Option<u32>,
    #[serde(alias = "archiveAfterMinutes")]
    pub(crate) archive_after_minutes: Option<u64>,
    #[serde(alias = "allowNestedSubagents", alias = "allow_nested_subagents")]
    allow_nested: Option<bool>,
    tools: FileTools,
    skills: FileSkills,
}

impl FileSubagents {
    /// Takes away what can do more than narrow, and says which keys those were.
    pub(crate) fn hold_back(&mut self) -> impl Iterator<Item = &'static str> {
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
