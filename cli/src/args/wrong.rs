//! What is wrong with a command line, in plain words: which option was meant, which number is none.

use super::Arguments;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use posse::protocol::near;

/// `error` with the option that was probably meant.
pub fn mended(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let Some(typed) = typed.strip_prefix("--").map(str::to_owned) else { return error };
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.filter_map(|argument| argument.into_string().ok());
    let mut command = Arguments::command();
    command.build();
    let (options, usage) = meant(command, arguments);
    if let Some(meant) = near::nearest(&typed, options.iter().map(String::as_str)) {
        let meant = ContextValue::String(format!("--{meant}"));
        error.insert(ContextKind::SuggestedArg, meant);
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    error
}

/// The long options of the command that `arguments` name below `command`, and how it is used.
fn meant(
    mut command: Command,
    arguments: impl Iterator<Item = String>,
) -> (Vec<String>, StyledStr) {
    let long = |command: &Command| {
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        options.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut options = long(&command);
    for argument in arguments {
        let Some(below) = command.find_subcommand(&argument).cloned() else { continue };
        options.extend(long(&below));
        command = below;
    }
    (options, command.render_usage())
}

/// A whole number from `least` to `most`.
pub fn whole<T: TryFrom<i64>>(text: &str, least: i64, most: i64) -> Result<T, String> {
    let number = text.trim().parse::<i64>().ok().filter(|it| (least..=most).contains(it));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| match most >= u32::MAX.into() {
        true => format!("give a whole number, at least {least}"),
        false => format!("give a whole number from {least} to {most}"),
    })
}
