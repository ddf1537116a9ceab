//! The tool List: lists a folder.

use crate::arguments::{Arguments, spec};
use crate::blocking;
use crate::built_in::BuiltIn;
use crate::confine::{marks_placeholder, may_be_held};
use crate::failure::{Failure, answer};
use crate::path_rules::Usage;
use crate::run_path::{Root, RunFiles};
use async_trait::async_trait;
use cap_std::fs::{DirEntry, MetadataExt};
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::{About, Effect, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use tokio_util::sync::CancellationToken;

/// The maximum number of names in a result.
const ENTRIES: usize = 1000;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    spec(
        "List",
        "Lists a folder: one name a line, folders end in /.",
        Effect::Read,
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}},
        }),
    )
    .about(About::Folder("path".into()))
    .aliases(&["LS", "list", "ls", "list_dir", "list_files", "list_directory", "ListDir"])
});

pub(crate) const TOOL: BuiltIn =
    BuiltIn { spec: &SPEC, make: |run| Some(Arc::new(List { files: run.files(&SPEC.name) })) };

pub(crate) struct List {
    pub files: Arc<RunFiles>,
}

#[async_trait]
impl Tool for List {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let files = self.files.clone();
        let list = move |cancel: &CancellationToken| list(&files, input, cancel);
        answer(blocking::interruptible(context, list).await)
    }
}

/// Returns true for a placeholder of a command that is running now.
fn is_held(entry: &DirEntry) -> bool {
    let is_placeholder = || entry.metadata().is_ok_and(|found| marks_placeholder(found.mode()));
    entry.file_name().to_str().is_some_and(may_be_held) && is_placeholder()
}

fn list(
    files: &Arc<RunFiles>,
    input: Value,
    cancel: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let arguments = Arguments::check(&SPEC, input)?;
    let place = files.place(arguments.optional_text("path").unwrap_or("."))?;
    let folder = place.open_folder(Usage::List)?;
    let is_top = place.root() == Root::Workspace && place.path() == Path::new(".");
    let mut names = Vec::new();
    for entry in folder.entries().map_err(|error| place.explain(error))? {
        if cancel.is_cancelled() {
            return Err(blocking::cancelled());
        }
        let entry = entry.map_err(|error| place.explain(error))?;
        if is_top && is_held(&entry) {
            continue;
        }
        names.push((entry.file_name(), entry.file_type().ok()));
    }
    names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let all = names.len();
    let mut listed = String::new();
    for (name, file_type) in names.into_iter().take(ENTRIES) {
        listed.push_str(&name.to_string_lossy());
        match file_type {
            Some(file_type) if file_type.is_dir() => listed.push('/'),
            Some(file_type) if file_type.is_symlink() => {
                let to = folder.read_link_contents(&name).unwrap_or_default();
                listed.push_str(&format!(" -> {}", to.display()));
            }
            _ => {}
        }
        listed.push('\n');
    }
    if all > ENTRIES {
        listed.push_str(&format!(
            "[The first {ENTRIES} of {all} names. Use Glob with a pattern to see the others.]\n"
        ));
    }
    if all == 0 {
        listed.push_str("[The folder is empty]");
    }
    Ok(ToolOutput::text(listed))
}
