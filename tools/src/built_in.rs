//! The built-in tools: their common form, and what they need from a run. Each tool has its own file.

use crate::confine::{Confinement, FileRules};
use crate::launch::Launcher;
use crate::path_rules::PathRules;
use crate::read_only::ReadOnly;
use crate::run_path::RunFiles;
use crate::scratch::Scratch;
use crate::workspace::Workspace;
use posse_agent::Tool;
use posse_protocol::ToolSpec;
use std::sync::{Arc, LazyLock};

/// A built-in tool.
pub(crate) struct BuiltIn {
    /// Its specification.
    pub spec: &'static LazyLock<ToolSpec>,
    /// Creates it for a run; `None` if it is unavailable.
    pub make: fn(&Run<'_>) -> Option<Arc<dyn Tool>>,
}

/// What tools need from one run.
pub(crate) struct Run<'r> {
    pub workspace: Arc<Workspace>,
    pub scratch: Option<Scratch>,
    pub read_only: Vec<ReadOnly>,
    pub rules: Option<Arc<dyn PathRules>>,
    pub launcher: Option<&'r Launcher>,
    pub confinement: &'r Confinement,
}

impl<'r> Run<'r> {
    /// A run in these folders. `confinement` applies to its commands, and its tools use no file that
    /// `rules` refuses.
    pub(crate) fn new(
        workspace: &Arc<Workspace>,
        scratch: Option<&Scratch>,
        read_only: Vec<ReadOnly>,
        launcher: Option<&'r Launcher>,
        confinement: &'r Confinement,
        rules: Option<Arc<dyn PathRules>>,
    ) -> Self {
        let (homes, hidden) = launcher.map(Launcher::secrets).unwrap_or_default();
        let roots = [workspace.path()].into_iter().chain(scratch.map(Scratch::path));
        let roots: Vec<_> = roots.chain(read_only.iter().map(ReadOnly::path)).collect();
        let rules = FileRules::new(confinement, &roots, &homes, &hidden, rules);
        let commands = launcher.map(Launcher::ended_commands).unwrap_or_default();
        let rules = rules.renewed_after(commands);
        let rules: Option<Arc<dyn PathRules>> = Some(Arc::new(rules));
        let (workspace, scratch) = (workspace.clone(), scratch.cloned());
        Run { workspace, scratch, read_only, rules, launcher, confinement }
    }

    /// The folders of the run, for the tool called `tool`.
    pub(crate) fn files(&self, tool: &str) -> Arc<RunFiles> {
        Arc::new(RunFiles {
            tool: tool.to_owned(),
            workspace: self.workspace.clone(),
            scratch: self.scratch.clone(),
            read_only: self.read_only.clone(),
            rules: self.rules.clone(),
        })
    }
}
