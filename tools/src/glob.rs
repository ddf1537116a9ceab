//! The tool Glob: finds files by pattern.

use crate::arguments::{Arguments, spec};
use crate::blocking;
use crate::built_in::BuiltIn;
use crate::failure::{Failure, answer};
use crate::path_rules::Usage;
use crate::pattern::Pattern;
use crate::run_path::{RunFiles, RunPath};
use crate::walk::{self, Files};
use async_trait::async_trait;
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::{About, Effect, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use tokio_util::sync::CancellationToken;

/// The maximum number of files in a result.
const FILES: usize = 500;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    spec(
        "Glob",
        "Finds files by name pattern, such as **/*.rs. Skips ignored files.",
        Effect::Read,
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "path": {"type": "string", "description": "default the working folder"},
            },
            "required": ["pattern"],
        }),
    )
    .about(About::Tree("path".into()))
    .shown("{pattern} in {path}")
    .aliases(&["glob", "find_files", "find", "FindFiles", "file_search"])
});

pub(crate) const TOOL: BuiltIn =
    BuiltIn { spec: &SPEC, make: |run| Some(Arc::new(Glob { files: run.files(&SPEC.name) })) };

pub(crate) struct Glob {
    pub files: Arc<RunFiles>,
}

#[async_trait]
impl Tool for Glob {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let files = self.files.clone();
        let search = move |cancel: &CancellationToken| glob(&files, input, cancel);
        answer(blocking::interruptible(context, search).await)
    }
}

fn glob(
    files: &Arc<RunFiles>,
    input: Value,
    cancel: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let arguments = Arguments::check(&SPEC, input)?;
    let pattern = Pattern::parse(files, arguments.text("pattern"))?;
    let place = walk::start(files, arguments.optional_text("path"), Some(&pattern))?;
    let folder = walk::folder(&place)?;
    let mut found = String::new();
    let mut count = 0;
    for path in Files::below(&folder, None, cancel)? {
        if !pattern.wants(&folder, &path) || !exists(&folder, &path) {
            continue;
        }
        if count == FILES {
            found.push_str(&format!(
                "[The first {FILES} files. There are more: use a narrower pattern or path.]\n"
            ));
            break;
        }
        count += 1;
        found.push_str(&folder.at(path).show());
        found.push('\n');
    }
    if cancel.is_cancelled() {
        return Err(blocking::cancelled());
    }
    if count == 0 {
        return Ok(ToolOutput::text("No file matches. (Ignored files are not looked at.)"));
    }
    Ok(ToolOutput::text(found))
}

/// Returns true if the path also exists beneath the handle, not only where the walk was led, and if the
/// rules allow naming it.
fn exists(folder: &RunPath, path: &Path) -> bool {
    folder.dir().symlink_metadata(path).is_ok_and(|found| found.is_file())
        && folder.found(path.to_owned()).check_name(Usage::Read).is_ok()
}
