//! Skills: which of them a run has, and who has a say in that.

use crate::Extra;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A skill that a run has, as it was when the run started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillOffer {
    /// What it is called by.
    pub name: String,
    /// What it is for and when to use it.
    pub description: String,
    /// Its folder, canonical and absolute. What is in it can be read, never written.
    pub path: String,
    /// Nobody trusted who brought it along when the run started: if it has scripts, it is only
    /// listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which skills a run is to have, as whoever starts it says. The settings say it in the same words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SkillRules {
    /// Whether it begins with those of its parent, or without one with all that there are; `None`
    /// is as the settings say.
    pub inherit: Option<bool>,
    /// Folders of further skills; one that is not absolute is in the folder that is worked in.
    #[serde(alias = "extra_dirs")]
    pub extra_dirs: Vec<PathBuf>,
    /// Names of those that it may have, in which `*` is any text; `None` is all.
    pub allow: Option<Vec<String>>,
    /// Names of those that it may not have, whatever else is said.
    pub deny: Vec<String>,
}
