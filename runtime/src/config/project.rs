//! What a project may not set, trusted or not: what reaches beyond it, where keys are sent, and who
//! is believed. What its agents may do is the catalog's affair.

use super::table::Layered;
use super::words::place_of;
use super::{Config, ConfigError, File, Sources};
use std::path::Path;

/// Refuses what a project's file may not set, whether it is trusted or not.
pub(super) fn check(
    file: &File,
    text: &str,
    path: &Path,
    sources: &Sources,
) -> Result<(), ConfigError> {
    match Config::reserved(file) {
        Some(key) => Err(ConfigError::NotForProjects {
            path: path.to_owned(),
            line: place_of(text, key).map_or(1, |(line, _)| line),
            key,
            user: sources.user.as_ref().map_or_else(String::new, |user| user.display().to_string()),
        }),
        None => Ok(()),
    }
}
