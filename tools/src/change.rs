//! What every tool that changes files does: it refuses what cannot be done, compares the file with
//! what the run has read, shows the difference, and writes.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::path_rules::Usage;
use crate::place::{Place, RunFiles, read_up_to};
use crate::read::WHOLE_FILE_BYTES;
use crate::replace::{Existing, Target};
use crate::seen::Knowledge;
use crate::{blocking, kind, text};
use posse_agent::{SeenFiles, ToolContext};
use posse_protocol::ToolSpec;
use serde_json::Value;
use similar::TextDiff;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// Lines of the difference that are returned.
const DIFF_LINES: usize = 60;
/// Characters of one line of it.
const DIFF_LINE_CHARACTERS: usize = 300;

/// Why a call with `input` cannot succeed: its arguments are wrong, the file is not where the run
/// may write, or not among those that it has `seen` as they are now.
pub(crate) async fn refusal(
    spec: &ToolSpec,
    files: &Arc<RunFiles>,
    input: &Value,
    seen: Option<&SeenFiles>,
) -> Option<String> {
    let arguments = match Arguments::check(spec, input.clone()) {
        Ok(arguments) => arguments,
        Err(Failure(why)) => return Some(why),
    };
    let path = arguments.text("file_path").to_owned();
    let (files, seen) = (files.clone(), seen.cloned());
    let looked = move || {
        let refused = files.require_writable(&path).err().map(|error| error.to_string());
        Ok(refused.or_else(|| not_known(&files, &path, &seen?)))
    };
    blocking::to_the_end(looked).await.ok().flatten()
}

/// Why a run that has `seen` these files may not change `path` as it is now.
fn not_known(files: &Arc<RunFiles>, path: &str, seen: &SeenFiles) -> Option<String> {
    let bytes = content(files, path).filter(|bytes| bytes.len() < WHOLE_FILE_BYTES)?;
    require_knowledge(&files.place(path).ok()?, &bytes, seen).err().map(|Failure(why)| why)
}

/// What a call that changes a file must know of its run.
pub(crate) struct Knows {
    /// The bytes that the run may still write to disks, where that is limited.
    pub writable: Option<u64>,
    /// The files that it has read or written.
    pub seen: SeenFiles,
}

impl Knows {
    pub(crate) fn of(context: &ToolContext) -> Self {
        Knows { writable: context.writable_bytes, seen: context.seen.clone() }
    }
}

/// Refuses what is more than the run may still write, in bytes.
pub(crate) fn require_room(content: &[u8], writable: Option<u64>) -> Result<(), Failure> {
    match writable.filter(|writable| content.len() as u64 > *writable) {
        Some(writable) => Err(Failure(format!(
            "not written: it is {}, and this run may write only {} more to disks",
            kind::size(content.len() as u64),
            kind::size(writable)
        ))),
        None => Ok(()),
    }
}

/// Refuses unless the run has seen what it is about to replace.
pub(crate) fn require_knowledge(
    place: &Place,
    existing: &[u8],
    seen: &SeenFiles,
) -> Result<(), Failure> {
    match place.compare(seen, existing) {
        Knowledge::Current => Ok(()),
        Knowledge::None => Err(Failure(format!(
            "{} exists and has not been read in this run; read it first",
            place.show()
        ))),
        Knowledge::Stale => Err(Failure(format!(
            "{} has changed since it was last read; read it again, then repeat the change",
            place.show()
        ))),
    }
}

/// Writes `content`.
pub(crate) fn store(
    place: &Place,
    target: &Target,
    content: &[u8],
    existing: Option<&Existing>,
) -> Result<(), Failure> {
    if existing.is_some_and(Existing::is_read_only) {
        return Err(Failure(format!("{} is read-only; make it writable first", place.show())));
    }
    target.write(content, existing).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let path = place.show();
            Failure(format!("{path} was created by someone else meanwhile; read it first"))
        }
        _ => place.explain(error).into(),
    })
}

/// What is in the file now, if the run may change it.
pub(crate) fn content(files: &Arc<RunFiles>, path: &str) -> Option<Vec<u8>> {
    let (mut file, metadata) = files.place(path).ok()?.open_file(Usage::Change).ok()?;
    read_up_to(&mut file, metadata.len(), WHOLE_FILE_BYTES).ok()
}

/// A path on one line, whatever it holds: what follows it must not be taken for a difference.
pub(crate) fn one_line(path: &str) -> String {
    path.replace('\r', "\\r").replace('\n', "\\n")
}

/// A unified difference, nothing left out.
pub(crate) fn whole_difference(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(before, after);
    diff.unified_diff().context_radius(3).to_string()
}

/// A short unified difference.
pub(crate) fn difference(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(before, after);
    let unified = diff.unified_diff().context_radius(3).to_string();
    let mut lines = unified.lines();
    let mut short = String::new();
    for line in lines.by_ref().take(DIFF_LINES) {
        short.push_str(text::cut(line, DIFF_LINE_CHARACTERS).0);
        short.push('\n');
    }
    match lines.count() {
        0 => {}
        more => short.push_str(&format!("[{more} more lines of difference]\n")),
    }
    short
}
