//! The messages of a query: the events of a run, in a form for programs that ask a question.

use crate::error::Error;
use crate::handle::RunHandle;
use posse_protocol::{
    AgentName, CallId, Delta, Event, Message as Said, Outcome, RunId, RunStarted, ToolOutput, Usd,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;

/// Something that an agent said or did. Its JSON has the variant in `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// The run has begun. Always the first.
    Started(Started),
    /// A piece of something in progress: text, reasoning, the output of a tool. A slow reader may
    /// miss some; the complete message follows.
    Delta(Delta),
    /// The model has replied: with text, and the tools that it wants to call.
    Assistant {
        /// The reply.
        message: Said,
    },
    /// A call has its result.
    ToolResult {
        /// Which call.
        call: CallId,
        /// The tool, by the name the model used.
        tool: String,
        /// The result that the model gets.
        output: ToolOutput,
    },
    /// The agent started a subagent. The answer of the subagent is the result of the call.
    Delegated {
        /// Its run.
        run: RunId,
        /// Which agent.
        agent: AgentName,
        /// Its task, in a few words.
        label: String,
    },
    /// The run has ended. Always the last.
    Result(Summary),
}

/// How a query began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The run that answers.
    pub run: RunId,
    /// The agent that answers.
    pub agent: AgentName,
    /// Its model, as `vendor/name`.
    pub model: String,
    /// The folder it works in.
    pub workspace: String,
    /// The tools it may call.
    pub tools: Vec<String>,
    /// The agents it may hand work to.
    pub agents: Vec<AgentName>,
    /// Warnings about the agents that the query defines: tools that do not exist, fields without
    /// effect yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Started {
    fn new(run: RunId, started: &RunStarted, warnings: Vec<String>) -> Self {
        let offers = started.grant.delegation.iter().flat_map(|delegation| &delegation.agents);
        Started {
            run,
            agent: started.agent.name.clone(),
            model: started.model.clone(),
            workspace: started.grant.workspace.clone(),
            tools: started.grant.tools.clone(),
            agents: offers.map(|offer| offer.name.clone()).collect(),
            warnings,
        }
    }
}

/// The answer to a question, and what it cost. Tokens, money and calls are those of the run and all
/// its subagents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The run that answered.
    pub run: RunId,
    /// How it ended. An outcome other than completed is no answer, but may contain a part of one.
    pub outcome: Outcome,
    /// Tokens sent, cached or not.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Known cost; zero if the price is unknown.
    pub cost: Usd,
    /// The most that interrupted calls may have cost in addition.
    #[serde(default)]
    pub uncertain_cost: Usd,
    /// Model calls.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Its subagents.
    pub children: usize,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

impl Summary {
    /// The answer, or the part of it that exists. Empty if the agent said nothing.
    pub fn text(&self) -> &str {
        self.outcome.text()
    }

    pub(super) async fn of(
        run: &RunHandle,
        outcome: Outcome,
        took: Duration,
    ) -> Result<Self, Error> {
        let mut summary = Summary {
            run: run.id(),
            outcome,
            input_tokens: 0,
            output_tokens: 0,
            cost: Usd::ZERO,
            uncertain_cost: Usd::ZERO,
            turns: 0,
            tool_calls: 0,
            children: 0,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        for row in run.tree().await? {
            let (known, (uncertain, _)) = (row.known(), row.unsure());
            summary.input_tokens += known.input_tokens;
            summary.output_tokens += known.output_tokens;
            summary.cost += known.cost;
            summary.uncertain_cost += uncertain.cost;
            summary.turns += row.spending.turns;
            summary.tool_calls += row.spending.tool_calls;
            summary.children += usize::from(row.id != run.id());
        }
        Ok(summary)
    }
}

/// Turns the events of a run into messages.
pub(super) struct MessageBuilder {
    run: RunId,
    warnings: Vec<String>,
    /// The tools that the last reply called.
    called: HashMap<CallId, String>,
}

impl MessageBuilder {
    pub(super) fn new(run: RunId, warnings: Vec<String>) -> Self {
        MessageBuilder { run, warnings, called: HashMap::new() }
    }

    /// Returns the message for `event`, if there is one.
    pub(super) fn tell(&mut self, event: Event) -> Option<Message> {
        match event {
            Event::RunStarted(started) => {
                let warnings = std::mem::take(&mut self.warnings);
                Some(Message::Started(Started::new(self.run, &started, warnings)))
            }
            Event::ModelReplied(replied) => {
                let calls = replied.message.tool_calls();
                self.called = calls.map(|call| (call.id.clone(), call.name.clone())).collect();
                Some(Message::Assistant { message: replied.message })
            }
            Event::ToolFinished(finished) => {
                let tool = self.called.get(&finished.call).cloned().unwrap_or_default();
                Some(Message::ToolResult { call: finished.call, tool, output: finished.output })
            }
            Event::ChildStarted(child) => {
                Some(Message::Delegated { run: child.run, agent: child.agent, label: child.label })
            }
            _ => None,
        }
    }
}
