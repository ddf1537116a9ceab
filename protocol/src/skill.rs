//! Skills of a run, and the rules about them.

use crate::Extra;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A skill that a run has, as it was when the run started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillOffer {
    /// Its name.
    pub name: String,
    /// Its purpose, and when to use it.
    pub description: String,
    /// Its folder, canonical and absolute. The run can read it and never write to it.
    pub path: String,
    /// The folder that the skill comes from was not trusted when the run started. If the
    /// skill has scripts, it is only listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Rules about which skills a run has, given at its start. The settings use the same fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SkillRules {
    /// Whether it inherits the skills of its parent, or, for a root, all that there are. `None`
    /// leaves it to the settings.
    pub inherit: Option<bool>,
    /// Folders with further skills. Relative paths start at the workspace.
    #[serde(alias = "extra_dirs")]
    pub extra_dirs: Vec<PathBuf>,
    /// The names of the skills that it may have; `*` in a name matches any text. `None` allows all.
    pub allow: Option<Vec<String>>,
    /// The names of the skills that it may not have. They take precedence.
    pub deny: Vec<String>,
}
