//! Changes in a folder since it was trusted. They are shown when work begins there, and confirmed if
//! a person can answer.

use super::super::Common;
use super::super::asking::is_attended;
use super::review::Review;
use super::{asked, note};
use crate::clean::clean_line;
use crate::exit::Failure;
use posse::trust::{FilesToTrust, TrustStatus};
use std::path::Path;

impl Common {
    /// Asks whether to trust the changes around `folder`, if `may_ask` and there is a terminal.
    /// Otherwise, or if the answer is no, returns a line about the changes.
    pub fn review_changes(&self, folder: &Path, may_ask: bool) -> Result<Option<String>, Failure> {
        let is_changed =
            |it: &FilesToTrust| self.trust.standing(&it.folder) == TrustStatus::Changed;
        // A folder that cannot be read completely is not trusted, and reported elsewhere.
        let around = FilesToTrust::around(folder).unwrap_or_default();
        let changed: Vec<&FilesToTrust> =
            around.iter().filter(|brought| is_changed(brought)).collect();
        if changed.is_empty() {
            return Ok(None);
        }
        let review = Review::of(self, folder, &changed)?;
        let may_ask = may_ask && is_attended() && !self.global.json && !self.global.quiet;
        if may_ask && asked(self, &review)? {
            let log = self.trust_log()?;
            for (brought, shown) in changed.iter().zip(&review.folders) {
                log.trust(brought, &shown.lines())?;
            }
            note(self, "trusted; Posse asks again after the next change");
            return Ok(None);
        }
        let changes: Vec<String> = review.folders.iter().flat_map(|it| it.changes()).collect();
        let changes = match changes.is_empty() {
            true => "some of its files".to_owned(),
            false => changes.join(", "),
        };
        let line = format!("◇ changed since you trusted it: {changes}; `posse trust` trusts it");
        Ok(Some(clean_line(&line, 600)))
    }
}
