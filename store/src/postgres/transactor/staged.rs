//! What was staged on other connections, and a transaction shows. It locks the rows that say so, and
//! only then looks what is there: a process that removes something changes these rows.

use super::{Message, ROWS, Replies, Text};
use crate::engine::{Bind, Cells, Work, number, to_sql};
use crate::postgres::statements as pg;
use crate::sql;
use crate::transaction::Changes;
use posse_protocol::{RunId, Seq, WorkerId};

/// The positions of the replies.
pub(super) struct Asked {
    /// The counts of parts, and how many there must be.
    bundles: Vec<(RunId, String, i64, usize)>,
    logs: Vec<usize>,
}

/// Locks the bundles and logs that `work` shows, and asks for them.
pub(super) fn ask(message: &mut Message, work: &Work, worker: WorkerId) -> Asked {
    let drafts = work.appends.iter().flat_map(|(batch, _)| batch);
    let bundles = drafts.filter_map(|it| Some((it.append.run, it.bundle.as_ref()?)));
    let copies = || work.trees.iter().flat_map(|(tree, _)| tree);
    let copied = copies().filter_map(|it| Some((it.row().id, it.bundle()?)));
    let mut asked = Asked { bundles: Vec::new(), logs: Vec::new() };
    for (run, head) in bundles.chain(copied).filter(|(_, head)| head.bytes > 0) {
        let of_bundle =
            |text: &str| Text::new(text).text(run.to_string()).text(head.sha256.clone());
        message.add(of_bundle(pg::BUNDLE_LOCK));
        let at = message.add(of_bundle(sql::stage::COUNT_PARTS));
        asked.bundles.push((run, head.sha256.clone(), to_sql(head.parts()), at));
    }
    let runs: Vec<RunId> = copies().map(|copy| copy.row().id).collect();
    for runs in runs.chunks(ROWS) {
        let lock = Text::new(&pg::lock_logs(runs.len())).text(worker.to_string());
        asked
            .logs
            .push(message.add(runs.iter().fold(lock, |lock, run| lock.text(run.to_string()))));
    }
    asked
}

impl Asked {
    /// Tells `changes` what is there.
    pub(super) fn know(self, changes: &mut Changes, replies: &Replies) {
        for (run, sha256, parts, at) in self.bundles {
            let count = replies.rows(at).first().and_then(|row| row.integer(0).ok());
            if count == Some(parts) {
                changes.know_data(run, sha256);
            }
        }
        for row in self.logs.iter().flat_map(|at| replies.rows(*at)) {
            let (Ok(run), Ok(seq), Ok(hash)) = (row.text(0), number(row, 1), row.text(2)) else {
                continue;
            };
            if let Ok(run) = run.parse() {
                changes.know_log(run, Seq(seq), hash);
            }
        }
    }
}
