//! Printing. Data goes to standard output, messages go to standard error.
//!
//! If the reader is gone (`| head`), the output ends silently. Any other failure to write data is an
//! error, because the user would take an empty answer for the whole.

use crate::clean::{clean, clean_json};
use crate::exit::{self, Code, Failure};
use parking_lot::RwLock;
use posse::redact::Redactor;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The secrets that are never shown. Global like standard output, so that a panic can use it, too.
static HIDDEN: RwLock<Option<Redactor>> = RwLock::new(None);

/// Hides these values from now on in everything that is printed, and in the messages of panics.
pub fn hide<'s>(secrets: impl IntoIterator<Item = &'s str>) {
    let mut hidden = HIDDEN.write();
    let redactor = hidden.take().unwrap_or_default().and(secrets);
    if redactor.is_empty() {
        return;
    }
    *hidden = Some(redactor);
    std::panic::set_hook(Box::new(|panic| note(panic)));
}

/// `text` without hidden values.
fn shown(text: impl std::fmt::Display) -> String {
    let text = text.to_string();
    match &*HIDDEN.read() {
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

/// Prints a message.
pub fn note(text: impl std::fmt::Display) {
    // If standard error cannot be written, there is no place to report it.
    let _ = writeln!(io::stderr(), "{}", shown(text));
}

/// Prints a message without a line break, at once.
pub fn note_piece(text: &str) {
    let mut out = io::stderr();
    let _ = out.write_all(shown(text).as_bytes()).and_then(|()| out.flush());
}

/// A value as one line of JSON without characters that a terminal acts on.
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

/// The format of a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FailureFormat {
    Words,
    Json,
}

impl FailureFormat {
    /// JSON if `json` is set, otherwise words.
    pub fn as_json(json: bool) -> FailureFormat {
        if json { FailureFormat::Json } else { FailureFormat::Words }
    }
}

/// Prints the failure of a command.
pub fn failure(failure: &Failure, tell: FailureFormat) {
    match tell {
        FailureFormat::Words => note(in_words(failure)),
        FailureFormat::Json => {
            let message = clean(&exit::plain(&failure.message));
            let hint = failure.hint.as_deref().map(clean);
            note(serde_json::json!({"error": message, "hint": hint, "code": failure.code as u8}));
        }
    }
}

/// A failure in words: the message and the hint, one line each.
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

/// Opens a file for writing that only its owner can read, whatever its mode was. Fails for a link at
/// `path`: another program, perhaps an agent, chose its target. Links in `/dev` belong to the system.
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
    // Devices such as /dev/null keep their mode.
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
