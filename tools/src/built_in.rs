//! What a tool that comes with Posse is, and what it is made of for a run. Its file has the rest.

use crate::confine::Confinement;
use crate::launch::Launcher;
use crate::path_rules::PathRules;
use crate::place::RunFiles;
use crate::read_only::ReadOnly;
use crate::scratch::Scratch;
use crate::workspace::Workspace;
use posse_agent::Tool;
use posse_protocol::ToolSpec;
use std::sync::{Arc, LazyLock};

/// A tool that comes with Posse.
pub(crate) struct BuiltIn {
    /// What it says of itself.
    pub spec: &'static LazyLock<ToolSpec>,
    /// Makes it for a run; nothing where it cannot be had.
    pub make: fn(&Run<'_>) -> Option<Arc<dyn Tool>>,
}

/// What tools are made of for one run.
pub(crate) struct Run<'r> {
    pub workspace: Arc<Workspace>,
    pub scratch: Option<Scratch>,
    pub read_only: Vec<ReadOnly>,
    pub rules: Option<Arc<dyn PathRules>>,
    pub launcher: Option<&'r Launcher>,
    pub confinement: &'r Confinement,
}

impl Run<'_> {
    /// The folders of the run, in the hands of the tool that `spec` describes.
    pub(crate) fn files(&self, spec: &ToolSpec) -> Arc<RunFiles> {
        Arc::new(RunFiles {
            tool: spec.name.clone(),
            workspace: self.workspace.clone(),
            scratch: self.scratch.clone(),
            read_only: self.read_only.clone(),
            rules: self.rules.clone(),
        })
    }
}
