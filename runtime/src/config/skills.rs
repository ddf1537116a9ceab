//! Which skills runs have, as settings files say it. Each file can only take away from what the
//! one before it leaves.

use super::{Origin, Setting};
use posse_protocol::SkillRules;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Which skills runs have, and where each value came from.
#[derive(Clone, Debug)]
pub struct SkillSettings {
    /// Whether a run begins with the skills of its parent, or without one with all there are.
    pub inherit: Setting<bool>,
    /// Folders of further skills, absolute.
    pub extra_dirs: Setting<Vec<PathBuf>>,
    /// Names of the skills there may be, file by file; a skill must be in each.
    pub allow: Vec<Setting<Vec<String>>>,
    /// Names of those that nobody has, file by file.
    pub deny: Vec<Setting<Vec<String>>>,
}

impl SkillSettings {
    /// All that there are.
    pub(super) fn all() -> Self {
        SkillSettings {
            inherit: Setting::default(true),
            extra_dirs: Setting::default(Vec::new()),
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }

    /// Takes over what the file in the folder `beside` says.
    pub(super) fn narrow(&mut self, file: FileSkills, beside: &Path, origin: &Origin) {
        self.inherit.set(file.inherit, origin);
        let extra = file.extra_dirs.map(|all| all.iter().map(|it| beside.join(it)).collect());
        self.extra_dirs.set(extra, origin);
        let said = |names: Option<Vec<String>>| {
            names.map(|value| Setting { value, origin: origin.clone() })
        };
        self.allow.extend(said(file.allow));
        self.deny.extend(said(file.deny));
    }

    /// The lists as rules, each of which holds.
    pub fn rules(&self) -> Vec<SkillRules> {
        let allow = self
            .allow
            .iter()
            .map(|names| SkillRules { allow: Some(names.value.clone()), ..SkillRules::default() });
        let deny = self
            .deny
            .iter()
            .map(|names| SkillRules { deny: names.value.clone(), ..SkillRules::default() });
        allow.chain(deny).collect()
    }
}

/// `[skills]` as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileSkills {
    pub(super) inherit: Option<bool>,
    pub(super) extra_dirs: Option<Vec<PathBuf>>,
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
}
