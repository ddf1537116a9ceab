//! Outcomes and statuses of runs.

use crate::{Extra, Limit, RunId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a run ended. The runtime decides it, not the agent.
///
/// All outcomes except `Completed` keep the last text of the agent as a partial result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent gave its answer.
    Completed {
        /// The answer.
        output: String,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
    /// The run could not continue.
    Failed {
        /// What went wrong and what to do about it.
        reason: String,
        /// The last text of the agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
        /// How many processes in a row died while they executed the run, if it is quarantined for
        /// that; otherwise 0.
        #[serde(default, skip_serializing_if = "is_none")]
        deaths: u32,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
    /// The run was cancelled on request.
    Cancelled {
        /// The person or program that asked.
        by: String,
        /// The last text of the agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
    /// It reached its time limit.
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
        /// The last text of the agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
    /// It reached another limit.
    Stopped {
        /// The limit.
        limit: Limit,
        /// What the next model call needed, if the rest of the limit did not cover it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortfall: Option<Shortfall>,
        /// The last text of the agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
    /// A budget had nothing left for its next step.
    OutOfBudget {
        /// The dimension of the budget.
        limit: Limit,
        /// The run with the budget: this run, or one above it.
        holder: RunId,
        /// What the next model call needed, if the rest of the budget did not cover it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shortfall: Option<Shortfall>,
        /// The last text of the agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
        /// Fields of a later version.
        #[serde(flatten)]
        extra: Extra,
    },
}

impl Outcome {
    /// The kind of a run that is quarantined because the processes that executed it died.
    pub const QUARANTINED: &str = "quarantined";

    /// The kind of a run whose budget was used up.
    pub const OUT_OF_BUDGET: &str = "out of budget";

    /// The agent gave the answer `output`.
    pub fn completed(output: impl Into<String>) -> Self {
        Outcome::Completed { output: output.into(), extra: Extra::default() }
    }

    /// The run could not continue because of `reason`. `partial` is the last text of the agent.
    pub fn failed(reason: impl Into<String>, partial: impl Into<String>) -> Self {
        let (reason, partial) = (reason.into(), partial.into());
        Outcome::Failed { reason, partial, deaths: 0, extra: Extra::default() }
    }

    /// `deaths` processes in a row died while they executed the run. No worker executes it until a
    /// person releases it. `partial` is the last text of the agent.
    pub fn quarantined(deaths: u32, reason: impl Into<String>, partial: impl Into<String>) -> Self {
        let (reason, partial) = (reason.into(), partial.into());
        Outcome::Failed { reason, partial, deaths, extra: Extra::default() }
    }

    /// `by` cancelled the run. `partial` is the last text of the agent.
    pub fn cancelled(by: impl Into<String>, partial: impl Into<String>) -> Self {
        let (by, partial) = (by.into(), partial.into());
        Outcome::Cancelled { by, partial, extra: Extra::default() }
    }

    /// The run worked longer than `limit_ms`. `partial` is the last text of the agent.
    pub fn timed_out(limit_ms: u64, partial: impl Into<String>) -> Self {
        Outcome::TimedOut { limit_ms, partial: partial.into(), extra: Extra::default() }
    }

    /// The run reached `limit`. `partial` is the last text of the agent.
    pub fn stopped(limit: Limit, partial: impl Into<String>) -> Self {
        let (partial, extra) = (partial.into(), Extra::default());
        Outcome::Stopped { limit, shortfall: None, partial, extra }
    }

    /// The budget of `holder` has no `limit` left. `partial` is the last text of the agent.
    pub fn out_of_budget(limit: Limit, holder: RunId, partial: impl Into<String>) -> Self {
        let (partial, extra) = (partial.into(), Extra::default());
        Outcome::OutOfBudget { limit, holder, shortfall: None, partial, extra }
    }

    /// The same outcome, with what the next model call needed more than was left.
    pub fn for_want_of(mut self, more: Option<Shortfall>) -> Self {
        if let Outcome::Stopped { shortfall, .. } | Outcome::OutOfBudget { shortfall, .. } =
            &mut self
        {
            *shortfall = more;
        }
        self
    }

    /// One word for lists and filters.
    pub fn kind(&self) -> &'static str {
        match self {
            Outcome::Completed { .. } => "completed",
            Outcome::Failed { deaths: 1.., .. } => Outcome::QUARANTINED,
            Outcome::Failed { .. } => "failed",
            Outcome::Cancelled { .. } => "cancelled",
            Outcome::TimedOut { .. } => "timed out",
            Outcome::Stopped { .. } => "stopped",
            Outcome::OutOfBudget { .. } => Outcome::OUT_OF_BUDGET,
        }
    }

    /// The answer, or the partial result.
    pub fn text(&self) -> &str {
        match self {
            Outcome::Completed { output, .. } => output,
            Outcome::Failed { partial, .. }
            | Outcome::Cancelled { partial, .. }
            | Outcome::TimedOut { partial, .. }
            | Outcome::Stopped { partial, .. }
            | Outcome::OutOfBudget { partial, .. } => partial,
        }
    }

    /// True when the agent gave its answer.
    pub fn is_completed(&self) -> bool {
        matches!(self, Outcome::Completed { .. })
    }
}

impl fmt::Display for Outcome {
    /// One line with the kind of the outcome and its reason, without the result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Completed { .. } => f.write_str("completed"),
            Outcome::Failed { reason, .. } => write!(f, "{}: {reason}", self.kind()),
            Outcome::Cancelled { by, .. } => write!(f, "cancelled by {by}"),
            Outcome::TimedOut { limit_ms, .. } => {
                write!(f, "timed out after {} s", *limit_ms as f64 / 1e3)
            }
            Outcome::Stopped { limit, shortfall, .. } => {
                write!(f, "stopped at its limit of {limit}")?;
                shortfall.as_ref().map_or(Ok(()), |short| short.tell(*limit, f))
            }
            Outcome::OutOfBudget { limit, holder, shortfall, .. } => {
                write!(f, "out of budget: {limit} of run {}", holder.short())?;
                shortfall.as_ref().map_or(Ok(()), |short| short.tell(*limit, f))
            }
        }
    }
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A model call that was not made, because it could need more of a limit than was left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// The most that the call could need, with money in billionths of a dollar.
    pub needed: u64,
    /// What was left.
    pub left: u64,
    /// The tokens of the reply in `needed`: the shortest reply that Posse asks for.
    pub reply_tokens: u64,
    /// Fields of a later version.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Shortfall {
    fn tell(&self, limit: Limit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, left) = (limit.amount(self.needed), limit.amount(self.left));
        if self.left == 0 && limit == Limit::Cost {
            return write!(f, ": all of it is spent, and the next call could cost up to {needed}");
        }
        match limit {
            Limit::Cost => write!(
                f,
                ": the next call could cost up to {needed} with the shortest reply ({} tokens), \
                 and {left} is left",
                self.reply_tokens
            ),
            Limit::InputTokens => {
                write!(f, ": the next call would send {needed} tokens, and {left} are left")
            }
            _ => write!(f, ": the next call needs at least {needed}, and {left} are left"),
        }
    }
}

/// The state of a run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Has work to do and waits for a slot or for a worker.
    Queued,
    /// A worker executes it.
    Running,
    /// The process that executed it died. The next worker continues it.
    Crashed,
    /// Has nothing to do until an event is appended, such as a message or a result.
    Waiting,
    /// A request paused it. It continues on request.
    Paused,
    /// A person interrupted it with Ctrl-C. It continues on request.
    Interrupted,
    /// Ended, with an outcome.
    Finished,
    /// Ended and archived.
    Archived,
    /// Its log was changed or is not readable. No worker executes it.
    Damaged,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Crashed => "crashed",
            Status::Waiting => "waiting",
            Status::Paused => "paused",
            Status::Interrupted => "interrupted",
            Status::Finished => "finished",
            Status::Archived => "archived",
            Status::Damaged => "damaged",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_never_called_completed() {
        let lost = Outcome::quarantined(5, "5 processes died", "half");
        assert_eq!((lost.kind(), lost.text()), ("quarantined", "half"));
        let written = serde_json::to_value(&lost).unwrap_or_default();
        assert_eq!((&written["kind"], &written["deaths"]), (&"failed".into(), &5.into()));
        let stopped = Outcome::stopped(Limit::Turns, "half");
        assert_eq!(stopped.kind(), "stopped");
        assert_eq!(stopped.text(), "half");
        assert!(!stopped.is_completed());
        assert_eq!(stopped.to_string(), "stopped at its limit of turns");
        let (needed, left) = (12_300_000, 30_000);
        let short = Shortfall { needed, left, reply_tokens: 64, ..Shortfall::default() };
        assert_eq!(
            Outcome::stopped(Limit::Cost, "").for_want_of(Some(short)).to_string(),
            "stopped at its limit of cost: the next call could cost up to $0.0123 with the \
             shortest reply (64 tokens), and $0.000030 is left"
        );
        for (amount, text) in [
            (0.0012, "$0.0012"),
            (0.0157, "$0.0157"),
            (0.05, "$0.05"),
            (0.043, "$0.043"),
            (0.5, "$0.50"),
        ] {
            assert_eq!(crate::Usd::from_dollars(amount).to_string(), text);
        }
    }
}
