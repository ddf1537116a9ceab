//! What agents can do: files, search, shell. And the one launcher that starts every child process.
//!
//! A host opens a [`Workspace`] once and asks for a [`toolset`] per run. Files are reached by
//! handle beneath the workspace, never by a path that could lead out of it. Only a host that
//! holds a [`launch::Launcher`] can give its agents a shell.
//!
//! To add a tool, write a file beside `read.rs` and a line in [`toolset`].

mod arguments;
mod bash;
mod blocking;
mod edit;
mod failure;
mod glob;
mod grep;
mod kind;
pub mod launch;
mod linux;
mod list;
mod pattern;
mod read;
mod replace;
mod seen;
mod text;
mod walk;
mod workspace;
mod write;

pub use failure::ToolError;
pub use workspace::Workspace;

use launch::Launcher;
use posse_agent::Tool;
use seen::Seen;
use std::sync::Arc;

/// What the tools of one run share: the workspace, and what the run knows of its files.
struct RunFiles {
    workspace: Arc<Workspace>,
    seen: Seen,
}

/// The tools of one run, in the order in which a model is offered them.
///
/// Make a new set for each run: it remembers which files the run has read, so that no edit is
/// based on content the run never saw. Without a launcher there is no Bash.
pub fn toolset(workspace: &Arc<Workspace>, launcher: Option<&Launcher>) -> Vec<Arc<dyn Tool>> {
    let files = Arc::new(RunFiles { workspace: workspace.clone(), seen: Seen::default() });
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(read::Read { files: files.clone() }),
        Arc::new(write::Write { files: files.clone() }),
        Arc::new(edit::Edit { files }),
        Arc::new(glob::Glob { workspace: workspace.clone() }),
        Arc::new(grep::Grep { workspace: workspace.clone() }),
        Arc::new(list::List { workspace: workspace.clone() }),
    ];
    if let Some(launcher) = launcher {
        let (workspace, launcher) = (workspace.clone(), launcher.clone());
        tools.push(Arc::new(bash::Bash { workspace, launcher }));
    }
    tools
}
