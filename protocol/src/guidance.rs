//! Files with instructions for every agent: `AGENTS.md`, `CLAUDE.md`.

use crate::Extra;
use serde::{Deserialize, Serialize};

/// A guidance file, as it was when the run started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuidanceFile {
    /// Its path, canonical and absolute.
    pub path: String,
    /// SHA-256 of the whole file, in hexadecimal digits.
    pub hash: String,
    /// Its text, as far as the agent gets it.
    pub text: String,
    /// It belongs to the user, not to a project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// What the agent does not get of it, and why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}
