//! What runs may start and how, as written in settings and in definitions of agents.

use crate::limits::LONGEST_MINUTES;
use posse_protocol::{Announce, Cleanup, NameRules, SubagentRules};
use serde::Deserialize;

/// `[subagents]` as written, in settings and in definitions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FileSubagents {
    pub(crate) enabled: Option<bool>,
    #[serde(alias = "requireAgentId", alias = "require_agent_id")]
    pub(crate) require_agent: Option<bool>,
    #[serde(alias = "allowedAgents")]
    pub(crate) allowed_agents: Option<Vec<String>>,
    #[serde(alias = "defaultModel")]
    pub(crate) default_model: Option<String>,
    #[serde(alias = "defaultCleanup")]
    pub(crate) default_cleanup: Option<Cleanup>,
    #[serde(alias = "defaultAnnounce", alias = "announce")]
    pub(crate) default_announce: Option<Announce>,
    #[serde(alias = "runTimeoutSeconds")]
    pub(crate) run_timeout_seconds: Option<u64>,
    #[serde(alias = "quietSeconds")]
    pub(crate) quiet_seconds: Option<u64>,
    #[serde(alias = "maxConcurrent")]
    pub(crate) max_concurrent: Option<u32>,
    #[serde(alias = "archiveAfterMinutes")]
    pub(crate) archive_after_minutes: Option<u64>,
    #[serde(alias = "allowNestedSubagents", alias = "allow_nested_subagents")]
    pub(crate) allow_nested: Option<bool>,
    pub(crate) tools: Option<FileTools>,
    pub(crate) skills: Option<FileSkills>,
}

impl FileSubagents {
    /// Merges values that can be in two places: whether children have the skills of their parent,
    /// and whether children may have children.
    pub(crate) fn settle(&mut self) {
        self.allow_nested = self.nested();
        if self.tools.as_ref().is_some_and(|tools| tools.inherit_skills == Some(false)) {
            self.skills.get_or_insert_default().inherit = Some(false);
        }
    }

    /// How many levels of runs may be below a run, if the file says whether children may have
    /// children. It can say so in two places; `false` wins.
    pub(crate) fn depth(&self) -> Option<u32> {
        self.nested().map(|nested| if nested { NESTED } else { 1 })
    }

    fn nested(&self) -> Option<bool> {
        let tools = self.tools.as_ref().and_then(|tools| tools.allow_nested);
        [self.allow_nested, tools].into_iter().flatten().min()
    }

    /// Why it cannot be used, if it asks for something that Posse does not support.
    pub(crate) fn unfit(&self) -> Option<String> {
        if self.tools.as_ref().and_then(|tools| tools.inherit_tools) == Some(false) {
            let why = "`subagents.tools.inherit_tools` is false: a child never has other tools than \
                       its parent may hand on; leave it out, and name its tools in `allow`, or in \
                       its agent's `tools`";
            return Some(why.to_owned());
        }
        let dirs = self.skills.as_ref().and_then(|skills| skills.extra_skill_dirs.as_deref());
        dirs.is_some_and(|dirs| !dirs.is_empty()).then(|| {
            "`subagents.skills.extra_skill_dirs` names folders for children alone, which there are \
             not: put them into `extra_dirs` of `[skills]`, and say here in `allow` and `deny` which \
             of all skills children have"
                .to_owned()
        })
    }

    /// Why it cannot be used in an agent's definition, if it cannot.
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

/// The depth if children may have children.
const NESTED: u32 = 2;

/// `tools`, with keys of other systems that Posse always fulfils or has elsewhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FileTools {
    allow: Option<Vec<String>>,
    deny: Vec<String>,
    #[serde(alias = "inheritTools")]
    inherit_tools: Option<bool>,
    #[serde(alias = "inheritSkills")]
    inherit_skills: Option<bool>,
    #[serde(alias = "allowNestedSubagents", alias = "allow_nested_subagents")]
    allow_nested: Option<bool>,
}

/// `skills`, with keys of other systems.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FileSkills {
    #[serde(alias = "allowSkills", alias = "allow_skills")]
    allow: Option<Vec<String>>,
    #[serde(alias = "denySkills", alias = "deny_skills")]
    deny: Vec<String>,
    inherit: Option<bool>,
    #[serde(alias = "extraSkillDirs")]
    extra_skill_dirs: Option<Vec<String>>,
}

impl FileTools {
    /// The tools that children have at most.
    pub(crate) fn rules(self) -> NameRules {
        NameRules { allow: self.allow, deny: self.deny, ..NameRules::default() }
    }
}

impl FileSkills {
    /// The skills that children have at most. Children have only skills of their parent, so without
    /// `inherit` they have none.
    pub(crate) fn rules(self) -> NameRules {
        let allow = if self.inherit == Some(false) { Some(Vec::new()) } else { self.allow };
        NameRules { allow, deny: self.deny, ..NameRules::default() }
    }
}

impl From<FileSubagents> for SubagentRules {
    fn from(mut file: FileSubagents) -> Self {
        file.settle();
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
            tools: file.tools.map(FileTools::rules).unwrap_or_default(),
            skills: file.skills.map(FileSkills::rules).unwrap_or_default(),
            ..SubagentRules::default()
        }
    }
}
