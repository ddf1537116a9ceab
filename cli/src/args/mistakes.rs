//! Errors in a command line, in the same form as all other errors: what is wrong, and what to do next.

use super::{Arguments, instead_of};
use crate::exit::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory};
use posse::protocol::near;
use std::ffi::OsString;

/// Explains `error`. `None` if it asks for help or the version, or if clap's help explains it.
pub fn explain(error: &clap::Error, line: &[OsString]) -> Option<Failure> {
    let mut program = Arguments::command();
    program.build();
    let (command, path) = typed(&program, line);
    let hint = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::UnknownArgument => {
            return Some(unknown_argument(error, &program, command, &path));
        }
        ErrorKind::InvalidSubcommand => return Some(unknown_command(error, command, &path)),
        ErrorKind::InvalidValue => {
            match option_with_value(error, command).or_else(|| nearest_value(error)) {
                Some(meant) => format!("did you mean `{meant}`? `{path} --help` lists the values"),
                None => format!("`{path} --help` lists the values"),
            }
        }
        _ => format!("`{path} --help` shows how to use it"),
    };
    Some(Failure::usage(said(&error.to_string())).hint(hint))
}

/// The command that `line` names, and its full name.
fn typed<'c>(program: &'c Command, line: &[OsString]) -> (&'c Command, String) {
    let (mut command, mut path) = (program, "posse".to_owned());
    for word in line.iter().skip(1) {
        if let Some(next) = command.find_subcommand(word) {
            path = format!("{path} {}", next.get_name());
            command = next;
        }
    }
    (command, path)
}

/// The error for an unknown option, with a suggestion.
fn unknown_argument(
    error: &clap::Error,
    program: &Command,
    command: &Command,
    path: &str,
) -> Failure {
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let name = argument.split('=').next().unwrap_or_default();
    let longs = command.get_arguments().filter_map(|it| it.get_long());
    let longs: Vec<String> = longs.map(|long| format!("--{long}")).collect();
    if path != "posse" && longs.iter().any(|long| long == name) {
        let message = format!("the option `{name}` goes after the command");
        return Failure::usage(message).hint(format!("write `{path} {name}`"));
    }
    let meant = near::nearest(name, longs.iter().map(String::as_str));
    let hint = match (instead_of(name), meant) {
        (Some(instead), _) => instead.to_owned(),
        _ if name == "-v" => "did you mean `-V`, which prints the version?".to_owned(),
        (None, Some(meant)) => format!("did you mean `{meant}`? `{path} --help` lists the options"),
        (None, None) => match other_place(name, program, path) {
            Some(hint) => hint,
            None => format!("`{path} --help` shows how to use it"),
        },
    };
    let message = match name.starts_with('-') {
        true => format!("`{path}` has no option `{name}`"),
        false => format!("`{path}` does not take the argument `{name}`"),
    };
    Failure::usage(message).hint(hint)
}

/// Where to write the option `name`, which `path` does not have, or what to write instead.
fn other_place(name: &str, program: &Command, path: &str) -> Option<String> {
    if path == "posse runs answer" && matches!(name, "--yes" | "-y") {
        return Some(
            "`--once` allows the call once; `--for-run` and `--always` allow more".to_owned(),
        );
    }
    let long = name.strip_prefix("--").filter(|_| path == "posse")?;
    let has_it = |it: &Command| it.get_arguments().any(|it| it.get_long() == Some(long));
    let takes_it = |verb: &&str| program.find_subcommand(verb).is_some_and(has_it);
    let verbs = ["run", "chat"].into_iter().filter(takes_it);
    let verbs: Vec<String> = verbs.map(|verb| format!("`posse {verb} {name}`")).collect();
    (!verbs.is_empty()).then(|| format!("write {}", verbs.join(" or ")))
}

/// The error for an unknown command, with a suggestion.
fn unknown_command(error: &clap::Error, command: &Command, path: &str) -> Failure {
    let name = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let inner = command.get_subcommands().find(|it| it.find_subcommand(&name).is_some());
    let hint = match near::nearest(&name, names) {
        _ if path == "posse help" => match inner.map(Command::get_name) {
            Some(around) => format!("`posse help {around} {name}` explains one with this name"),
            None => "`posse help` lists the commands, `posse help COMMAND` explains one".to_owned(),
        },
        _ if path == "posse config" => {
            "Posse does not change settings; `posse config path` lists the files to edit".to_owned()
        }
        Some(meant) => format!("did you mean `{path} {meant}`? `{path} --help` lists the commands"),
        None => format!("`{path} --help` lists the commands"),
    };
    Failure::usage(format!("`{path}` has no command `{name}`")).hint(hint)
}

/// The given value with the option of `command` that takes it.
fn option_with_value(error: &clap::Error, command: &Command) -> Option<String> {
    let given = text(error, ContextKind::InvalidValue)?;
    let takes_it =
        |it: &&Arg| it.get_possible_values().iter().any(|value| value.matches(&given, false));
    let long = command.get_arguments().find(takes_it)?.get_long()?;
    Some(format!("--{long} {given}"))
}

/// The valid value that is nearest to the given one.
fn nearest_value(error: &clap::Error) -> Option<String> {
    let given = text(error, ContextKind::InvalidValue)?;
    match error.get(ContextKind::ValidValue)? {
        ContextValue::Strings(values) => {
            near::nearest(&given, values.iter().map(String::as_str)).map(str::to_owned)
        }
        _ => None,
    }
}

/// A text in the context of `error`.
fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}

/// The first paragraph of `text`, in one line, without the usage.
fn said(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.trim_start_matches("error: ").to_owned()
}
