//! Printing. Data goes to standard output, everything about it to standard error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the one place that prints")]

use crate::exit::Failure;
use serde::Serialize;
use std::io::{self, Write};

/// Prints a line of data.
pub fn line(text: impl std::fmt::Display) {
    // A reader that is gone (`| head`) ends the output, not with a panic.
    let _ = writeln!(io::stdout(), "{text}");
}

/// Prints data without a line break, at once.
pub fn piece(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Prints a line about what happens.
pub fn note(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints to standard error without a line break, at once.
pub fn note_piece(text: &str) {
    let mut out = io::stderr();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Prints a value as one line of JSON.
pub fn json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => line(text),
        Err(error) => note(format!("error: cannot write JSON: {error}")),
    }
}

/// Prints a value as JSON for people.
pub fn json_pretty(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(text),
        Err(error) => note(format!("error: cannot write JSON: {error}")),
    }
}

/// Prints why the command could not do what it was asked.
pub fn failure(failure: &Failure) {
    eprintln!("error: {}", crate::clean::clean(&failure.message));
    if let Some(hint) = &failure.hint {
        eprintln!("  hint: {hint}");
    }
}

/// Prints clap's kind of long text, such as completions.
pub fn raw(bytes: &[u8]) {
    print!("{}", String::from_utf8_lossy(bytes));
}
