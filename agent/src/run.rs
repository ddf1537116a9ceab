//! The loop: decide, do, record, until the run waits or ends.
//!
//! Main agents and subagents, streaming and not, the first start and the hundredth resume: all
//! of them are this one function. It knows a model, tools, a journal and a guard, and nothing else.

mod shift;

use crate::desk::Draw;
use crate::schema::Verdict;
use crate::step::{Step, next_step};
use crate::{Guard, Journal, JournalError, Model, Patience, Toolbox};
use posse_protocol::{Delta, Effort, Grant, Limits, Outcome, RunId, Sender, Seq, ToolSpec};
use serde_json::Value;
use shift::Shift;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// An agent ready to work: what it is told, its model, its tools, how far it may go.
pub struct Agent {
    /// The run it works on.
    pub run: RunId,
    /// Its instructions.
    pub system: Arc<str>,
    /// Its model.
    pub model: Arc<dyn Model>,
    /// The models to go on with, in this order, when that one cannot be had.
    pub fallbacks: Vec<Arc<dyn Model>>,
    /// How long it puts up with a provider in trouble.
    pub patience: Patience,
    /// How hard its model is to think.
    pub effort: Option<Effort>,
    /// The JSON Schema of its final answer.
    pub output_schema: Option<Arc<Value>>,
    /// Every tool there is.
    pub tools: Toolbox,
    /// What the model is shown of them.
    pub offered: Arc<[ToolSpec]>,
    /// What it may call of them.
    pub grant: Grant,
    /// Decides about each call.
    pub guard: Arc<dyn Guard>,
    /// How far it may go.
    pub limits: Limits,
    /// Takes what is shown and never stored. Must not block.
    pub deltas: Arc<dyn Fn(Delta) + Send + Sync>,
}

/// Why [`run`] returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The run ended.
    Finished(Outcome),
    /// There is nothing to do until something is appended after `seen`.
    Waiting {
        /// The last event that was considered.
        seen: Seq,
        /// How many calls wait for a result that someone else will append.
        calls: u32,
    },
    /// `stop` fired; the run goes on when `run` is called again.
    Stopped,
    /// Another model was asked for: the run goes on with an agent that has it.
    OtherModel(String),
}

/// Works on a run until it ends, waits, or `stop` fires, which is looked at between steps.
///
/// Dropping the future stops what is under way at once; the log then says what was begun.
///
/// # Errors
/// When the journal fails, or another process owns the run.
pub async fn run(
    agent: &Agent,
    journal: &dyn Journal,
    stop: &CancellationToken,
) -> Result<Ended, JournalError> {
    let mut shift = Shift::begin(agent, journal).await?;
    loop {
        shift.desk.sync().await?;
        if stop.is_cancelled() {
            shift.desk.withdraw();
            shift.desk.store().await?;
            return Ok(Ended::Stopped);
        }
        shift.take_stock().await?;
        match next_step(&shift.desk.transcript, &shift.bounds) {
            Step::CallModel { .. } | Step::Compact if let Some(model) = shift.other_model() => {
                shift.desk.store().await?;
                return Ok(Ended::OtherModel(model));
            }
            Step::CallModel { max_tokens, reserved, share, after_ms } => {
                if shift.wait_for_provider(after_ms, stop).await?
                    && let Draw::Refused(left) =
                        shift.call_model(max_tokens, reserved, share).await?
                {
                    match shift.out_of_budget(left) {
                        Some(outcome) if shift.finish(&outcome).await? => {
                            return Ok(Ended::Finished(outcome));
                        }
                        Some(_) => {}
                        None => shift.wait_for_budget(stop).await?,
                    }
                }
            }
            Step::WaitForBudget => shift.wait_for_budget(stop).await?,
            Step::CallTools(calls) => shift.call_tools(calls).await?,
            Step::Answer { calls, ending, why, by } => shift.answer(calls, ending, &why, &by),
            Step::Tell { limit, text } => shift.tell(Sender::LimitNear(limit), text),
            Step::Compact => shift.compact().await?,
            Step::Wait if shift.desk.has_unstored() => {
                // What others append meanwhile may be what is waited for.
                shift.desk.store().await?;
            }
            Step::Wait => {
                let transcript = &shift.desk.transcript;
                let calls = transcript.open_calls().count() as u32;
                return Ok(Ended::Waiting { seen: transcript.seq(), calls });
            }
            Step::Finish(outcome) => match shift.judge(outcome) {
                Verdict::Again(text) => shift.tell(Sender::Misfit, text),
                Verdict::Finish(outcome) => {
                    fail::fail_point!("loop.finish.before");
                    if shift.finish(&outcome).await? {
                        return Ok(Ended::Finished(outcome));
                    }
                }
            },
            Step::Done(outcome) => return Ok(Ended::Finished(outcome)),
        }
    }
}
