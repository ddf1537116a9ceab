//! Printing. Data goes to standard output, everything about it to standard error.
//!
//! A reader that is gone (`| head`) ends the output silently; any other failure to write data is
//! an error, for whoever asked would take an empty answer for the whole.

use crate::clean::{clean, clean_json};
use crate::exit::{self, Code, Failure};
use posse::redact::Redactor;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// What is shown nowhere. Of the whole process, as standard output is: a panic knows nobody to ask.
static HIDDEN: RwLock<Option<Redactor>> = RwLock::new(None);

/// From now on shows none of these either, in whatever is printed; nor in what a panic says.
pub fn hide<'s>(secrets: impl IntoIterator<Item = &'s str>) {
    let mut hidden = HIDDEN.write().unwrap_or_else(PoisonError::into_inner);
    let redactor = hidden.take().unwrap_or_default().and(secrets);
    if redactor.is_empty() {
        return;
    }
    *hidden = Some(redactor);
    std::panic::set_hook(Box::new(|panic| note(panic)));
}

/// `text` without what is shown nowhere.
fn shown(text: impl std::fmt::Display) -> String {
    let text = text.to_string();
    match &*HIDDEN.read().unwrap_or_else(PoisonError::into_inner) {
        Some(redactor) => redactor.text(&text).into_owned(),
        None => text,
    }
}

/// Prints a line of data.
pub fn line(text: impl std::fmt::Display) -> Result<(), Failure> {
    written(writeln!(io::stdout(), "{}", shown(text)))
}

/// Prints data without a line break, at once.
pub fn piece(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    written(out.write_all(shown(text).as_bytes()).and_then(|()| out.flush()))
}

/// Prints a line about what happens.
pub fn note(text: impl std::fmt::Display) {
    // Nobody to tell that nobody can be told.
    let _ = writeln!(io::stderr(), "{}", shown(text));
}

/// Prints to standard error without a line break, at once.
pub fn note_piece(text: &str) {
    let mut out = io::stderr();
    let _ = out.write_all(shown(text).as_bytes()).and_then(|()| out.flush());
}

/// A value as one line of JSON that a terminal does not act on.
pub fn json_text(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map(clean_json).map_err(not_json)
}

/// Prints a value as one line of JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    line(json_text(value)?)
}

/// Prints a value as JSON for people.
pub fn json_pretty(value: &impl Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map(clean_json).map_err(not_json)?)
}

/// How a failure is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    Words,
    Json,
}

impl Tell {
    /// As `--json` asks for it, or not.
    pub fn as_json(json: bool) -> Tell {
        if json { Tell::Json } else { Tell::Words }
    }
}

/// Prints why the command could not do what it was asked.
pub fn failure(failure: &Failure, tell: Tell) {
    match tell {
        Tell::Words => note(in_words(failure)),
        Tell::Json => {
            let message = clean(&exit::plain(&failure.message));
            let hint = failure.hint.as_deref().map(clean);
            note(serde_json::json!({"error": message, "hint": hint, "code": failure.code as u8}));
        }
    }
}

/// Why something could not be done, and what to do about it, in a line each.
pub fn in_words(failure: &Failure) -> String {
    let message = clean(&exit::plain(&failure.message));
    let mut text = match failure.code {
        Code::Interrupted => message,
        _ => format!("error: {message}"),
    };
    if let Some(hint) = failure.hint.as_deref() {
        text.push_str(&format!("\n  hint: {}", clean(hint)));
    }
    text
}

/// Opens a file to write that only its owner can read, whoever could before. A link at `path` is refused:
/// somebody else chose where it leads, perhaps an agent. The links of `/dev` are the system's.
pub fn private_file(path: &Path) -> io::Result<File> {
    let links = if path.starts_with("/dev") { OFlags::empty() } else { OFlags::NOFOLLOW };
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o600);
    let file = options.custom_flags(links.bits() as i32).open(path).map_err(|error| {
        match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => io::Error::other("it is a symbolic link; name another file"),
            _ => error,
        }
    })?;
    // What is no file, such as /dev/null, keeps its mode.
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::internal(format!("cannot write to standard output: {error}"))
                .hint("a run's answer is kept: `posse runs show RUN` prints it again"))
        }
        _ => Ok(()),
    }
}

fn not_json(error: serde_json::Error) -> Failure {
    Failure::internal(format!("cannot write JSON: {error}"))
}
