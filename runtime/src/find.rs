//! Which run is meant: by its id, a part of it, or its label.

use crate::error::Error;
use crate::runtime::Runtime;
use posse_protocol::RunId;
use posse_store::{Filter, Label, RunRow, StoreError};

/// How many runs of one label are looked at.
const RECENT: usize = 1_000;
/// How many runs are told that could all be meant.
const CANDIDATES: usize = 5;
/// Characters that a part of an id or the beginning of a label has at least.
const FEWEST: usize = 4;

impl Runtime {
    /// The run that `text` names: its id; its label, to the letter; a beginning or an end of its
    /// id, or a piece of what is shown of it; a beginning of its label. Only one may fit in the first of these ways in which any does.
    ///
    /// # Errors
    /// When none or several fit; then it names them.
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

/// The one run that fits `text`; nothing if none does.
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

/// A run in a line of its own.
fn name(row: &RunRow) -> String {
    let title: String = row.about.title.chars().take(60).collect();
    format!("\n  {}  {}  [{}] {title}", row.id.short(), row.status, row.about.agent)
}
