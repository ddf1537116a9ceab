//! Writes a rule that a person has permanently allowed into the settings.

use super::ConfigError;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table};

/// Adds `rule` to `permissions.allow` of the settings in `file`, and creates the file if it is
/// missing. The rest of the file stays as written.
///
/// # Errors
/// When the file cannot be read, parsed or written. The file is then unchanged.
pub fn allow_always(file: &Path, rule: &str) -> Result<(), ConfigError> {
    let unwritable = |reason: String| ConfigError::Unwritable { path: file.to_owned(), reason };
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unwritable(error.to_string())),
    };
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| unwritable(error.to_string()))?;
    let permissions = document.entry("permissions").or_insert(Item::Table(Table::new()));
    let permissions = permissions
        .as_table_like_mut()
        .ok_or_else(|| unwritable("`permissions` is not a table".to_owned()))?;
    let allow = permissions.entry("allow").or_insert(Item::Value(Array::new().into()));
    let allow = allow
        .as_array_mut()
        .ok_or_else(|| unwritable("`permissions.allow` is not a list".to_owned()))?;
    if allow.iter().any(|known| known.as_str() == Some(rule)) {
        return Ok(());
    }
    allow.push(rule);
    replace(file, &document.to_string()).map_err(|error| unwritable(error.to_string()))
}

/// Replaces the content of `file` with `text` atomically. Only the owner can read a new file.
pub(super) fn replace(file: &Path, text: &str) -> io::Result<()> {
    // If the path is a link, the link stays and its target is replaced.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().ok_or_else(|| io::Error::other("it has no folder"))?;
    fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    if let Ok(before) = fs::metadata(&file) {
        new.as_file().set_permissions(before.permissions())?;
    }
    new.persist(&file).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_added_once_and_nothing_else_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("posse/config.toml");
        allow_always(&file, "Bash(git diff:*)").unwrap();
        allow_always(&file, "Bash(git diff:*)").unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "[permissions]\nallow = [\"Bash(git diff:*)\"]\n"
        );
        let written =
            "# mine\nmodel = 'x/y' # why\n\n[permissions]\nallow = [\n  'Read', # all\n]\n";
        fs::write(&file, written).unwrap();
        allow_always(&file, "Bash(ls:*)").unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# mine\nmodel = 'x/y' # why\n\n[permissions]\n"), "{text}");
        assert!(text.contains("'Read', \"Bash(ls:*)\", # all\n]"), "{text}");
    }

    #[test]
    fn settings_that_cannot_be_understood_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        for wrong in ["permissions = 3\n", "[permissions]\nallow = 'x'\n", "= broken"] {
            fs::write(&file, wrong).unwrap();
            let error = allow_always(&file, "Bash(ls:*)").unwrap_err();
            assert!(error.to_string().contains("config.toml"), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), wrong);
        }
    }
}
