//! What a project may not set, trusted or not: what reaches beyond it, where keys are sent, and who
//! is believed. What its agents may do is the catalog's affair.

use super::file::File;
use super::{ConfigError, Sources};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Refuses what a project's file may not set, whether it is trusted or not.
pub(super) fn check(
    file: &File,
    text: &str,
    path: &Path,
    sources: &Sources,
) -> Result<(), ConfigError> {
    match file.reserved() {
        Some(key) => Err(ConfigError::NotForProjects {
            path: path.to_owned(),
            line: line_of(text, key),
            key,
            user: sources.user.as_ref().map_or_else(String::new, |user| user.display().to_string()),
        }),
        None => Ok(()),
    }
}

/// The line of `text` at which `key` stands, of which the parts are separated by dots.
fn line_of(text: &str, key: &str) -> u32 {
    let Ok(table) = DeTable::parse(text) else { return 1 };
    let mut at = 0;
    let mut table = Some(table.get_ref());
    for part in key.split('.') {
        // Some keys have a second spelling, with humps.
        let is_meant =
            |name: &str| name.replace('_', "").eq_ignore_ascii_case(&part.replace('_', ""));
        let found = table.and_then(|table| table.iter().find(|(name, _)| is_meant(name.get_ref())));
        let Some((name, value)) = found else { break };
        at = name.span().start;
        table = match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        };
    }
    let before = text.get(..at).unwrap_or_default();
    before.matches('\n').count() as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_at_its_line() {
        let text = "model = \"x\"\n\n[skills]\nallow = []\nextra_dirs = []\n[vendors.a]\nb = 1\n";
        assert_eq!(line_of(text, "model"), 1);
        assert_eq!(line_of(text, "skills.extra_dirs"), 5);
        assert_eq!(line_of(text, "vendors"), 6);
        assert_eq!(line_of("a = 1\narchiveAfterMinutes = 3", "archive_after_minutes"), 2);
    }
}
