//! Computes the ledger of a run again from its log, to find rows that another program changed,
//! added or removed.

use crate::row::RunRow;
use crate::spending::{COLUMNS, EARLIER, LedgerRow, ModelCall};
use posse_protocol::{Record, RunId, Seq};
use std::collections::BTreeMap;

/// Reads a log and compares the costs of its calls with the stored rows.
#[derive(Debug)]
pub struct CostCheck {
    /// Rows whose event was not read yet, by position.
    rows: BTreeMap<u64, LedgerRow>,
    earlier: Option<LedgerRow>,
    /// The first position in `rows`.
    first: Seq,
    /// True if the row of earlier calls matches the log.
    covered: bool,
    run: RunRow,
    fault: Option<String>,
}

impl CostCheck {
    /// Starts with the stored rows of `run`, before any event was read.
    pub fn new(run: RunId, rows: Vec<LedgerRow>) -> Self {
        let mut reckoning = CostCheck {
            rows: BTreeMap::new(),
            earlier: None,
            first: Seq(u64::MAX),
            covered: false,
            run: RunRow::new(run, 0),
            fault: None,
        };
        for row in rows {
            match row.0[0].parse() {
                Ok(0) if row.0[7] == EARLIER => reckoning.earlier = Some(row),
                Ok(seq) => {
                    reckoning.first = reckoning.first.min(Seq(seq));
                    reckoning.rows.insert(seq, row);
                }
                Err(_) => reckoning.blame(format!("a row stands at `{}`, no event", row.0[0])),
            }
        }
        reckoning
    }

    /// Applies the next event of the log.
    pub fn apply(&mut self, record: &Record) {
        if let Some(call) = ModelCall::settled(&self.run, &record.event, record.seq, record.at) {
            self.compare(&call);
        }
        self.run.updated_at = record.at;
        self.run.project(&record.event, record.at);
        // The row of earlier calls covers the log up to here, and no other row does.
        if self.first > record.seq
            && self.earlier.as_ref().is_some_and(|row| *row == earlier(&self.run))
        {
            (self.covered, self.fault) = (true, None);
        }
    }

    fn compare(&mut self, call: &ModelCall) {
        let seq = call.seq;
        let log = call.written();
        let Some(row) = self.rows.remove(&seq.0) else {
            let what = told(&log);
            return self.blame(format!("the call of event {seq} is missing, by the log {what}"));
        };
        let column =
            COLUMNS.iter().zip(log.0.iter().zip(&row.0)).find(|(_, (log, row))| log != row);
        if let Some((column, (log, row))) = column {
            self.blame(format!(
                "of the call of event {seq} `{column}` is {row}, and by the log {log}"
            ));
        }
    }

    /// Keeps only the first fault.
    fn blame(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    /// Returns what is wrong, given that the log was read up to `last`. Later rows are not checked.
    pub fn fault(mut self, last: Seq) -> Option<String> {
        if let Some(row) = self.earlier.take().filter(|_| !self.covered) {
            return Some(format!(
                "the sum of its earlier calls, {}, fits no part of it",
                told(&row)
            ));
        }
        let extra = self.rows.iter().find(|(seq, _)| **seq <= last.0);
        let extra = extra.map(|(seq, row)| {
            format!("a call of event {seq} was added, {}: by the log it settled none", told(row))
        });
        self.fault.or(extra)
    }
}

/// Summarizes a row.
fn told(row: &LedgerRow) -> String {
    let LedgerRow(columns) = row;
    let (model, input, output, cost) = (&columns[4], &columns[9], &columns[12], &columns[14]);
    format!("{model} with {input} + {output} tokens and a cost of {cost}")
}

/// Returns the row that sums up all calls of a run so far.
fn earlier(run: &RunRow) -> LedgerRow {
    let most = |number: u64| number.min(i64::MAX as u64).to_string();
    LedgerRow([
        "0".to_owned(),
        most(run.updated_at),
        run.family.root.to_string(),
        run.about.agent.clone(),
        run.about.model.clone(),
        String::new(),
        "turn".to_owned(),
        EARLIER.to_owned(),
        most(run.spending.turns),
        most(run.spending.spent.input_tokens),
        "0".to_owned(),
        "0".to_owned(),
        most(run.spending.spent.output_tokens),
        "0".to_owned(),
        most(run.spending.spent.cost.0),
        "0".to_owned(),
        "0".to_owned(),
        "0".to_owned(),
    ])
}
