//! The loop: decide, act, record, until the run waits or ends.
//!
//! Roots and subagents, with and without streaming, the first start and every resume all use this
//! one function. It knows only a model, tools, a journal and a guard.

mod run_loop;

use crate::log_buffer::Draw;
use crate::schema::Verdict;
use crate::step::{Step, next_step};
use crate::{Guard, Journal, JournalError, Model, Patience, Toolbox};
use posse_protocol::{Delta, Effort, Grant, Limits, Outcome, RunId, Sender, Seq, ToolSpec};
use run_loop::RunLoop;
use serde_json::Value;
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
    /// Cuts the present model call short. The loop records what arrived, and repeats the call when the run
    /// continues.
    pub cut: CancellationToken,
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
    let mut run_loop = RunLoop::begin(agent, journal).await?;
    loop {
        run_loop.log_buffer.sync().await?;
        if stop.is_cancelled() {
            run_loop.log_buffer.withdraw();
            run_loop.log_buffer.store().await?;
            return Ok(Ended::Stopped);
        }
        run_loop.take_stock().await?;
        match next_step(&run_loop.log_buffer.transcript, &run_loop.bounds) {
            Step::CallModel { .. } | Step::Compact if let Some(model) = run_loop.other_model() => {
                run_loop.log_buffer.store().await?;
                return Ok(Ended::OtherModel(model));
            }
            Step::CallModel { max_tokens, reserved, share, after_ms } => {
                if run_loop.wait_for_provider(after_ms, stop).await?
                    && let Draw::Refused(left) =
                        run_loop.call_model(max_tokens, reserved, share).await?
                {
                    match run_loop.out_of_budget(left) {
                        Some(outcome) if run_loop.finish(&outcome).await? => {
                            return Ok(Ended::Finished(outcome));
                        }
                        Some(_) => {}
                        None => run_loop.wait_for_budget(stop).await?,
                    }
                }
            }
            Step::WaitForBudget => run_loop.wait_for_budget(stop).await?,
            Step::CallTools(calls) => run_loop.call_tools(calls, stop).await?,
            Step::Answer { calls, ending, why, by } => run_loop.answer(calls, ending, &why, &by),
            Step::Tell { limit, text } => run_loop.tell(Sender::LimitNear(limit), text),
            Step::Compact => run_loop.compact().await?,
            Step::Wait if run_loop.log_buffer.has_unstored() => {
                // Events that other processes append meanwhile may end the wait.
                run_loop.log_buffer.store().await?;
            }
            Step::Wait => {
                let transcript = &run_loop.log_buffer.transcript;
                let calls = transcript.open_calls().count() as u32;
                return Ok(Ended::Waiting { seen: transcript.seq(), calls });
            }
            Step::Finish(outcome) => match run_loop.judge(outcome) {
                Verdict::Again(text) => run_loop.tell(Sender::Misfit, text),
                Verdict::Finish(outcome) => {
                    fail::fail_point!("loop.finish.before");
                    if run_loop.finish(&outcome).await? {
                        return Ok(Ended::Finished(outcome));
                    }
                }
            },
            Step::Done(outcome) => return Ok(Ended::Finished(outcome)),
        }
    }
}
