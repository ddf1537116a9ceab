//! Environment variables that decide what programs run.

use super::may_be_input;
use crate::policy::shell::{Word, is_calculated, is_number};

/// What setting a variable makes programs run.
pub(crate) enum Sets {
    Nothing,
    /// Unknown.
    Anything,
    /// This command, certainly.
    Command(String),
    /// This command, if the variable names a command at all.
    Perhaps(String),
    /// This program, with these additional options.
    Options(&'static str, String),
}

/// Variables with a command, or a file of commands, as value.
const COMMANDS: &str = "ENV BASH_ENV PS4 PROMPT_COMMAND SHELL PAGER EDITOR VISUAL BROWSER LESSOPEN \
     LESSCLOSE MANPAGER SSH_ASKPASS SUDO_ASKPASS RSYNC_RSH RUSTC RUSTDOC RUSTC_WRAPPER \
     RUSTC_WORKSPACE_WRAPPER CC CXX CPP LD AR npm_config_script_shell NPM_CONFIG_SCRIPT_SHELL";

/// Variables that replace programs by others, or make them read their input.
const DECIDING: &str = "SHELLOPTS BASHOPTS BASH_CMDS BASH_ALIASES PYTHONINSPECT MAKEFILES";

/// Variables that give options to a program.
const OPTIONS: [(&str, &str); 8] = [
    ("MAKEFLAGS", "make"),
    ("GNUMAKEFLAGS", "make"),
    ("TAR_OPTIONS", "tar"),
    ("GOFLAGS", "go"),
    ("NODE_OPTIONS", "node --test"),
    ("PERL5OPT", "perl"),
    ("RUBYOPT", "ruby"),
    ("JAVA_TOOL_OPTIONS", "java"),
];

/// Returns the effect of setting the variable `name` to `value`.
pub(crate) fn sets(name: &str, value: &Word) -> Sets {
    if name == "PATH" {
        // A program in another folder is a file there, like `./program`. Only `.` as a folder of
        // the path, or an unknown value, may be an attack.
        let texts = match value {
            Word::Partly { start, end } => [start.as_str(), end.as_str()],
            known => [known.start(), ""],
        };
        let is_here = texts.iter().flat_map(|text| text.split(':')).any(|folder| folder == ".");
        let is_read = *value == Word::Unknown;
        return if is_here || is_read { Sets::Anything } else { Sets::Nothing };
    }
    if DECIDING.split(' ').any(|known| known == name) || name.starts_with("BASH_FUNC") {
        return Sets::Anything;
    }
    if is_calculated(name) {
        return if is_number(value) { Sets::Nothing } else { Sets::Anything };
    }
    // Names, values and whole lists of settings.
    if name.starts_with("GIT_CONFIG") && name != "GIT_CONFIG_COUNT" {
        return Sets::Anything;
    }
    let who = name.starts_with("GIT_AUTHOR") || name.starts_with("GIT_COMMITTER");
    let is_command = COMMANDS.split(' ').any(|known| known == name)
        || name.starts_with("GIT_") && !who
        || name.starts_with("CARGO_") && (name.ends_with("_RUNNER") || name.ends_with("_LINKER"))
        || name.starts_with("CARGO_BUILD_RUST");
    let options = OPTIONS.iter().find(|(known, _)| *known == name);
    match (value.exact(), options) {
        // Programs read quotes in their options in different ways.
        (Some(text), Some(_)) if text.contains(['\\', '"', '\'']) => Sets::Anything,
        // The first word of make's options may lack its dash.
        (Some(text), Some((_, "make"))) if !text.trim_start().starts_with('-') => {
            match text.split_whitespace().next() {
                Some(first) if !first.contains('=') => {
                    Sets::Options("make", format!("-{}", text.trim_start()))
                }
                _ => Sets::Options("make", text.to_owned()),
            }
        }
        (Some(text), Some((_, program))) => Sets::Options(program, text.to_owned()),
        (Some(_), None) if is_command && may_be_input(value) => Sets::Anything,
        // `!command` of git, `|command` of less.
        (Some(text), None) => match text.trim_start_matches(['!', '|', '-', ' ']).to_owned() {
            text if is_command => Sets::Command(text),
            text => Sets::Perhaps(text),
        },
        (None, None) if !is_command => Sets::Nothing,
        (None, _) => Sets::Anything,
    }
}
