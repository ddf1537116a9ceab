//! Finds a run by its id, a part of its id, or its label.

use crate::error::Error;
use crate::runtime::Runtime;
use posse_protocol::RunId;
use posse_store::{Filter, Label, RunRow, StoreError};

/// How many runs with one label are read.
const RECENT: usize = 1_000;
/// How many runs an error about an ambiguous name lists.
const CANDIDATES: usize = 5;
/// The minimum length of a part of an id or of a prefix of a label.
const FEWEST: usize = 4;

impl Runtime {
    /// The run that `text` names. Tries in order: its id; its exact label; a prefix or suffix of its id, or a part of
    /// the short id that lists show; a prefix of its label. Only one run may match in the first way that matches.
    ///
    /// # Errors
    /// When no run matches, or several match. The error lists them.
    pub async fn find(&self, text: &str) -> Result<RunRow, Error> {
        if let Ok(id) = text.parse::<RunId>() {
            return self.row(id).await?.ok_or(Error::Store(StoreError::NotFound(id)));
        }
        let text = text.trim();
        let labelled = |label| Filter { label: Some(label), limit: RECENT, ..Filter::default() };
        if !text.is_empty() {
            let rows = self.list(&labelled(Label::Is(text.to_owned()))).await?;
            if let Some(found) = only(text, rows) {
                return found;
            }
        }
        let shown: String = text.chars().take(64).collect();
        if text.chars().count() < FEWEST {
            return Err(Error::NoRun(none(&shown)));
        }
        let typed = text.to_ascii_lowercase();
        let rows = self.inner.store.find(&typed).await?;
        if let Some(found) = only(text, rows) {
            return found;
        }
        let rows = self.list(&labelled(Label::Begins(text.to_owned()))).await?;
        only(text, rows).unwrap_or_else(|| Err(Error::NoRun(none(&shown))))
    }
}

fn none(shown: &str) -> String {
    format!(
        "no run matches `{shown}`: give its label, its id, or at least four characters of the id"
    )
}

/// The only run of `rows`, an error if there are several, `None` if there are none.
fn only(text: &str, mut rows: Vec<RunRow>) -> Option<Result<RunRow, Error>> {
    if rows.len() < 2 {
        return rows.pop().map(Ok);
    }
    let names: String = rows.iter().take(CANDIDATES).map(name).collect();
    let more = match rows.len().saturating_sub(CANDIDATES) {
        0 => String::new(),
        more => format!("\n  … and {more} more"),
    };
    let shown: String = text.chars().take(64).collect();
    Some(Err(Error::Ambiguous(format!(
        "{} runs match `{shown}`; give more of the id of one:{names}{more}",
        rows.len(),
    ))))
}

/// A line about a run.
fn name(row: &RunRow) -> String {
    let title: String = row.about.title.chars().take(60).collect();
    format!("\n  {}  {}  [{}] {title}", row.id.short(), row.status, row.about.agent)
}
