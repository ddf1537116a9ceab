//! What agents can do: files, search, shell. And the one launcher that starts every child process.
//!
//! A host opens a [`Workspace`] once and asks for a [`toolset`] per run, which may have a
//! [`Scratch`] folder of its own. Files are reached by handle beneath these folders, never by a
//! path that could lead out of them. Only a host that holds a [`launch::Launcher`] can give its
//! agents a shell.
//!
//! To add a tool, write a file beside `read.rs` and a line in [`toolset`].

mod arguments;
mod bash;
mod blocking;
mod change;
pub mod confine;
mod edit;
pub mod egress;
mod failure;
mod glob;
mod grep;
mod kind;
pub mod launch;
mod linux;
mod list;
mod path_rules;
mod pattern;
mod place;
mod read;
mod read_only;
mod remove;
mod replace;
mod sandbox;
mod scratch;
mod seen;
mod source;
mod text;
pub mod todo;
mod unseen;
mod walk;
mod workspace;
mod write;

pub use failure::ToolError;
pub use path_rules::{PathRules, Reached, TooMuch, Usage};
pub use read_only::ReadOnly;
pub use remove::remove_folder;
pub use scratch::Scratch;
pub use source::{OpenSource, Program, SourceContext, SourceError, ToolSource};
pub use workspace::Workspace;

use confine::{Confinement, FileRules};
use launch::Launcher;
use place::RunFiles;
use posse_agent::Tool;
use sandbox::Sandbox;
use std::sync::Arc;

/// The tools of one run, in the order in which a model is offered them. Commands may change the
/// workspace and have no network.
///
/// An edit is never based on content that the run did not see: each call says which files it has
/// seen, and is given those of the calls before it ([`posse_agent::ToolContext::seen`]). With a
/// scratch folder, which must be the run's own, the file tools reach that too, by its absolute path, and commands have it as `$TMPDIR` and
/// `$POSSE_SCRATCH`. Without a launcher there is no Bash.
pub fn toolset(
    workspace: &Arc<Workspace>,
    scratch: Option<&Scratch>,
    launcher: Option<&Launcher>,
) -> Vec<Arc<dyn Tool>> {
    let confinement = Confinement::workspace_write();
    toolset_within(workspace, scratch, Vec::new(), launcher, &confinement)
}

/// The same within another confinement, and with folders besides that can be read, by absolute
/// paths, and not written. Where commands cannot be confined like this there is no Bash.
pub fn toolset_within(
    workspace: &Arc<Workspace>,
    scratch: Option<&Scratch>,
    read_only: Vec<ReadOnly>,
    launcher: Option<&Launcher>,
    confinement: &Confinement,
) -> Vec<Arc<dyn Tool>> {
    toolset_obeying(workspace, scratch, read_only, launcher, confinement, None)
}

/// The same, where the file tools use no file that `rules` refuse.
pub fn toolset_obeying(
    workspace: &Arc<Workspace>,
    scratch: Option<&Scratch>,
    read_only: Vec<ReadOnly>,
    launcher: Option<&Launcher>,
    confinement: &Confinement,
    rules: Option<Arc<dyn PathRules>>,
) -> Vec<Arc<dyn Tool>> {
    let files = run_files(workspace, scratch, read_only, launcher, confinement, rules);
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(read::Read { files: files.clone() }),
        Arc::new(write::Write { files: files.clone() }),
        Arc::new(edit::Edit { files: files.clone() }),
        Arc::new(glob::Glob { files: files.clone() }),
        Arc::new(grep::Grep { files: files.clone() }),
        Arc::new(list::List { files: files.clone() }),
        Arc::new(todo::TodoWrite),
    ];
    if let Some(launcher) = launcher.filter(|launcher| launcher.offers(confinement)) {
        let sandbox = Sandbox::new(files, confinement.clone());
        tools.push(Arc::new(bash::Bash { sandbox, launcher: launcher.clone() }));
    }
    tools
}

/// What the tools of a run share.
fn run_files(
    workspace: &Arc<Workspace>,
    scratch: Option<&Scratch>,
    read_only: Vec<ReadOnly>,
    launcher: Option<&Launcher>,
    confinement: &Confinement,
    rules: Option<Arc<dyn PathRules>>,
) -> Arc<RunFiles> {
    let (homes, hidden) = launcher.map(Launcher::secrets).unwrap_or_default();
    let roots = [workspace.path()].into_iter().chain(scratch.map(Scratch::path));
    let roots: Vec<_> = roots.chain(read_only.iter().map(ReadOnly::path)).collect();
    let rules = FileRules::new(confinement, &roots, &homes, &hidden, rules);
    let rules: Option<Arc<dyn PathRules>> = Some(Arc::new(rules));
    let (workspace, scratch) = (workspace.clone(), scratch.cloned());
    Arc::new(RunFiles { workspace, scratch, read_only, rules })
}
