//! The tool Write: creates or replaces a whole file.

use crate::arguments::{Arguments, spec};
use crate::built_in::BuiltIn;
use crate::change::{
    RunFacts, content, difference, one_line, refusal, require_knowledge, require_room, store,
    whole_difference,
};
use crate::failure::{Failure, answer};
use crate::replace::Target;
use crate::run_path::RunFiles;
use crate::text;
use crate::{blocking, kind};
use async_trait::async_trait;
use posse_agent::{Answer, SeenFiles, Tool, ToolContext};
use posse_protocol::{About, Effect, ToolOutput, ToolSpec};
use serde_json::{Value, json};
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
    .about(About::File("file_path".into()))
    .aliases(&["write", "write_file", "WriteFile", "create_file"])
});

pub(crate) const TOOL: BuiltIn =
    BuiltIn { spec: &SPEC, make: |run| Some(Arc::new(Write { files: run.files(&SPEC.name) })) };

pub(crate) struct Write {
    pub files: Arc<RunFiles>,
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &SPEC
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

    async fn refusal(&self, input: &Value, seen: Option<&SeenFiles>) -> Option<String> {
        refusal(&SPEC, &self.files, input, seen).await
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let (files, knows) = (self.files.clone(), RunFacts::of(context));
        answer(blocking::to_the_end(move || write(&files, input, &knows)).await)
    }
}

fn write(files: &Arc<RunFiles>, input: Value, knows: &RunFacts) -> Result<ToolOutput, Failure> {
    let arguments = Arguments::check(&SPEC, input)?;
    let place = files.place(arguments.text("file_path"))?;
    let content = arguments.text("content").as_bytes();
    require_room(content, knows.writable)?;
    let _lock = place.lock_for_writing();
    let target = Target::find(&place)?;
    let existing = target.existing()?;
    if let Some(existing) = &existing {
        require_knowledge(&place, &existing.bytes, &knows.seen)?;
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
