//! The state of a checkout, which is stored with the steps of its run.

use super::RunJournal;
use crate::worktree::{self, Checkout, Repositories, STILL_IN, Share};
use posse_protocol::{Event, Sender, Seq};
use posse_store::{Ownership, StoreError};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The checkout that a run works in.
#[derive(Clone)]
pub(crate) struct InCheckout {
    pub(crate) repositories: Repositories,
    pub(crate) checkout: Arc<Checkout>,
    /// The tools that change no file.
    pub(crate) looking: Arc<HashSet<String>>,
    /// True if a call may have changed files since the state was stored.
    pub(crate) touched: Arc<AtomicBool>,
}

impl RunJournal {
    /// Like `hand_over`, for a run in a checkout. The state of the checkout is stored in the same append, if it
    /// changed: with the results of the calls that may have changed it, with the news that changes of children are in
    /// it, at the end, and when the run changes hands.
    pub(super) async fn pass_with_state(
        &self,
        mut events: Vec<Event>,
        last: Option<Seq>,
        then: Ownership,
        place: InCheckout,
    ) -> Result<Seq, StoreError> {
        let InCheckout { repositories, checkout, looking, touched } = place;
        let changes = |event: &Event| matches!(event, Event::ToolStarted(started) if !looking.contains(&started.tool));
        let was_touched = touched.load(Ordering::Relaxed);
        let last_begun = events.iter().rposition(changes);
        let is_end = matches!(events.last(), Some(Event::RunFinished(_)));
        let is_step = then == Ownership::Mine && !is_end;
        let last_result = events.iter().rposition(|it| matches!(it, Event::ToolFinished(_)));
        let begun_before = was_touched || last_begun < last_result && last_begun.is_some();
        let is_news = |event: &Event| matches!(event, Event::MessageReceived(it) if it.from == Sender::Workspace);
        let may_differ =
            last_result.is_some() && begun_before || was_touched && events.iter().any(is_news);
        if is_step && !may_differ {
            touched.store(was_touched || last_begun.is_some(), Ordering::Relaxed);
            return self.pass(events, last, then, None).await;
        }
        let mut state = checkout.state(if is_step { Share::Step } else { Share::Whole }).await;
        let mut is_taken = false;
        if let Some(Event::RunFinished(finished)) = events.last_mut() {
            let changes = checkout.changes(&state).await;
            is_taken = worktree::is_taken(changes.as_ref());
            finished.changes = changes.map(Box::new);
        }
        let mut stored = self.pass(events.clone(), last, then, state.bundle.clone()).await;
        if matches!(stored, Err(StoreError::Full)) && is_end && state.bundle.is_some() {
            // The end itself has reserved space.
            (state.bundle, is_taken) = (None, false);
            let problem = "the store has no space for it".to_owned();
            if let Some(Event::RunFinished(finished)) = events.last_mut() {
                let problem = format!("{problem}{STILL_IN}{}", checkout.place());
                finished.changes =
                    Some(Box::new(worktree::stuck(&checkout.local().worktree, problem)));
            }
            state.problem = Some(problem);
            stored = self.pass(events, last, then, None).await;
        }
        let first = stored?;
        if is_end && is_taken {
            // If this fails, `posse runs clean` finds the checkout.
            let _ = repositories.remove_own(&checkout).await;
            return Ok(first);
        }
        if let Some(bundle) = state.bundle.clone() {
            checkout.is_stored(bundle).await;
        }
        if is_step {
            // A call that begins with this step will change more.
            let lacks = state.problem.is_some();
            touched.store(lacks || last_begun > last_result, Ordering::Relaxed);
        } else {
            checkout.leave(&state);
        }
        Ok(first)
    }
}
