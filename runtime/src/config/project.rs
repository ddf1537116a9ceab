//! What a project may not set: nobody has said that it is trusted. What its agents may do is the
//! catalog's affair: they only look.

use super::file::File;
use super::{ConfigError, Sources};
use std::path::Path;

/// Refuses what a project's file may not set.
pub(super) fn check(file: &File, path: &Path, sources: &Sources) -> Result<(), ConfigError> {
    match file.reserved() {
        Some(key) => Err(ConfigError::NotForProjects {
            path: path.to_owned(),
            key,
            user: sources.user.as_ref().map_or_else(String::new, |user| user.display().to_string()),
        }),
        None => Ok(()),
    }
}
