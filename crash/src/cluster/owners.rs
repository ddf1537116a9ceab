//! The checker of owners: the steps of a run are written by the worker that owns it, and a run is
//! taken from nobody who lives. Pure.

use crate::violation::{Promise, Violation};

/// An event as the witness saw it stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The run.
    pub run: String,
    /// The position in its log.
    pub seq: u64,
    /// The type of the event.
    pub kind: String,
    /// The name of the session that stored it: `posse` and the id of its worker.
    pub by: String,
    /// The run did not exist before.
    pub is_new: bool,
    /// The worker that owned the run.
    pub owner: Option<String>,
}

/// A change of the owner of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The run.
    pub run: String,
    /// The name of the session that changed it.
    pub by: String,
    /// The owner before.
    pub was: Option<String>,
    /// The owner from then on.
    pub becomes: Option<String>,
    /// The epochs before and from then on.
    pub epochs: (i64, i64),
    /// The owner before had a lease that was not over.
    pub lives: bool,
}

/// The events that only an owner may store. Results of calls also come from children.
const STEPS: [&str; 8] = [
    "approval_asked",
    "compacted",
    "model_called",
    "model_failed",
    "model_replied",
    "run_finished",
    "tool_pending",
    "tool_started",
];

/// Every promise that `writes` and `taken` show to be broken.
pub fn check_owners(writes: &[Write], taken: &[Taken]) -> Vec<Violation> {
    let wrong = |detail: String| Violation::of(Promise::OwnersAlone, detail);
    let session = |worker: &Option<String>| worker.as_ref().map(|worker| format!("posse {worker}"));
    let mut found = Vec::new();
    for write in writes {
        let is_step = STEPS.contains(&write.kind.as_str());
        if is_step && !write.is_new && session(&write.owner).as_ref() != Some(&write.by) {
            found.push(wrong(format!(
                "run {}: {} at {} was written by {}, and its owner was {:?}",
                write.run, write.kind, write.seq, write.by, write.owner
            )));
        }
    }
    for change in taken {
        let Taken { run, by, was, becomes, epochs, lives } = change;
        if becomes.is_some() && session(becomes).as_ref() != Some(by) {
            found.push(wrong(format!("run {run}: {by} gave it to {becomes:?}")));
        }
        if becomes.is_some() && was != becomes && epochs.1 <= epochs.0 {
            let detail = format!("run {run}: the epoch of {becomes:?} is {}", epochs.1);
            found.push(wrong(detail));
        }
        if *lives && session(was).as_ref() != Some(by) {
            found.push(wrong(format!("run {run}: {by} took it from {was:?}, who lives")));
        }
        if epochs.1 < epochs.0 {
            found.push(wrong(format!(
                "run {run}: its epoch fell from {} to {}",
                epochs.0, epochs.1
            )));
        }
    }
    found
}
