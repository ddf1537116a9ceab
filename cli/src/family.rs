//! Runs that belong together, in words.

use crate::format;
use posse::views::Tree;
use posse::{RunRow, Status};

/// How `row` ended, or where it stands, in a word or two.
pub fn word_in(tree: &Tree, row: &RunRow) -> String {
    match (word(row, tree.standing(row)), tree.position(row)) {
        (word, None) => word,
        (word, Some(place)) => format!("{word} ({})", format::ordinal(place)),
    }
}

/// How `row` ended, or where it stands, in one word.
pub fn word(row: &RunRow, standing: Status) -> String {
    match (&row.state.outcome, standing) {
        (Some(outcome), Status::Finished) => outcome.clone(),
        (_, standing) => standing.to_string(),
    }
}
