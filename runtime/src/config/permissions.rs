//! Rules and the mode, according to settings files. Each file adds to the rules of the one before it.

use super::table::{Layer, Layered, Row, settings};
use super::{ConfigError, Origin, Setting, file, words};
use crate::policy::Rule;
use crate::tool_facts::built_in_tools;
use posse_protocol::{Mode, Permissions};
use std::path::Path;

settings! {
    /// Rules and the mode, and where each came from.
    pub struct PermissionSettings, "permissions.", from struct FilePermissions {
        /// The permission mode for calls that no rule covers: `"plan"`, `"dont-ask"`, `"ask"`,
        /// `"accept-edits"`, or these as Claude Code writes them. `"bypass"` is an error in a file.
        mode | "defaultMode" | "default_mode": Setting<Mode> = Mode::default(),
            Later, User, check is_for_files;
        /// Rules for calls that run without asking.
        allow: Vec<Setting<Vec<String>>>, All, User, check allowing;
        /// Rules for calls that Posse asks a person about.
        ask: Vec<Setting<Vec<String>>>, All, Anyone, check refusing;
        /// Rules for calls that Posse refuses.
        deny: Vec<Setting<Vec<String>>>, All, Anyone, check refusing;
    }
}

fn is_for_files(mode: &Mode, row: &Row) -> Result<(), String> {
    let why = " cannot be `bypass` in a file: only the command line can set that mode (posse run --mode \
               bypass)";
    if *mode == Mode::Bypass { Err(row.wrong(why)) } else { Ok(()) }
}

fn allowing(rules: &[String], row: &Row) -> Result<(), String> {
    let wrong = rules.iter().find_map(|rule| Rule::parse(rule).err());
    wrong.map_or(Ok(()), |error| Err(row.wrong(format!(": {error}"))))
}

fn refusing(rules: &[String], row: &Row) -> Result<(), String> {
    let tools = built_in_tools();
    let wrong = rules.iter().find_map(|rule| Rule::parse_refusing(rule, &tools).err());
    wrong.map_or(Ok(()), |error| Err(row.wrong(format!(": {error}"))))
}

impl PermissionSettings {
    /// All rules together.
    pub fn permissions(&self) -> Permissions {
        let all = |lists: &[Setting<Vec<String>>]| {
            lists.iter().flat_map(|list| list.value.iter().cloned()).collect()
        };
        Permissions {
            allow: all(&self.allow),
            ask: all(&self.ask),
            deny: all(&self.deny),
            ..Permissions::default()
        }
    }
}

/// The `deny` and `ask` rules of the project's settings at `path`.
pub(crate) fn project_rules(path: &Path) -> Result<Permissions, ConfigError> {
    let Some((file, text)) = file::read(path)? else { return Ok(Permissions::default()) };
    let rules = file.permissions.unwrap_or_default();
    let only = FilePermissions { mode: None, allow: None, ..rules };
    let mut settings = PermissionSettings::default();
    let origin = Origin::Project(path.to_owned());
    let mut layer = Layer::new(&origin, path, &text);
    let done = settings.overlay(only, &mut layer);
    done.map_err(|reason| words::unusable(path, &text, reason))?;
    Ok(settings.permissions())
}
