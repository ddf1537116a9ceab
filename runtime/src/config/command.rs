//! What a command may use of the machine, according to settings files.

use super::Setting;
use super::table::{Row, settings};
use super::value::{Bytes, at_least_one, each};
use crate::mcp_settings::can_be_passed_on;
use posse_tools::confine::{CommandLimits, usual_commands_at_once};

settings! {
    /// What any one command may use, all its processes together, and where each value came from.
    pub struct CommandSettings, "command.", from struct FileCommand {
        /// How much private memory a command may have: `"4GiB"`.
        memory: Setting<Option<Bytes>> = Some(Bytes(CommandLimits::usual().memory_bytes))
            => "4 GiB, or half of the machine's", Lower, Anyone;
        /// How many processes a command may have at the same time.
        processes: Setting<Option<u32>> = Some(CommandLimits::usual().processes),
            Lower, Anyone, check one_at_least;
        /// How many commands of all runs one process of Posse runs at the same time. Other commands wait.
        at_once: Setting<Option<usize>> = Some(usual_commands_at_once())
            => "two for each core, at least 4; fewer on a machine with less than 512 MiB for each",
            Lower, Anyone, check at_least_one;
        /// Names of environment variables that commands see in addition to the usual ones:
        /// `["DATABASE_URL"]`. The keys of models never reach a command.
        variables: Setting<Vec<String>> = Vec::new(), Later, User, check can_be_passed;
        /// Files and folders of your home folder that commands see in addition to the usual ones:
        /// `["~/datasets"]`. If you are root, also other places that only root can read.
        readable: Setting<Vec<String>> = Vec::new(), Later, User, check are_places;
        /// How many bytes a command may write to disks: `"20GiB"`.
        written: Setting<Option<Bytes>> = Some(Bytes(CommandLimits::usual().disk_bytes)),
            Lower, Anyone;
    }
}

impl CommandSettings {
    /// The limits without their origins.
    pub fn limits(&self) -> CommandLimits {
        let usual = CommandLimits::usual();
        CommandLimits {
            memory_bytes: self.memory.value.map_or(usual.memory_bytes, |it| it.0),
            processes: self.processes.value.unwrap_or(usual.processes),
            disk_bytes: self.written.value.map_or(usual.disk_bytes, |it| it.0),
            ..usual
        }
    }

    /// How many commands run at the same time.
    pub fn most_at_once(&self) -> usize {
        self.at_once.value.unwrap_or_else(usual_commands_at_once)
    }
}

fn one_at_least(processes: &u32, row: &Row) -> Result<(), String> {
    if *processes == 0 { Err(row.wrong(" is 0: a command is one at least")) } else { Ok(()) }
}

/// Refuses variables that Posse cannot pass to a command, such as variables that would affect Posse's own processes
/// around the command.
fn can_be_passed(names: &[String], row: &Row) -> Result<(), String> {
    let why = "cannot be passed on. Give names such as `MY_SERVICE`, without values; none that begins \
               with LD_ or POSSE_";
    each(names, row, can_be_passed_on, why)
}

fn are_places(paths: &[String], row: &Row) -> Result<(), String> {
    let why = "is no place in your home folder. Write a file or folder as `~/datasets`, without `..` \
               and patterns";
    let is_place = |path: &str| {
        let is_plain = !path.split('/').any(|part| part == "..") && !path.contains('*');
        (path.starts_with("~/") || path.starts_with('/')) && is_plain
    };
    each(paths, row, is_place, why)
}
