//! The built-in tools of agents (files, search, shell), and the launcher that starts every child
//! process.
//!
//! A host opens a [`Workspace`] once, and makes a [`toolset`] for each run, which may have its own
//! [`Scratch`] folder. The tools open files relative to these folders, so no path leads out of
//! them. A host needs a [`launch::Launcher`] to give its agents a shell.
//!
//! To add a tool, write a file beside `read.rs` and a line in the list below.

mod arguments;
mod bash;
mod blocking;
mod built_in;
mod change;
pub mod confine;
mod edit;
pub mod egress;
mod failure;
mod glob;
mod grep;
mod host_tool;
mod kind;
pub mod launch;
mod linux;
mod list;
pub mod mcp;
mod path_rules;
mod pattern;
mod read;
mod read_only;
mod reader;
mod remove;
mod replace;
mod run_path;
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
pub use reader::{Reader, TextFile, Unread, why_denied};
pub use remove::remove_folder;
pub use scratch::Scratch;
pub use source::{OpenSource, Program, SourceContext, SourceError, ToolSource};
pub use workspace::Workspace;

use built_in::{BuiltIn, Run};
use confine::Confinement;
use host_tool::HostTool;
use launch::Launcher;
use posse_agent::Tool;
use posse_protocol::ToolSpec;
use std::sync::Arc;

/// The built-in tools, in the order in which Posse offers them to a model.
const TOOLS: [BuiltIn; 8] = [
    read::TOOL,
    write::TOOL,
    edit::TOOL,
    glob::TOOL,
    grep::TOOL,
    list::TOOL,
    todo::TOOL,
    bash::TOOL,
];

/// Returns the specifications of the built-in tools. It needs no run.
pub fn specs() -> impl Iterator<Item = &'static ToolSpec> {
    const ALL: &[BuiltIn] = &TOOLS;
    ALL.iter().map(|tool| &**tool.spec)
}

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
    toolset_obeying(workspace, scratch, read_only, launcher, confinement, None, &[])
}

/// Like [`toolset_within`], with the host's own tools added. Tools use no file that `rules` refuses.
pub fn toolset_obeying(
    workspace: &Arc<Workspace>,
    scratch: Option<&Scratch>,
    read_only: Vec<ReadOnly>,
    launcher: Option<&Launcher>,
    confinement: &Confinement,
    rules: Option<Arc<dyn PathRules>>,
    host: &[Arc<dyn Tool>],
) -> Vec<Arc<dyn Tool>> {
    let run = Run::new(workspace, scratch, read_only, launcher, confinement, rules);
    let built_in = TOOLS.iter().filter_map(|tool| (tool.make)(&run));
    let host = host.iter().map(|tool| match HostTool::is_needed(&**tool) {
        true => Arc::new(HostTool { tool: tool.clone(), files: run.files(&tool.spec().name) }),
        false => tool.clone(),
    });
    built_in.chain(host).collect()
}
