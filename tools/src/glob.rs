//! The tool Glob: files by pattern.

use crate::arguments::{Arguments, spec};
use crate::blocking;
use crate::failure::{Failure, answer};
use crate::pattern::Pattern;
use crate::walk::{self, Files};
use crate::workspace::{Workspace, show};
use async_trait::async_trait;
use posse_agent::{Answer, Tool, ToolContext};
use posse_protocol::{Effect, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use tokio_util::sync::CancellationToken;

/// Files in one result.
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
                "path": {"type": "string", "description": "default the workspace"},
            },
            "required": ["pattern"],
        }),
    )
});

pub(crate) struct Glob {
    pub workspace: Arc<Workspace>,
}

#[async_trait]
impl Tool for Glob {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &[&str] {
        &["glob", "find_files", "find", "FindFiles", "file_search"]
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let workspace = self.workspace.clone();
        let search = move |cancel: &CancellationToken| glob(&workspace, input, cancel);
        answer(blocking::interruptible(context, search).await)
    }
}

fn glob(
    workspace: &Workspace,
    input: Value,
    cancel: &CancellationToken,
) -> Result<ToolOutput, Failure> {
    let arguments = Arguments::check(&SPEC, input)?;
    let pattern = Pattern::parse(workspace, arguments.text("pattern"))?;
    let path = workspace.relative(arguments.optional_text("path").unwrap_or("."))?;
    let folder = walk::folder(workspace, path)?;
    let mut found = String::new();
    let mut count = 0;
    for path in Files::below(workspace, &folder, None, cancel)? {
        if !pattern.wants(&folder, &path) || !exists(workspace, &path) {
            continue;
        }
        if count == FILES {
            found.push_str(&format!(
                "[The first {FILES} files. There are more: use a narrower pattern or path.]\n"
            ));
            break;
        }
        count += 1;
        found.push_str(&show(&path));
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

/// True when the path is there beneath the workspace too, not only where the walk was led.
fn exists(workspace: &Workspace, path: &Path) -> bool {
    workspace.dir().symlink_metadata(path).is_ok_and(|found| found.is_file())
}
