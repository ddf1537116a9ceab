//! The loop: decide, act, record, until the run waits or ends.
//!
//! Roots and subagents, with and without streaming, the first start and every resume all use this
//! one function. It knows only a model, tools, a journal and a guard.

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

/// An agent with everything its run needs: instructions, model, tools and limits.
pub struct Agent {
    /// The run it works on.
    pub run: RunId,
    /// Its instructions.
    pub system: Arc<str>,
    /// Its model.
    pub model: Arc<dyn Model>,
    /// The fallback models, in the order in which they are tried.
    pub fallbacks: Vec<Arc<dyn Model>>,
    /// How often and how long it retries model calls.
    pub patience: Patience,
    /// The reasoning effort of its model.
    pub effort: Option<Effort>,
    /// The JSON Schema of its final answer.
    pub output_schema: Option<Arc<Value>>,
    /// Every tool that exists.
    pub tools: Toolbox,
    /// The tools that the model sees.
    pub offered: Arc<[ToolSpec]>,
    /// The tools that the run may call.
    pub grant: Grant,
    /// Decides whether each call may run.
    pub guard: Arc<dyn Guard>,
    /// The limits of the run.
    pub limits: Limits,
    /// Receives deltas, which are shown and never stored. Must not block.
    pub deltas: Arc<dyn Fn(Delta) + Send + Sync>,
}

/// Why [`run`] returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The run ended.
    Finished(Outcome),
    /// The run has nothing to do until an event is appended after `seen`.
    Waiting {
        /// The last event that the loop has seen.
        seen: Seq,
        /// How many calls wait for a result that another process or run will append.
        calls: u32,
    },
    /// `stop` fired. Call `run` again to continue.
    Stopped,
    /// A message asked for another model. Call `run` again with an agent that has it.
    OtherModel(String),
}

/// Works on a run until it ends, waits, or `stop` fires. The loop checks `stop` between steps.
///
/// Dropping the future stops the present step at once. The log then shows what was started.
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
                // Events that other processes append meanwhile may end the wait.
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
