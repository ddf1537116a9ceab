//! What no project may set: settings that affect more than the project, where API keys are sent,
//! and which folders are trusted. The catalog decides what the project's agents may do.

use super::table::Layered;
use super::words::place_of;
use super::{Config, ConfigError, File, Sources};
use std::path::Path;

/// Refuses keys that a project's file may not set, whether it is trusted or not.
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
