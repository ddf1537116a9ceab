//! The steps that all tools which change files share: refuse an impossible call, compare the file with
//! the content that the run has read, show the difference, and write.

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::path_rules::Usage;
use crate::read::WHOLE_FILE_BYTES;
use crate::replace::{Existing, Target};
use crate::run_path::{RunFiles, RunPath, read_up_to};
use crate::seen::Knowledge;
use crate::{blocking, kind, text};
use posse_agent::{SeenFiles, ToolContext};
use posse_protocol::ToolSpec;
use serde_json::Value;
use similar::TextDiff;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of lines of a difference to return.
const DIFF_LINES: usize = 60;
/// The maximum number of characters of each such line.
const DIFF_LINE_CHARACTERS: usize = 300;

/// Returns why a call with `input` cannot succeed: its arguments are wrong, the run may not write the
/// file, or the run has not `seen` the file with its current content.
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

/// Returns why a run that has `seen` these files may not change `path` now.
fn not_known(files: &Arc<RunFiles>, path: &str, seen: &SeenFiles) -> Option<String> {
    let bytes = content(files, path).filter(|bytes| bytes.len() < WHOLE_FILE_BYTES)?;
    require_knowledge(&files.place(path).ok()?, &bytes, seen).err().map(|Failure(why)| why)
}

/// Facts about the run that a change depends on.
pub(crate) struct RunFacts {
    /// How many bytes the run may still write to disks, if that is limited.
    pub writable: Option<u64>,
    /// The files that the run has read or written.
    pub seen: SeenFiles,
}

impl RunFacts {
    pub(crate) fn of(context: &ToolContext) -> Self {
        RunFacts { writable: context.writable_bytes, seen: context.seen.clone() }
    }
}

/// Returns an error if the content is larger than the run may still write.
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

/// Returns an error unless the run has seen the content that it is about to replace.
pub(crate) fn require_knowledge(
    place: &RunPath,
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
    place: &RunPath,
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

/// The current content of the file, if the run may change it.
pub(crate) fn content(files: &Arc<RunFiles>, path: &str) -> Option<Vec<u8>> {
    let (mut file, metadata) = files.place(path).ok()?.open_file(Usage::Change).ok()?;
    read_up_to(&mut file, metadata.len(), WHOLE_FILE_BYTES).ok()
}

/// A path on one line, whatever it contains: the text after it must not look like a difference.
pub(crate) fn one_line(path: &str) -> String {
    path.replace('\r', "\\r").replace('\n', "\\n")
}

/// A complete unified difference.
pub(crate) fn whole_difference(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(before, after);
    diff.unified_diff().context_radius(3).to_string()
}

/// A shortened unified difference.
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
