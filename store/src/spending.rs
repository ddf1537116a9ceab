//! The costs of model calls: one row for each call, and sums over the rows.
//!
//! [`ModelCall::settled`] returns the call that an event settles, and its cost. It is pure, so all
//! stores keep the same ledger. A store writes the row in the same transaction as the event.

use crate::row::{OpenCall, RunRow};
use posse_protocol::{Charge, Event, Purpose, RunId, Seq, Usage, Usd};

/// The columns of a ledger row that are compared, in order.
pub(crate) const COLUMNS: [&str; 17] = [
    "seq",
    "at",
    "root",
    "agent",
    "model",
    "label",
    "purpose",
    "ending",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost",
    "uncertain_input",
    "uncertain_output",
    "uncertain_cost",
];

/// A row of the ledger with each column as text, so that any stored value can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow(
    /// The values, in the order of [`LedgerRow::COLUMNS`].
    pub [String; COLUMNS.len()],
);

impl LedgerRow {
    /// The names of the columns.
    pub const COLUMNS: [&'static str; COLUMNS.len()] = COLUMNS;
}

/// A model call and its cost: a row of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// The run that made it.
    pub run: RunId,
    /// The event that settled it.
    pub seq: Seq,
    /// The time of that event.
    pub at: u64,
    /// The run at the top of the tree.
    pub root: RunId,
    /// The agent that made it.
    pub agent: String,
    /// The model that was called, as `vendor/name`.
    pub model: String,
    /// The label of the run.
    pub label: String,
    /// The purpose of the call.
    pub purpose: Purpose,
    /// How the call ended, in one word.
    pub ending: &'static str,
    /// The most that it may have cost.
    pub usage: Usage,
    /// The part of `usage` that is not certain.
    pub uncertain: Usage,
}

const REPLIED: &str = "replied";
const FAILED: &str = "failed";
/// The log has no answer. The call may have cost all that it reserved.
const UNANSWERED: &str = "unanswered";

/// The largest value in a row. A provider may report any number, and a sum must not overflow.
const MOST: u64 = 1 << 50;

impl ModelCall {
    /// Returns the call that `event` settles, given the row of the run before the event.
    pub(crate) fn settled(row: &RunRow, event: &Event, seq: Seq, at: u64) -> Option<Self> {
        let charge = Charge::of(event, row.open_call().as_ref())?;
        let ending = match event {
            Event::ModelReplied(_) => REPLIED,
            Event::Compacted(compacted) if compacted.by_model => REPLIED,
            Event::ModelFailed(_) | Event::Compacted(_) => FAILED,
            _ => UNANSWERED,
        };
        // A summary can be made without a model call.
        if row.spending.calling.is_none() && charge == Charge::default() {
            return None;
        }
        let calling = row.spending.calling.clone();
        let open =
            calling.unwrap_or(OpenCall { model: row.about.model.clone(), purpose: Purpose::Turn });
        Some(ModelCall {
            run: row.id,
            seq,
            at,
            root: row.family.root,
            agent: row.about.agent.clone(),
            model: open.model,
            label: row.about.label.clone(),
            purpose: open.purpose,
            ending,
            usage: bounded(&charge.total()),
            uncertain: bounded(&charge.uncertain),
        })
    }

    /// Reads a row of the ledger of `run`. `None` if a value in it cannot be read.
    pub(crate) fn read(run: RunId, row: &LedgerRow) -> Option<Self> {
        let [seq, at, root, agent, model, label, purpose, ending, numbers @ ..] = &row.0;
        let numbers = numbers.each_ref().map(|number| number.parse::<u64>().ok());
        let [input, cache_read, cache_write, output, reasoning, cost, rest @ ..] = numbers;
        let [uncertain_input, uncertain_output, uncertain_cost] = rest;
        let endings = [REPLIED, FAILED, UNANSWERED];
        let purposes = [Purpose::Turn, Purpose::Compaction];
        Some(ModelCall {
            run,
            seq: Seq(seq.parse().ok()?),
            at: at.parse().ok()?,
            root: root.parse().ok()?,
            agent: agent.clone(),
            model: model.clone(),
            label: label.clone(),
            purpose: purposes.into_iter().find(|it| purpose_word(*it) == purpose)?,
            ending: endings.into_iter().find(|it| it == ending)?,
            usage: Usage {
                input_tokens: input?,
                cache_read_tokens: cache_read?,
                cache_write_tokens: cache_write?,
                output_tokens: output?,
                reasoning_tokens: reasoning?,
                cost: Usd(cost?),
                ..Usage::default()
            },
            uncertain: Usage {
                input_tokens: uncertain_input?,
                output_tokens: uncertain_output?,
                cost: Usd(uncertain_cost?),
                ..Usage::default()
            },
        })
    }

    /// Returns the row for the ledger.
    pub fn written(&self) -> LedgerRow {
        let usage = &self.usage;
        LedgerRow([
            self.seq.to_string(),
            self.at.to_string(),
            self.root.to_string(),
            self.agent.clone(),
            self.model.clone(),
            self.label.clone(),
            purpose_word(self.purpose).to_owned(),
            self.ending.to_owned(),
            usage.input_tokens.to_string(),
            usage.cache_read_tokens.to_string(),
            usage.cache_write_tokens.to_string(),
            usage.output_tokens.to_string(),
            usage.reasoning_tokens.to_string(),
            usage.cost.0.to_string(),
            self.uncertain.input_tokens.to_string(),
            self.uncertain.output_tokens.to_string(),
            self.uncertain.cost.0.to_string(),
        ])
    }
}

impl RunRow {
    /// Returns the reservation of the open model call, if there is one.
    pub fn open_call(&self) -> Option<Usage> {
        self.spending.calling.as_ref().map(|_| Usage {
            input_tokens: self.spending.reserved.input_tokens,
            output_tokens: self.spending.reserved.output_tokens,
            cost: self.spending.reserved.cost,
            ..Usage::default()
        })
    }
}

/// Returns the value of the column `purpose`.
pub(crate) fn purpose_word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Turn => "turn",
        Purpose::Compaction => "compaction",
    }
}

fn bounded(usage: &Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens.min(MOST),
        cache_read_tokens: usage.cache_read_tokens.min(MOST),
        cache_write_tokens: usage.cache_write_tokens.min(MOST),
        output_tokens: usage.output_tokens.min(MOST),
        reasoning_tokens: usage.reasoning_tokens.min(MOST),
        cost: usage.cost.min(Usd(MOST)),
        ..Usage::default()
    }
}

/// Which model calls to sum up, and how to group them.
#[derive(Clone, Debug, Default)]
pub struct SpendingQuery {
    /// How to group the sums.
    pub by: By,
    /// Only calls of this run and of all runs below it.
    pub tree: Option<RunId>,
    /// Only calls of runs in this folder.
    pub workspace: Option<String>,
    /// Only calls settled at this time or later: milliseconds since 1970.
    pub since: Option<u64>,
    /// Only calls settled before this time.
    pub until: Option<u64>,
    /// At most this many sums; 0 means all.
    pub limit: usize,
}

/// How to group sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// One sum of everything, or none if nothing was spent.
    #[default]
    Nothing,
    /// By run id, highest cost first.
    Run,
    /// By the id of the root, highest cost first.
    Tree,
    /// By the name of the agent, highest cost first.
    Agent,
    /// By model as `vendor/name`, highest cost first.
    Model,
    /// By the label of the root, highest cost first. Trees without a label have the empty key.
    Label,
    /// By day (UTC), such as `2026-11-15`, latest first.
    Day,
}

/// The sum of the costs of model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// The key of the group: a run, an agent, a day.
    pub key: String,
    /// The number of runs that made the calls.
    pub runs: u64,
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that were interrupted or have no answer yet.
    pub unanswered: u64,
    /// Tokens and costs that are certain.
    pub usage: Usage,
    /// What the unanswered calls may have spent in addition, at most.
    pub uncertain: Usage,
}

/// Formats a number of days since 1970 as a date such as `2026-11-15`.
pub fn date(day: u64) -> String {
    // Eras of 400 years that begin in March, so the leap day is the last day of its year.
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        let table = [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_772, "2026-11-15"),
            (47_541, "2100-03-01"),
        ];
        for (day, expected) in table {
            assert_eq!(date(day), expected);
        }
    }
}
