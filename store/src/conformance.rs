//! What every store must do, as cases that any implementation can be put through.
//!
//! A [`Subject`] opens stores; [`check`] runs the cases and names the first that fails. The
//! cases use the [`Store`] trait alone and wait with deadlines, never for luck.

mod background;
mod budgets;
mod claims;
mod deliveries;
mod leftovers;
mod lists;
mod logs;
mod ownership;
mod queue;
mod sample;
mod spending;
mod trees;
mod watching;

use crate::{Store, StoreError};
use async_trait::async_trait;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Opens the stores that are to be checked.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Opens the store `name`, empty at first. The same name twice gives two workers on the
    /// same data.
    async fn open(&self, name: &str) -> Arc<dyn Store>;
}

/// A case that a store does not satisfy.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the store breaks `{case}`: {reason}")]
pub struct Violation {
    /// Which case.
    pub case: &'static str,
    /// What was expected, and what happened.
    pub reason: String,
}

/// How long a case may take in all.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a store may take to tell of what another worker did.
const SOON: Duration = Duration::from_secs(10);

/// Why a case failed.
#[derive(Debug)]
struct Fault(String);

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault(format!("the store answered: {error}"))
    }
}

type Verdict = Result<(), Fault>;
type Case = fn(&dyn Subject) -> Pin<Box<dyn Future<Output = Verdict> + Send + '_>>;

/// Fails the case, with a reason, unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Fault(format!($($reason)+)));
        }
    };
}

/// Fails the case unless a result is a refusal of the given shape.
macro_rules! ensure_refused {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => {}
            other => {
                let expected = stringify!($pattern $(if $guard)?);
                let reason = format!("expected {expected}, got {other:?}");
                return Err($crate::conformance::Fault(reason));
            }
        }
    };
}

use {ensure, ensure_refused};

macro_rules! cases {
    ($($module:ident: $($name:ident)+;)+) => {
        &[$($((stringify!($name), |subject| Box::pin($module::$name(subject)))),+),+]
    };
}

const CASES: &[(&str, Case)] = cases! {
    logs:
        what_is_appended_is_read_back
        positions_are_consecutive
        a_log_is_read_in_pages
        a_read_that_nobody_looks_at_holds_up_nobody
        a_batch_is_all_or_nothing
        a_refusal_takes_no_neighbour_with_it
        nothing_is_lost_among_many_writers
        a_run_is_created_once
        a_log_begins_with_its_start_and_only_there
        a_key_finds_the_first_run
        one_of_many_creators_with_a_key_wins;
    ownership:
        an_owner_needs_its_epoch
        a_stale_owner_is_refused
        others_append_no_steps
        an_end_is_followed_only_by_a_message_or_archiving
        an_owner_learns_that_its_log_moved
        others_learn_that_a_log_moved
        a_finish_gives_up_the_claim
        a_waiting_run_is_claimable_when_something_is_appended
        a_queued_run_is_claimable_at_once;
    claims:
        the_longest_waiting_run_is_claimed_first
        claims_can_be_narrowed
        each_run_is_claimed_once
        closing_frees_the_claims
        a_closed_store_says_so;
    queue:
        a_higher_priority_is_claimed_first
        whoever_waits_has_a_place_and_nobody_else
        a_look_shows_some_of_every_root
        a_look_shows_what_has_come_since
        a_look_passes_over_what_is_not_wanted
        what_a_dead_worker_owned_is_seen_to_wait;
    watching:
        a_watcher_sees_appends_at_once
        a_watcher_sees_other_workers_soon
        a_watcher_learns_that_the_store_is_closed
        a_claimer_is_woken;
    lists:
        lists_begin_with_the_newest_and_have_pages
        lists_can_begin_with_the_oldest_after_one
        lists_can_be_filtered
        lists_can_be_filtered_by_what_runs_are
        lists_can_be_filtered_by_when_runs_were_made
        lists_can_be_filtered_by_where_runs_stand
        a_paused_run_is_nobody_s_until_it_goes_on
        a_list_tells_where_runs_stand
        a_row_counts_what_was_spent
        a_row_shows_its_run_at_a_glance
        a_run_is_found_by_a_part_of_its_id;
    spending:
        every_model_call_is_in_the_ledger
        what_is_refused_costs_nothing
        model_calls_are_summed_up_by_what_is_asked_for
        sums_can_be_narrowed;
    leftovers:
        a_log_is_removed_and_what_it_cost_stays
        only_the_log_of_a_run_that_has_ended_is_removed
        what_ended_is_left_over_once_its_tree_has_ended
        what_has_a_time_of_its_own_is_due_when_that_is_over
        what_was_to_be_removed_is_left_over_once_nothing_below_is_open;
    trees:
        a_child_knows_those_above_it
        what_an_ended_root_has_left_stands_beside_the_roots
        nothing_starts_below_a_run_that_was_told_to_stop
        nothing_starts_below_a_run_that_is_paused
        an_end_and_its_announcement_are_one
        a_run_that_awaits_results_sleeps_until_the_last
        a_question_is_counted_and_its_answer_wakes
        a_result_that_comes_early_is_no_retry;
    budgets:
        a_call_draws_what_it_reserves_and_gives_back_the_rest
        what_does_not_fit_is_refused_and_changes_nothing
        each_thing_is_drawn_from_the_nearest_budget_that_limits_it
        a_budget_of_its_own_is_carved_out_and_comes_back
        runs_below_count_until_they_end
        what_is_below_an_ended_run_draws_on_the_next_budget
        a_run_that_goes_on_takes_a_new_allowance
        what_nobody_limits_changes_no_other_row
        many_at_once_draw_no_more_than_there_is;
    background:
        an_announcement_wakes_whoever_waits_and_reopens_nobody
        what_is_gathered_wakes_with_the_last_or_when_it_is_quiet
        a_paused_run_is_not_claimed_until_it_goes_on_or_is_stopped
        who_has_a_higher_priority_is_claimed_first;
    deliveries:
        a_notice_is_stored_with_its_event
        a_refused_event_is_not_told
        a_delivery_is_taken_by_one_at_a_time
        what_was_taken_and_not_settled_is_due_again
        a_delivery_waits_is_given_up_and_brought_back;
};

/// Puts a store through every case. Returns their names.
///
/// # Errors
/// Names the first case that the store does not satisfy.
pub async fn check(subject: &dyn Subject) -> Result<Vec<&'static str>, Violation> {
    let mut passed = Vec::with_capacity(CASES.len());
    for (case, run) in CASES {
        let verdict = tokio::time::timeout(PATIENCE, run(subject)).await;
        let fault = verdict.unwrap_or_else(|_| Err(Fault(format!("no end after {PATIENCE:?}"))));
        fault.map_err(|fault| Violation { case, reason: fault.0 })?;
        passed.push(*case);
    }
    Ok(passed)
}
