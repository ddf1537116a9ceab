//! The built-in tools of agents: files, search, shell. And the one launcher that starts every child
//! process.
//!
//! A host opens a [`Workspace`] once, and makes a [`toolset`] for each run, which may have its own
//! [`Scratch`] folder. The tools open files relative to these folders, so no path leads out of
//! them. A host needs a [`launch::Launcher`] to give its agents a shell.
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
mod scratch;
mod seen;
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
pub use workspace::Workspace;

use confine::{Confinement, FileRules};
use launch::Launcher;
use place::RunFiles;
use posse_agent::Tool;
use std::sync::{Arc, OnceLock};

/// Returns the tools of one run, in the order in which Posse offers them to a model. Commands may
/// change the workspace and have no network.
///
/// An edit needs content that the run has read: each call reports the files it has read, and gets
/// those of earlier calls ([`posse_agent::ToolContext::seen`]). The file tools can also use the
/// scratch folder, by its absolute path, and commands see it as `$TMPDIR` and `$POSSE_SCRATCH`.
/// The scratch folder must belong to this run only. Without a launcher, there is no `Bash`.
pub fn toolset(
    workspace: &Arc<Workspace>,
    scratch: Option<&Scratch>,
    launcher: Option<&Launcher>,
) -> Vec<Arc<dyn Tool>> {
    let confinement = Confinement::workspace_write();
    toolset_within(workspace, scratch, Vec::new(), launcher, &confinement)
}

/// Like [`toolset`], with another confinement, and with additional folders that the file tools can
/// read, by absolute paths, but not write. If this machine cannot confine commands like this, there
/// is no `Bash`.
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
    let (homes, hidden) = launcher.map(Launcher::secrets).unwrap_or_default();
    let roots = [workspace.path()].into_iter().chain(scratch.map(Scratch::path));
    let roots: Vec<_> = roots.chain(read_only.iter().map(ReadOnly::path)).collect();
    let rules = FileRules::new(confinement, &roots, &homes, &hidden, rules);
    let rules: Option<Arc<dyn PathRules>> = Some(Arc::new(rules));
    let (workspace, scratch) = (workspace.clone(), scratch.cloned());
    let files = Arc::new(RunFiles { workspace, scratch, read_only, rules });
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
        let (launcher, confinement) = (launcher.clone(), confinement.clone());
        tools.push(Arc::new(bash::Bash {
            files,
            launcher,
            confinement,
            folds_case: OnceLock::new(),
        }));
    }
    tools
}
