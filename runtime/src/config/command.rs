//! What a command may use of the machine, as settings files say it.

use super::{Origin, Setting};
use crate::limits::parse_size;
use posse_tools::confine::{CommandLimits, usual_commands_at_once};
use serde::Deserialize;

/// What any one command may use, all its processes together, and where each value came from.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// Bytes of memory.
    pub memory_bytes: Setting<Option<u64>>,
    /// Processes at the same time.
    pub processes: Setting<Option<u32>>,
    /// Bytes written to disks.
    pub written_bytes: Setting<Option<u64>>,
    /// Commands of all runs that run at the same time.
    pub at_once: Setting<Option<usize>>,
    /// Variables of the environment that commands see besides the usual ones.
    pub variables: Setting<Vec<String>>,
    /// Files and folders of the user's home folder that commands see besides the usual ones, each
    /// absolute or from `~/` on.
    pub readable: Setting<Vec<String>>,
}

impl CommandSettings {
    /// The limits without their origins.
    pub fn limits(&self) -> CommandLimits {
        let usual = CommandLimits::usual();
        CommandLimits {
            memory_bytes: self.memory_bytes.value.unwrap_or(usual.memory_bytes),
            processes: self.processes.value.unwrap_or(usual.processes),
            disk_bytes: self.written_bytes.value.unwrap_or(usual.disk_bytes),
            ..usual
        }
    }

    /// How many commands run at the same time.
    pub fn most_at_once(&self) -> usize {
        self.at_once.value.unwrap_or_else(usual_commands_at_once)
    }

    /// What holds when nobody says anything.
    pub(super) fn usual() -> Self {
        let CommandLimits { memory_bytes, processes, disk_bytes, .. } = CommandLimits::usual();
        CommandSettings {
            memory_bytes: Setting::default(Some(memory_bytes)),
            processes: Setting::default(Some(processes)),
            written_bytes: Setting::default(Some(disk_bytes)),
            at_once: Setting::default(Some(usual_commands_at_once())),
            variables: Setting::default(Vec::new()),
            readable: Setting::default(Vec::new()),
        }
    }

    /// Takes over what the user's file says, and what a project's says where that is stricter.
    pub(super) fn narrow(&mut self, file: FileCommand, origin: &Origin) -> Result<(), String> {
        let size = |key: &str, text: Option<String>| {
            let bytes = text.map(|text| parse_size(&text)).transpose();
            bytes.map_err(|wrong| format!("`command.{key}`: {wrong}"))
        };
        if file.processes == Some(0) {
            return Err("`command.processes` is 0: a command is one at least".to_owned());
        }
        if file.at_once == Some(0) {
            return Err("`command.at_once` must be at least 1".to_owned());
        }
        if let Some(name) = file.variables.iter().flatten().find(|name| !can_be_passed(name)) {
            return Err(format!(
                "`command.variables`: `{name}` cannot be passed on. Give names such as `MY_SERVICE`, \
                 without values; none that begins with LD_ or POSSE_"
            ));
        }
        let is_place = |path: &&String| {
            let is_plain = !path.split('/').any(|part| part == "..") && !path.contains('*');
            (path.starts_with("~/") || path.starts_with('/')) && is_plain
        };
        if let Some(path) = file.readable.iter().flatten().find(|path| !is_place(path)) {
            return Err(format!(
                "`command.readable`: `{path}` is no place in your home folder. Write a file or folder \
                 as `~/datasets`, without `..` and patterns"
            ));
        }
        self.variables.set(file.variables, origin);
        self.readable.set(file.readable, origin);
        self.at_once.narrow(file.at_once, origin);
        self.memory_bytes.narrow(size("memory", file.memory)?, origin);
        self.processes.narrow(file.processes, origin);
        self.written_bytes.narrow(size("written", file.written)?, origin);
        Ok(())
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileCommand {
    memory: Option<String>,
    processes: Option<u32>,
    written: Option<String>,
    at_once: Option<usize>,
    pub(super) variables: Option<Vec<String>>,
    pub(super) readable: Option<Vec<String>>,
}

/// True for the name of a variable that a command can be given: not for one that Posse's own
/// processes around the command would obey.
fn can_be_passed(name: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_valid = name.bytes().all(is_name) && !name.is_empty();
    is_valid && !["LD_", "POSSE_"].iter().any(|start| name.starts_with(start))
}
