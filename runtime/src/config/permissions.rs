//! Rules and the mode, as settings files say them. Each file adds to the rules of the one before it.

use super::{ConfigError, Origin, Setting, file, words};
use crate::policy::Rule;
use crate::tool_facts::built_in_tools;
use posse_protocol::{Mode, Permissions};
use serde::Deserialize;
use std::path::Path;

/// Rules and the mode, and where each came from.
#[derive(Clone, Debug)]
pub struct PermissionSettings {
    /// How calls are decided that no rule decides.
    pub mode: Setting<Mode>,
    /// Calls that need nobody's word, file by file.
    pub allow: Vec<Setting<Vec<String>>>,
    /// Calls that a person is asked about, file by file.
    pub ask: Vec<Setting<Vec<String>>>,
    /// Calls that are refused, file by file.
    pub deny: Vec<Setting<Vec<String>>>,
}

impl PermissionSettings {
    /// No rule, and the usual mode.
    pub(super) fn usual() -> Self {
        PermissionSettings {
            mode: Setting::default(Mode::default()),
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
        }
    }

    /// Takes over what a file says, or says what is wrong with it.
    pub(super) fn add(&mut self, file: FilePermissions, origin: &Origin) -> Result<(), String> {
        if file.mode == Some(Mode::Bypass) {
            return Err(
                "`permissions.mode` cannot be `bypass` in a file: only the command line can \
                        say that nobody is asked (posse run --mode bypass)"
                    .to_owned(),
            );
        }
        self.mode.set(file.mode, origin);
        let tools = built_in_tools();
        let lists = [
            ("allow", file.allow, &mut self.allow),
            ("ask", file.ask, &mut self.ask),
            ("deny", file.deny, &mut self.deny),
        ];
        for (key, rules, known) in lists {
            let Some(value) = rules else { continue };
            for rule in &value {
                let read = match key {
                    "allow" => Rule::parse(rule),
                    _ => Rule::parse_refusing(rule, &tools),
                };
                read.map_err(|error| format!("`permissions.{key}`: {error}"))?;
            }
            known.push(Setting { value, origin: origin.clone() });
        }
        Ok(())
    }

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

/// What the project's settings at `path` deny and ask about.
pub(crate) fn project_rules(path: &Path) -> Result<Permissions, ConfigError> {
    let Some((file, text)) = file::read(path)? else { return Ok(Permissions::default()) };
    let only = FilePermissions { mode: None, allow: None, ..file.permissions };
    let mut settings = PermissionSettings::usual();
    let wrong = |reason| words::unusable(path, &text, reason);
    settings.add(only, &Origin::Project(path.to_owned())).map_err(wrong)?;
    Ok(settings.permissions())
}

/// `[permissions]` as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilePermissions {
    #[serde(alias = "defaultMode", alias = "default_mode")]
    pub(super) mode: Option<Mode>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) ask: Option<Vec<String>>,
    pub(super) deny: Option<Vec<String>>,
}
