//! The trait through which the loop calls a tool, and the table of tools.

use crate::{Claim, SeenFiles};
use async_trait::async_trait;
use posse_protocol::{CallId, Delta, RunId, TimeAtWork, ToolOutput, ToolSpec};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Something an agent can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The tool's description of itself.
    fn spec(&self) -> &ToolSpec;

    /// A full preview of a call for the person who decides about it, such as a command or a diff.
    /// Changes nothing. `None` if the arguments say everything; they are also shown if this panics,
    /// takes longer than three seconds or returns more than 256 KiB. It is dropped when the run has to stop.
    async fn preview(&self, _input: &Value) -> Option<String> {
        None
    }

    /// Why the tool would refuse a call whatever a person decides, so that Posse need not ask. `None`
    /// if a person decides. Changes nothing, and has the same time as [`Tool::preview`]. `seen` are the
    /// files that the run has read or written; `None` if an earlier call may still read some.
    async fn refusal(&self, _input: &Value, _seen: Option<&SeenFiles>) -> Option<String> {
        None
    }

    /// Executes the call. A failure is an [`Answer::Done`] marked as error, which the model sees. It
    /// must return soon after `context.cancel` fires, and leave nothing running.
    async fn call(&self, input: Value, context: &ToolContext) -> Answer;
}

/// The answer of a tool: the result, or a note that it comes later.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The result.
    Done(ToolOutput),
    /// Another process or run will append the result to the log later.
    Pending {
        /// What the call waits for, for people to read.
        waits_for: String,
    },
}

impl From<ToolOutput> for Answer {
    fn from(output: ToolOutput) -> Self {
        Answer::Done(output)
    }
}

/// The context of a call: its run, its id, and how to report progress.
#[derive(Clone)]
pub struct ToolContext {
    /// The run that makes the call.
    pub run: RunId,
    /// The id of the call.
    pub call: CallId,
    /// The number of the reply that made the call, counted from the first reply of the run. Models
    /// choose the ids of calls, and some use an id twice.
    pub turn: u64,
    /// How long the run has worked, and how much time it has left.
    pub time: TimeAtWork,
    /// How many bytes the run's tools may still write to disk, if that is limited.
    pub writable_bytes: Option<u64>,
    /// The files that the run has read or written before this call.
    pub seen: SeenFiles,
    /// Whether this process still owns the run, to be checked right before an effect.
    pub claim: Claim,
    /// Fires when the call has to stop.
    pub cancel: CancellationToken,
    /// Receives progress to show. Must not block.
    pub deltas: Arc<dyn Fn(Delta) + Send + Sync>,
}

impl ToolContext {
    /// Shows `text` as progress of this call.
    pub fn progress(&self, text: impl Into<String>) {
        (self.deltas)(Delta::ToolProgress { call: self.call.clone(), text: text.into() });
    }
}

/// Tools by name and alias.
///
/// Each run has its own table with few tools, so a linear search costs less than an index.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    /// Names of tools that are not in the table, and the reason.
    absent: Option<(&'static [&'static str], String)>,
}

impl Toolbox {
    /// A table of `tools`. If two tools have the same name, the first one wins.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut kept: Vec<Arc<dyn Tool>> = Vec::with_capacity(tools.len());
        for tool in tools {
            if kept.iter().all(|known| known.spec().name != tool.spec().name) {
                kept.push(tool);
            }
        }
        Toolbox { tools: kept, absent: None }
    }

    /// The same table, which answers calls of `names` with the reason `why` they are missing.
    pub fn without(self, names: &'static [&'static str], why: String) -> Self {
        Toolbox { absent: Some((names, why)), ..self }
    }

    /// The reason why there is no tool `name`, if there is a special one.
    pub(crate) fn why_absent(&self, name: &str) -> Option<&str> {
        let (names, why) = self.absent.as_ref()?;
        names.contains(&name).then_some(why)
    }

    /// The tool with the name or alias `name`, whether granted or not.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let named = self.tools.iter().find(|tool| tool.spec().name == name);
        named.or_else(|| self.tools.iter().find(|tool| tool.spec().answers_to(name)))
    }

    /// The specs of the tools `names`, in the order of this table, for the model.
    pub fn offered(&self, names: &[String]) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|tool| tool.spec()).filter(|spec| names.contains(&spec.name))
    }

    /// The names of all tools, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.spec().name.as_str())
    }
}
