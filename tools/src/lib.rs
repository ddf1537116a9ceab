//! What agents can do: files, search, shell. And the one launcher that starts every child process.
//!
//! A host opens a [`Workspace`] once and asks for a [`toolset`] per run, which may have a
//! [`Scratch`] folder of its own. Files are reached by handle beneath these folders, never by a
//! path that could lead out of them. Only a host that holds a [`launch::Launcher`] can give its
//! agents a shell.
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

use built_in::{BuiltIn, Run};
use confine::Confinement;
use host_tool::HostTool;
use launch::Launcher;
use posse_agent::Tool;
use posse_protocol::ToolSpec;
use std::sync::Arc;

/// The tools, in the order in which a model is offered them.
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

/// What the tools that come with Posse say of themselves, before any is made for a run.
pub fn specs() -> impl Iterator<Item = &'static ToolSpec> {
    const ALL: &[BuiltIn] = &TOOLS;
    ALL.iter().map(|tool| &**tool.spec)
}

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
    toolset_obeying(workspace, scratch, read_only, launcher, confinement, None, &[])
}

/// The same with the tools of a host besides, where tools use no file that `rules` refuse.
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
