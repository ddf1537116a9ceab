//! Words for the status of runs in a tree.

use crate::format;
use posse::views::Tree;
use posse::{RunRow, Status};

/// The outcome or the status of `row` in a word or two, with its position in the queue.
pub fn word_in(tree: &Tree, row: &RunRow) -> String {
    let place = tree.position(row).filter(|_| !row.state.stopping);
    match (word(row, tree.standing(row)), place) {
        (word, None) => word,
        (word, Some(place)) => format!("{word} ({})", format::ordinal(place)),
    }
}

/// The outcome or the status of `row` in one word.
pub fn word(row: &RunRow, standing: Status) -> String {
    match (&row.state.outcome, standing) {
        (Some(outcome), Status::Finished) => outcome.clone(),
        // It waits only for a process that writes down its end.
        (None, Status::Queued) if row.state.stopping => "stopping".to_owned(),
        (_, standing) => standing.to_string(),
    }
}
