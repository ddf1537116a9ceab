//! Reads a settings file.

use super::{ConfigError, File, words};
use crate::files;
use posse_tools::confine::is_placeholder;
use std::io::Read;
use std::path::Path;

/// The largest settings file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The text of the settings at `path`, if there are any.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { path: path.to_owned(), reason };
    let (file, data) = match files::open(path) {
        // Also if a folder on the way is missing, or is a file.
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
        // While commands run in this folder, a placeholder keeps them from creating this file.
        Ok((_, data)) if is_placeholder(&data) => return Ok(None),
        Ok(opened) => opened,
    };
    if !data.is_file() {
        return Err(unreadable("it is not a file".to_owned()));
    }
    let mut text = String::new();
    match file.take(MAX_BYTES + 1).read_to_string(&mut text) {
        Err(error) => Err(unreadable(error.to_string())),
        Ok(length) if length as u64 > MAX_BYTES => {
            Err(unreadable(format!("it is larger than {MAX_BYTES} bytes")))
        }
        Ok(_) => Ok(Some(text)),
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// The file at `path` and its text, if there is one.
pub(super) fn read(path: &Path) -> Result<Option<(File, String)>, ConfigError> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    match toml::from_str(&text) {
        Ok(file) => Ok(Some((file, text))),
        Err(error) => Err(words::unreadable(path, &text, &error)),
    }
}
