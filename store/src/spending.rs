//! What model calls cost: one row for each, and sums over them.
//!
//! [`ModelCall::settled`] says which call an event settles, and what it cost. It is pure, so that
//! every store keeps the same ledger; a store writes the row with the event, in one transaction.

use crate::row::{OpenCall, RunRow};
use posse_protocol::{Charge, Event, Purpose, RunId, Seq, Usage, Usd};

/// The columns of a row of the ledger that are compared, in their order.
pub(crate) const COLUMNS: [&str; 18] = [
    "seq",
    "at",
    "root",
    "agent",
    "model",
    "label",
    "purpose",
    "ending",
    "calls",
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

/// A row of the ledger, each column as text: whatever somebody put there can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow(
    /// In the order of [`LedgerRow::COLUMNS`].
    pub [String; COLUMNS.len()],
);

impl LedgerRow {
    /// What its columns are called.
    pub const COLUMNS: [&'static str; COLUMNS.len()] = COLUMNS;
}

/// A model call and what it cost: a row of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Whose it was.
    pub run: RunId,
    /// The event that settled it.
    pub seq: Seq,
    /// When that was.
    pub at: u64,
    /// The run at the top of the tree.
    pub root: RunId,
    /// The agent that made it.
    pub agent: String,
    /// The model that was called, as `vendor/name`.
    pub model: String,
    /// What the run is about.
    pub label: String,
    /// What it was for.
    pub purpose: Purpose,
    /// How it ended, in one word.
    pub ending: &'static str,
    /// What it may have cost, at most.
    pub usage: Usage,
    /// What of that is not known to have been spent.
    pub uncertain: Usage,
}

const REPLIED: &str = "replied";
const FAILED: &str = "failed";
/// Nobody recorded an answer: it may have cost all that it reserved.
const UNANSWERED: &str = "unanswered";

/// The most that one row counts. A provider may claim any number; a sum must not overflow.
const MOST: u64 = 1 << 50;

impl ModelCall {
    /// The call that `event` settles, given the run as it stands before it.
    pub(crate) fn settled(row: &RunRow, event: &Event, seq: Seq, at: u64) -> Option<Self> {
        let charge = Charge::of(event, row.open_call().as_ref())?;
        let ending = match event {
            Event::ModelReplied(_) => REPLIED,
            Event::Compacted(compacted) if compacted.by_model => REPLIED,
            Event::ModelFailed(_) | Event::Compacted(_) => FAILED,
            _ => UNANSWERED,
        };
        // A summary may be put together without any call.
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

    /// As it stands in the ledger.
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
            "1".to_owned(),
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
    /// What the model call that has no answer yet reserved, if there is one.
    pub fn open_call(&self) -> Option<Usage> {
        self.spending.calling.as_ref().map(|_| Usage {
            input_tokens: self.spending.reserved.input_tokens,
            output_tokens: self.spending.reserved.output_tokens,
            cost: self.spending.reserved.cost,
            ..Usage::default()
        })
    }
}

/// What stands in the column `purpose`.
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

/// Which model calls to sum up, and how.
#[derive(Clone, Debug, Default)]
pub struct SpendingQuery {
    /// One sum for each of what.
    pub by: By,
    /// Only those of this run and of all below it.
    pub tree: Option<RunId>,
    /// Only those of runs in this folder.
    pub workspace: Option<String>,
    /// Only those that were settled from then on: milliseconds since 1970.
    pub since: Option<u64>,
    /// Only those that were settled before then.
    pub until: Option<u64>,
    /// At most this many sums; 0 is all of them.
    pub limit: usize,
}

/// What there is one sum for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Everything: one sum, or none if nothing was spent.
    #[default]
    Nothing,
    /// Each run, by its id; the costliest first.
    Run,
    /// Each tree, by the id of its root; the costliest first.
    Tree,
    /// Each agent, by its name; the costliest first.
    Agent,
    /// Each model that was called, as `vendor/name`; the costliest first.
    Model,
    /// Each label; what has none is together under the empty one. The costliest first.
    Label,
    /// Each day (UTC), such as `2026-11-15`; the latest first.
    Day,
}

/// What model calls cost together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// What it is the sum of: the run, the agent, the day.
    pub key: String,
    /// How many runs made them.
    pub runs: u64,
    /// How many calls.
    pub calls: u64,
    /// Those of them that were cut short or are still under way.
    pub unanswered: u64,
    /// Tokens and money that are known to have been spent.
    pub usage: Usage,
    /// What the unanswered calls may have spent besides, at most.
    pub uncertain: Usage,
}

/// A day since 1970 as `2026-11-15`, in the calendar that everybody uses.
pub fn date(day: u64) -> String {
    // Eras of 400 years that begin in March, so that the leap day is the last of its year.
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
