//! Computes the ledger of a run again from its log, to find rows that another program changed,
//! added or removed.

use crate::row::RunRow;
use crate::spending::{COLUMNS, LedgerRow, ModelCall};
use posse_protocol::{Record, RunId, Seq};
use std::collections::BTreeMap;

/// Reads a log and compares the costs of its calls with the stored rows.
#[derive(Debug)]
pub struct CostCheck {
    /// Rows whose event was not read yet, by position.
    rows: BTreeMap<u64, LedgerRow>,
    run: RunRow,
    fault: Option<String>,
}

impl CostCheck {
    /// Starts with the stored rows of `run`, before any event was read.
    pub fn new(run: RunId, rows: Vec<LedgerRow>) -> Self {
        let mut reckoning =
            CostCheck { rows: BTreeMap::new(), run: RunRow::new(run, 0), fault: None };
        for row in rows {
            match row.0[0].parse() {
                Ok(seq) => {
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
    pub fn fault(self, last: Seq) -> Option<String> {
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
    let (model, input, output, cost) = (&columns[4], &columns[8], &columns[11], &columns[13]);
    format!("{model} with {input} + {output} tokens and a cost of {cost}")
}
