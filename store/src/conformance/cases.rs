//! The list of all cases. Other macros turn it into a table and into tests.

/// Passes all cases except those about damage to a macro: `[the macro] its other input`.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ([$($then:tt)+] $($given:tt)*) => {
        $($then)+! {
            $($given)*
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
                one_of_many_creators_with_a_key_wins
                hashes_tie_each_event_to_all_before_it
                the_store_tells_the_time_that_it_stamps;
            copies:
                a_copy_of_a_run_is_the_same_run
                a_copy_takes_no_key_of_another_run
                a_copy_stays_on_the_machine_of_its_workspace
                a_tree_is_copied_whole_or_not_at_all
                a_run_without_its_log_is_copied_with_its_costs
                a_copy_that_breaks_off_is_seen_by_nobody
                a_copy_that_comes_late_hides_nothing
                what_was_copied_in_part_expires
                what_a_copy_has_staged_stays_while_it_goes_on;
            bundles:
                a_bundle_is_stored_with_its_step
                a_run_begins_with_a_bundle
                a_bundle_is_removed_with_its_log
                an_archived_run_keeps_its_bundle_until_its_log_is_removed
                a_staged_bundle_is_seen_by_nobody_and_expires
                a_bundle_is_stored_beside_the_steps_of_another_run
                a_copy_of_a_run_has_its_bundle;
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
                a_claim_whose_answer_was_lost_can_be_repeated
                a_worker_takes_what_it_can_have
                workers_are_listed_with_what_they_say
                each_run_is_claimed_once
                closing_frees_the_claims
                a_closed_store_says_so;
            queue:
                a_higher_priority_is_claimed_first
                whoever_waits_has_a_place_and_nobody_else
                a_look_shows_some_of_every_root
                a_look_shows_what_has_come_since
                a_look_passes_over_what_is_not_wanted;
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
                text_is_compared_and_ordered_by_its_bytes
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
            deaths:
                a_silent_worker_keeps_its_runs_until_its_lease_is_over
                a_renewed_lease_holds
                a_fenced_owner_is_refused_whatever_it_says
                a_late_owner_whom_nobody_replaced_goes_on
                what_a_killed_worker_owned_is_claimed_with_a_new_epoch
                what_was_answered_before_a_death_is_kept
                a_death_leaves_half_of_nothing
                a_claimer_is_woken_by_a_death
                what_a_dead_worker_owned_is_seen_to_wait
                a_worker_knows_whether_its_lease_has_held
                setting_the_wall_clock_takes_no_run_away
                a_delivery_that_a_dead_worker_took_is_due_again;
        }
    };
}

/// Passes the cases about damage to a macro. A store in memory cannot be damaged.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_damage_cases {
    ([$($then:tt)+] $($given:tt)*) => {
        $($then)+! {
            $($given)*
            damage:
                a_changed_event_is_told
                damage_stops_its_run_and_no_other
                damage_is_told_to_every_worker;
        }
    };
}

/// Makes a test of each case that a store must pass.
///
/// It takes an expression that creates a [`Subject`](crate::conformance::Subject), and may
/// `.await`. Each test creates its own. The tests are in modules that are named like the groups of
/// cases. `tokio` must be a dependency with the features `macros` and `rt-multi-thread`.
///
/// ```ignore
/// mod conformance {
///     posse_store::conformance_tests!(MySubject::new().await);
/// }
/// ```
///
/// A store whose data no other program can change leaves out the cases about damage:
/// `conformance_tests!(MySubject::new(), except damage)`.
#[macro_export]
macro_rules! conformance_tests {
    ($subject:expr) => {
        $crate::conformance_cases!([$crate::conformance_tests] @ $subject;);
        $crate::conformance_damage_cases!([$crate::conformance_tests] @ $subject;);
    };
    ($subject:expr, except damage) => {
        $crate::conformance_cases!([$crate::conformance_tests] @ $subject;);
    };
    (@ $subject:expr; $($module:ident: $($name:ident)+;)+) => {
        $(mod $module {
            #[allow(unused_imports, reason = "the expression may name anything")]
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let case = concat!(stringify!($module), "::", stringify!($name));
                    let subject = $subject;
                    let checked = $crate::conformance::check(&subject, case).await;
                    checked.unwrap_or_else(|violation| panic!("{violation}"));
                }
            )+
        })+
    };
}
