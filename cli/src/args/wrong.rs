//! What is wrong with a command line, in plain words: which option was meant, which number is none.

use super::Arguments;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
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
    let options = options(arguments.filter_map(|argument| argument.into_string().ok()));
    if let Some(meant) = near::nearest(&typed, options.iter().map(String::as_str)) {
        let meant = ContextValue::String(format!("--{meant}"));
        error.insert(ContextKind::SuggestedArg, meant);
    }
    error
}

/// The long options of the command that `arguments` name.
fn options(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut command = Arguments::command();
    command.build();
    let mut found: &clap::Command = &command;
    let mut all: Vec<String> = Vec::new();
    let mut add = |command: &clap::Command| {
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        all.extend(options.map(str::to_owned));
    };
    add(found);
    for argument in arguments {
        if let Some(below) = found.find_subcommand(&argument) {
            found = below;
            add(found);
        }
    }
    all
}

/// A whole number from `least` to `most`.
pub fn whole<T: TryFrom<i64>>(text: &str, least: i64, most: i64) -> Result<T, String> {
    let number = text.trim().parse::<i64>().ok().filter(|it| (least..=most).contains(it));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("give a whole number from {least} to {most}"))
}
