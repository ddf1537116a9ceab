//! The end of a run: its answer, its totals, and what to do next.

use super::line::{self, Below};
use super::{Screen, Volume};
use crate::clean::clean_line;
use crate::exit::Failure;
use crate::print;
use crate::spending;
use posse::RunId;
use posse::protocol::Outcome;

impl Screen {
    /// Sets how many milliseconds the run took, if it was only watched.
    pub fn took(&mut self, milliseconds: u64) {
        self.took = Some(milliseconds);
    }

    /// Shows the outcome of the run, and the answer if it is not shown yet.
    pub fn finish(&mut self, run: RunId, outcome: &Outcome) -> Result<(), Failure> {
        self.pause();
        let shown = self.reply.has_shown(outcome.text());
        self.reply.unshown();
        if !shown && !outcome.text().is_empty() {
            self.say_whole(outcome.text())?;
        }
        if outcome.is_completed() && outcome.text().is_empty() {
            print::note("the model's answer is empty");
        }
        if self.volume != Volume::Usual {
            if !outcome.is_completed() {
                print::note(clean_line(&outcome.to_string(), 600));
            }
            if let Some(left) = self.worktree.left().filter(|left| left.is_stuck()) {
                print::note(crate::worktree::told(left));
            }
            return Ok(());
        }
        let took_ms = self.took.take().unwrap_or_else(|| self.began.elapsed().as_millis() as u64);
        let totals = match self.totals.totals() {
            Some(totals) => totals,
            None => {
                let below =
                    self.children.as_ref().and_then(|children| Below::in_tree(children.tree()));
                line::totals(&self.spending, Some(took_ms), below.as_ref())
            }
        };
        if outcome.is_completed() {
            self.remark(&format!("✓ {totals}"));
        } else {
            self.note(&self.paint.red(&format!("✗ {}", clean_line(&outcome.to_string(), 600))));
            self.remark(&format!("  {totals}"));
            for hint in spending::hint(outcome, run, &self.spending) {
                self.remark(&format!("  {hint}"));
            }
        }
        if self.unapproved > 0 {
            let calls = match std::mem::take(&mut self.unapproved) {
                1 => "1 call needs an approval, which no person could give".to_owned(),
                calls => format!("{calls} calls need an approval, which no person could give"),
            };
            let next =
                "work on a terminal, or permit such calls with `--allow` and a rule, such as";
            self.remark(&format!("◇ {calls}: {next} `--allow Edit` or `--allow 'Bash(make:*)'`"));
        }
        if let Some(left) = self.worktree.left() {
            self.note(&format!("◇ {}", crate::worktree::told(left)));
        }
        Ok(())
    }
}
