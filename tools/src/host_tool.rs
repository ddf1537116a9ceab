//! Keeps a host's tools within the files of the run, if their calls are about paths.
//!
//! Such a tool opens its files itself. So before each call this code checks the path: where it really
//! leads, whether that is in a folder of the run, and whether the rules allow the tool to use it. The
//! tool then gets the checked path, absolute and without links.

use crate::failure::{Failure, PathError, answer};
use crate::path_rules::Usage;
use crate::run_path::{Root, RunFiles};
use async_trait::async_trait;
use posse_agent::{Answer, SeenFiles, Tool, ToolContext};
use posse_protocol::{About, ToolSpec};
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct HostTool {
    pub tool: Arc<dyn Tool>,
    pub files: Arc<RunFiles>,
}

impl HostTool {
    /// Returns true for a tool that must be restricted to the files of the run.
    pub(crate) fn is_needed(tool: &dyn Tool) -> bool {
        tool.spec().uses_paths() && !tool.spec().confined
    }

    /// Returns `input` with the checked path in it.
    fn placed(&self, mut input: Value, when: When) -> Result<Value, Failure> {
        let spec = self.tool.spec();
        let Some(about) = &spec.about else { return Ok(input) };
        let (argument, name) = (about.argument(), &spec.name);
        let (usage, default) = match about {
            About::Folder(_) => (Usage::List, Some(".")),
            About::Tree(_) => (Usage::Tree, Some(".")),
            _ => (Usage::Read, None),
        };
        let path = match input.get(argument).filter(|value| !value.is_null()) {
            Some(value) => value.as_str(),
            None => default,
        };
        let path = path.ok_or_else(|| Failure(format!("{name}: `{argument}` must be one path")))?;
        if when == When::Before && self.files.locate(path)?.0 == Root::Scratch {
            // Its folder may not exist yet, and must not be created before the call.
            return Ok(input);
        }
        let place = self.files.place(path)?;
        let mut usages = Vec::new();
        if spec.reads_files() {
            usages.push(usage);
        }
        if spec.writes_files() {
            place.require_writable()?;
            usages.push(Usage::Change);
        }
        let real = match place.canonical() {
            Err(PathError::Missing { .. }) if !place.is_link() => {
                let missing = place.canonical_missing()?;
                for usage in usages {
                    missing.check_missing(usage)?;
                }
                missing
            }
            real => {
                let real = real?;
                for usage in usages {
                    place.check_real(usage, &real)?;
                }
                real
            }
        };
        let real = real.absolute().to_string_lossy().into_owned();
        if let Some(arguments) = input.as_object_mut() {
            arguments.insert(argument.to_owned(), Value::String(real));
        }
        Ok(input)
    }
}

/// When a path is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before the call: a person may be asked about it.
    Before,
    Now,
}

#[async_trait]
impl Tool for HostTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn preview(&self, input: &Value) -> Option<String> {
        let input = self.placed(input.clone(), When::Before).ok()?;
        self.tool.preview(&input).await
    }

    async fn refusal(&self, input: &Value, seen: Option<&SeenFiles>) -> Option<String> {
        match self.placed(input.clone(), When::Before) {
            Ok(input) => self.tool.refusal(&input, seen).await,
            Err(Failure(why)) => Some(why),
        }
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        match self.placed(input, When::Now) {
            Ok(input) => self.tool.call(input, context).await,
            Err(failure) => answer(Err(failure)),
        }
    }
}
