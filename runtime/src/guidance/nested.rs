//! Guidance files of subfolders: a run gets them with the result of its first call that reads or
//! changes a file there, each once. What it got follows from the files that its log says it has seen.

use super::search::{Limits, Search};
use super::{GuidanceSources, block};
use crate::config::Guidance;
use crate::files::up_to_root;
use crate::redact::Redactor;
use async_trait::async_trait;
use parking_lot::Mutex;
use posse_agent::{Answer, SeenFiles, Tool, ToolContext};
use posse_protocol::{
    About, Extra, GuidanceFile, Part, RunStarted, SeenFile, Site, ToolOutput, ToolSpec,
};
use posse_tools::PathRules;
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The guidance files of the folders below the workspace of one run.
pub(crate) struct Nested {
    workspace: PathBuf,
    home: Option<PathBuf>,
    rules: Option<Arc<dyn PathRules>>,
    given: Mutex<Given>,
}

/// What the run has got.
#[derive(Default)]
struct Given {
    /// The folders that were searched.
    folders: HashSet<PathBuf>,
    files: HashSet<PathBuf>,
    hashes: HashSet<String>,
}

impl Nested {
    /// Returns those for a run that began as `started`; `None` if it gets no files of its project.
    pub(crate) fn of(
        started: &RunStarted,
        sources: impl FnOnce() -> GuidanceSources,
        rules: &Option<Arc<dyn PathRules>>,
    ) -> Option<Arc<Self>> {
        if started.agent.start.omit_guidance || started.grant.site == Site::Nowhere {
            return None;
        }
        let sources = Some(sources()).filter(|it| !it.is_empty() && it.which() == Guidance::All)?;
        let given = Given {
            files: started.guidance.iter().map(|file| PathBuf::from(&file.path)).collect(),
            hashes: started.guidance.iter().map(|file| file.hash.clone()).collect(),
            folders: HashSet::new(),
        };
        let workspace = PathBuf::from(&started.grant.workspace);
        Some(Arc::new(Nested {
            workspace: workspace.canonicalize().unwrap_or(workspace),
            home: sources.home,
            rules: rules.clone(),
            given: Mutex::new(given),
        }))
    }

    /// Returns `tool`, with guidance files after its results if its calls are about files.
    pub(crate) fn around(self: &Arc<Self>, tool: &Arc<dyn Tool>) -> Arc<dyn Tool> {
        match &tool.spec().about {
            Some(About::File(path)) => {
                let (tool, argument) = (tool.clone(), path.clone());
                Arc::new(Guided { tool, argument, nested: self.clone() })
            }
            _ => tool.clone(),
        }
    }

    /// Returns the folders from the workspace down to those of `paths` that were not searched yet.
    fn new_folders(&self, paths: &[String]) -> Vec<PathBuf> {
        let mut given = self.given.lock();
        let mut new = Vec::new();
        for path in paths {
            let path = Path::new(path);
            let below = path.strip_prefix(&self.workspace).unwrap_or(path);
            let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
            if !below.components().all(is_plain) {
                continue;
            }
            let folder = self.workspace.join(below);
            let above = folder.ancestors().skip(1);
            let inside = above.take_while(|folder| folder.starts_with(&self.workspace));
            let mut unknown: Vec<PathBuf> = inside
                .filter(|folder| given.folders.insert((*folder).to_owned()))
                .map(Path::to_owned)
                .collect();
            unknown.reverse();
            new.extend(unknown);
        }
        new
    }

    /// Returns the new guidance files of `folders`, for a run that has `seen` these files and now reads
    /// those in `read`.
    fn read(&self, folders: &[PathBuf], seen: &SeenFiles, read: &[SeenFile]) -> Vec<GuidanceFile> {
        let top = up_to_root(&self.workspace).pop();
        let (which, rules) = (Guidance::All, self.rules.clone());
        // The results of tools are redacted.
        let limits = Limits { which, rules, redactor: Redactor::default() };
        let mut given = self.given.lock();
        let mut search = Search::below(top.as_deref(), &self.home, limits);
        search.known.clone_from(&given.files);
        search.hashes.clone_from(&given.hashes);
        search.hashes.extend(read.iter().map(|file| file.hash.clone()));
        for folder in folders {
            search.add_folder(folder);
        }
        let mut found = search.end();
        found.retain(|file| seen.hash_of(&self.name(file)).is_none());
        given.files.extend(found.iter().map(|file| PathBuf::from(&file.path)));
        given.hashes.extend(found.iter().map(|file| file.hash.clone()));
        found
    }

    /// Returns the path of `file` as tools name it.
    fn name(&self, file: &GuidanceFile) -> String {
        let path = Path::new(&file.path);
        path.strip_prefix(&self.workspace).unwrap_or(path).display().to_string()
    }

    /// Adds `files` to `output`.
    fn add(&self, files: &[GuidanceFile], output: &mut ToolOutput) {
        for file in files {
            let Some(block) = block(file) else { continue };
            let name = self.name(file);
            let text = format!("[{name} is guidance for the files in its folder.]\n{block}");
            output.parts.push(Part::text(text));
            // The agent does not know a file of which a part is missing.
            if file.note.is_empty() {
                let (hash, extra) = (file.hash.clone(), Extra::default());
                output.seen.push(SeenFile { path: name, hash, extra });
            }
        }
    }
}

/// A tool whose results are followed by guidance files.
struct Guided {
    tool: Arc<dyn Tool>,
    /// The argument with the path.
    argument: String,
    nested: Arc<Nested>,
}

#[async_trait]
impl Tool for Guided {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn preview(&self, input: &Value) -> Option<String> {
        self.tool.preview(input).await
    }

    async fn refusal(&self, input: &Value, seen: Option<&SeenFiles>) -> Option<String> {
        self.tool.refusal(input, seen).await
    }

    async fn call(&self, input: Value, context: &ToolContext) -> Answer {
        let named = input.get(&self.argument).and_then(Value::as_str).map(str::to_owned);
        let mut output = match self.tool.call(input, context).await {
            Answer::Done(output) if !output.is_error => output,
            other => return other,
        };
        let paths = output.seen.iter().map(|file| file.path.clone()).chain(named);
        let folders = self.nested.new_folders(&paths.collect::<Vec<_>>());
        if folders.is_empty() {
            return output.into();
        }
        let (nested, seen, read) = (self.nested.clone(), context.seen.clone(), output.seen.clone());
        let work = move || nested.read(&folders, &seen, &read);
        // A search that fails takes nothing from the result of the call.
        let found = tokio::task::spawn_blocking(work).await.unwrap_or_default();
        self.nested.add(&found, &mut output);
        output.into()
    }
}
