//! The tool Write: a whole file, new or replaced.

use crate::arguments::{Arguments, spec};
use crate::edit::{content, difference, one_line, whole_difference};
use crate::failure::{Failure, answer};
use crate::place::{Place, RunFiles};
use crate::replace::{Existing, Target};
use crate::seen::Knowledge;
use crate::text;
use crate::{blocking, kind};
use async_trait::async_trait;
use posse_agent::{Answer, SeenFiles, Tool, ToolContext};
use posse_protocol::{Effect, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::sync::{Arc, LazyLock};

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = "Writes a file, creating its folders. A file that exists must have been \
                       read first; prefer Edit to change part of it.";
    spec(
        "Write",
        description,
        Effect::Write,
        json!({
            "type": "object",
            "properties": {
                "file_path": {"type": "string"},
                "content": {"type": "string"},
            },
            "required": ["file_path", "content"],
        }),
    )
});

pub(crate) struct Write {
    pub files: Arc<RunFiles>,
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &[&str] {
        &["write", "write_file", "WriteFile", "create_file"]
    }

    async fn preview(&self, input: &Value) -> Option<String> {
        let path = input.get("file_path")?.as_str()?.to_owned();
        let written = input.get("content")?.as_str()?.to_owned();
        let files = self.files.clone();
        let shown = move || {
            let before = content(&files, &path);
            let before = before.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let verb = if before.is_some() { "replaces" } else { "creates" };
            let difference = whole_difference(&before.unwrap_or_default(), &written);
            Ok(format!("{verb} {}\n{difference}", one_line(&path)))
        };
        blocking::to_the_end(shown).await.ok()
    }

    async fn refusal(&self, input: &Value) -> Option<String> {
        refusal(&SPEC, &self.files, input).await
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let (files, knows) = (self.files.clone(), Knows::of(context));
        answer(blocking::to_the_end(move || write(&files, input, &knows)).await)
    }
}

/// Why a call with `input` cannot succeed: its arguments are wrong, or the file is not where the run
/// may write.
pub(crate) async fn refusal(
    spec: &ToolSpec,
    files: &Arc<RunFiles>,
    input: &Value,
) -> Option<String> {
    let arguments = match Arguments::check(spec, input.clone()) {
        Ok(arguments) => arguments,
        Err(Failure(why)) => return Some(why),
    };
    let path = arguments.text("file_path").to_owned();
    let files = files.clone();
    let looked = move || Ok(files.require_writable(&path).err());
    let refused = blocking::to_the_end(looked).await.ok().flatten();
    refused.map(|error| error.to_string())
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

fn write(files: &Arc<RunFiles>, input: Value, knows: &Knows) -> Result<ToolOutput, Failure> {
    let arguments = Arguments::check(&SPEC, input)?;
    let place = files.place(arguments.text("file_path"))?;
    let content = arguments.text("content").as_bytes();
    require_room(content, knows.writable)?;
    let _lock = place.lock_for_writing();
    let target = Target::find(&place)?;
    let existing = target.existing()?;
    if let Some(existing) = &existing {
        require_knowledge(&place, existing, &knows.seen)?;
    }
    store(&place, &target, content, existing.as_ref())?;
    let verb = if existing.is_some() { "Replaced" } else { "Created" };
    let before = existing.as_ref().and_then(|existing| text::decode(&existing.bytes));
    let before = before.map(|decoded| decoded.text).unwrap_or_default();
    let change = Some(difference(&before, arguments.text("content")));
    let written_bytes = content.len() as u64;
    let said = format!("{verb} {} ({})", place.show(), kind::size(written_bytes));
    let seen = place.seen(content);
    Ok(ToolOutput { written_bytes, change, seen, ..ToolOutput::text(said) })
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
    existing: &Existing,
    seen: &SeenFiles,
) -> Result<(), Failure> {
    match place.compare(seen, &existing.bytes) {
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
