//! What the loop needs of a tool, and the table it finds tools in.

use crate::{Claim, SeenFiles};
use async_trait::async_trait;
use posse_protocol::{CallId, Delta, RunId, TimeAtWork, ToolOutput, ToolSpec};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Something an agent can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it says about itself.
    fn spec(&self) -> &ToolSpec;

    /// What a call would do, whole, for a person who is asked about it: a command, a difference.
    /// Changes nothing. Nothing when the arguments say it all. They are shown too where this panics,
    /// takes longer than three seconds or gives more than 256 KiB; when the run is to stop, it is dropped.
    async fn preview(&self, _input: &Value) -> Option<String> {
        None
    }

    /// Why a call would be refused whatever a person says of it, so that nobody is asked. Changes
    /// nothing, and has the time of [`Tool::preview`]. Nothing when a person decides. `seen` are the
    /// files that the run has read or written; nothing when another call may still read some before.
    async fn refusal(&self, _input: &Value, _seen: Option<&SeenFiles>) -> Option<String> {
        None
    }

    /// Does it. A failure is an [`Answer::Done`] marked as error, which the model sees. Returns
    /// soon after `context.cancel` fires, leaving nothing behind.
    async fn call(&self, input: Value, context: &ToolContext) -> Answer;
}

/// The answer of a tool: the result, or a note that it comes later.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Its result.
    Done(ToolOutput),
    /// Its result will be appended to the log later, by someone else.
    Pending {
        /// What it waits for, in words for people.
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
    /// The run that calls.
    pub run: RunId,
    /// Which call.
    pub call: CallId,
    /// The reply that made it, counted from the run's first: the ids of calls are the model's, and
    /// some models use them again.
    pub turn: u64,
    /// How it stands with the run's time.
    pub time: TimeAtWork,
    /// How many bytes the run's tools may still write to disks, where that is limited.
    pub writable_bytes: Option<u64>,
    /// The files that the run has read or written before this call.
    pub seen: SeenFiles,
    /// Whether the run is still this process's, to be asked right before an effect.
    pub claim: Claim,
    /// Fires when the call is to stop.
    pub cancel: CancellationToken,
    /// Takes progress to show. Must not block.
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
/// There are few of them and one is made for each run, so that looking through the list costs
/// less than an index would.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    /// Names of tools that are not here, and why.
    absent: Option<(&'static [&'static str], String)>,
}

impl Toolbox {
    /// A table of `tools`. Where two claim the same name, the first has it and the other is left
    /// out.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut kept: Vec<Arc<dyn Tool>> = Vec::with_capacity(tools.len());
        for tool in tools {
            if kept.iter().all(|known| known.spec().name != tool.spec().name) {
                kept.push(tool);
            }
        }
        Toolbox { tools: kept, absent: None }
    }

    /// The same; whoever calls one of `names` is told `why` there is none.
    pub fn without(self, names: &'static [&'static str], why: String) -> Self {
        Toolbox { absent: Some((names, why)), ..self }
    }

    /// Why there is no tool called `name`, if there is more to say than that.
    pub(crate) fn why_absent(&self, name: &str) -> Option<&str> {
        let (names, why) = self.absent.as_ref()?;
        names.contains(&name).then_some(why)
    }

    /// The tool that answers to `name`, whether granted or not.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let named = self.tools.iter().find(|tool| tool.spec().name == name);
        named.or_else(|| self.tools.iter().find(|tool| tool.spec().answers_to(name)))
    }

    /// The tools called `names`, in the order of this table: what the model is offered.
    pub fn offered(&self, names: &[String]) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(|tool| tool.spec()).filter(|spec| names.contains(&spec.name))
    }

    /// The names of all tools, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.spec().name.as_str())
    }
}
