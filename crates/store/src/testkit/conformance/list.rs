//! Every case by role, with the ledger rows it proves. The tests of each backend and `CASES` are made from this one
//! list; a case that is missing here is dead code and the compiler says so.

use super::Case;

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_cases {
    ($next:ident ($($args:tt)*)) => {
        $crate::$next! {
            ($($args)*)
            log {
                a_new_run_starts_at_sequence_one proves "ES-004";
                sequences_follow_the_head proves "ES-002", "ES-004";
                events_come_back_as_they_went_in;
                an_unknown_run_is_not_found;
                another_sequence_is_a_conflict proves "ES-002";
                a_new_run_needs_its_row;
                a_run_is_created_once;
                a_page_ends_where_it_is_told;
                the_system_stream_is_there_from_the_start;
                an_append_without_events_changes_rows;
                the_clock_is_the_one_given;
            }
            keys {
                a_repeated_append_answers_with_what_exists proves "ES-007";
                a_repeated_append_writes_no_rows proves "ES-007";
                strict_mode_names_the_existing_event proves "ES-007";
                some_existing_keys_are_adopted_with_any proves "ES-007";
                some_existing_keys_conflict_with_a_sequence;
                a_key_belongs_to_one_run proves "ES-007";
                a_key_twice_in_one_append_makes_one_event;
            }
            atomic {
                several_runs_change_together;
                a_late_write_that_was_overtaken_begins_no_run;
                one_refused_stream_undoes_all proves "ES-081";
                an_undone_change_restores_what_was_there;
                fence_and_authority_are_judged_before_any_stream;
            }
            reader {
                every_event_is_seen_once_in_order proves "ES-081";
                the_head_and_the_counts_match;
                racing_writers_share_no_sequence proves "ES-002";
                one_of_many_wins_a_sequence proves "ES-002";
                exactly_one_wins_the_second_event proves "ES-002";
                one_of_many_creates_the_run;
                a_reader_among_writers_misses_nothing proves "ES-081";
            }
            runs {
                a_row_comes_back_as_it_went_in;
                an_append_changes_the_row_with_the_event;
                lists_are_filtered_and_go_both_ways;
                lists_are_narrowed_by_what_callers_know;
                open_runs_are_counted_by_version;
                open_runs_below_a_root_are_counted_and_listed;
                ids_sort_by_byte;
                a_request_starts_one_run proves "ES-072";
                racing_requests_start_one_run proves "ES-072";
                active_runs_are_counted_up_to_a_limit;
            }
            queue {
                claims_take_the_oldest_due;
                tenants_take_turns_in_the_queue;
                claims_go_on_behind_a_tenant;
                a_lease_lasts_and_then_ends proves "ES-073";
                a_run_is_started_by_the_holder_only proves "ES-073";
                a_lease_can_be_given_back;
                queueing_again_replaces_the_row;
                all_leases_can_be_broken;
                racing_owners_claim_each_run_once proves "ES-071", "ES-073";
            }
            dispatch {
                a_request_is_queued_once proves "RT-005";
                moves_follow_the_table proves "RT-006";
                moves_keep_what_they_were_told;
                an_unknown_request_is_not_found proves "RT-006";
                only_an_older_epoch_is_adopted;
                only_a_pending_dispatch_is_withdrawn;
                open_dispatches_are_steps_of_older_epochs;
                a_flood_of_one_tenant_hides_no_other;
                the_backlog_counts_every_state proves "RT-013";
            }
            timers {
                a_timer_is_set_moved_and_cleared;
                timers_are_due_at_their_time;
            }
            authority {
                one_owner_holds_it proves "RT-002";
                times_are_shown_as_they_came;
                the_holder_renews proves "RT-003";
                an_expired_lease_is_taken_over proves "RT-004";
                a_fence_needs_the_current_epoch proves "RT-004";
                a_fence_is_judged_before_the_change_beside_it;
                resigning_frees_it_at_once;
                cursors_can_be_fenced;
                one_of_many_acquires_it proves "RT-002";
                a_take_over_and_a_fenced_write_do_not_mix;
            }
            relay {
                a_cursor_keeps_its_place proves "RT-007";
                a_cursor_moves_only_from_where_it_is proves "RT-007";
                one_of_many_moves_the_cursor;
                cursors_move_with_an_append;
                notes_come_due_oldest_first;
                a_note_given_up_is_a_dead_letter;
                dead_letters_are_redriven;
            }
            alerts {
                the_same_alert_counts_up;
                alerts_differ_by_code_tenant_and_subject;
                every_code_can_be_raised;
                raising_at_once_loses_no_count;
            }
            retention {
                a_deleted_run_leaves_nothing;
                retired_runs_leave_nothing;
                only_runs_finished_before_are_retired;
                positions_are_never_used_again;
                the_system_stream_is_trimmed_and_goes_on;
                finished_operator_dispatches_are_trimmed;
                quarantine_sets_a_run_aside;
            }
            tenancy {
                a_foreign_run_does_not_exist;
                a_foreign_run_cannot_be_written;
                equal_names_of_two_tenants_do_not_meet;
                one_append_may_span_tenants;
            }
            limits {
                payloads_of_every_size_come_back;
                a_page_has_a_size;
                one_byte_too_many_is_refused;
                a_transaction_has_a_size;
                a_run_has_a_last_event;
            }
            damage {
                a_changed_event_is_refused_and_named;
                readers_of_the_log_pass_a_changed_event_by;
                a_damaged_run_can_be_set_aside_and_removed;
            }
            snapshots_resync {
                the_latest_at_or_before_is_found;
                an_append_can_bring_one;
                a_snapshot_of_a_run_that_is_gone_is_no_error;
                full_gives_every_event proves "ES-047";
                from_snapshot_gives_it_and_the_rest proves "ES-047";
                from_snapshot_falls_back_to_full proves "ES-047";
                a_long_run_is_read_page_by_page proves "ES-047";
                the_state_is_what_the_events_add_up_to proves "ES-001";
            }
            registry {
                versions_count_from_one;
                the_same_document_is_published_once;
                racing_publishers_share_no_version;
                versions_are_listed_newest_first;
                functions_are_listed_by_tenant_and_name;
                documents_have_a_size;
                aliases_name_a_version;
                a_function_has_so_many_aliases;
                a_removed_function_leaves_nothing;
                functions_outlive_the_process;
            }
            invocations {
                lists_of_invocations_hold_no_other_runs;
                lists_come_in_several_orders;
                filters_are_put_together;
                how_it_was_called_stays;
                invocations_are_counted_by_status;
                racing_writers_lose_no_count;
                a_freed_request_starts_another_run;
                racing_releases_start_one_run;
            }
            entrypoints {
                an_entrypoint_comes_back_as_it_went_in;
                an_address_belongs_to_one_entrypoint;
                racing_registrations_share_no_address;
                a_change_needs_the_revision;
                racing_changes_lose_none;
                what_the_system_shares_is_there_for_all;
                foreign_entrypoints_do_not_exist;
                lists_keep_every_condition;
                lists_go_on_behind_a_place;
                entrypoints_have_a_size;
                entrypoints_outlive_the_process;
            }
            lines {
                lines_come_back_in_order;
                lines_belong_to_a_run_of_the_tenant;
                the_oldest_lines_leave;
                lines_have_a_size;
                a_long_line_is_cut_and_says_so;
                lines_go_with_their_run;
                racing_writers_share_no_number;
                lines_outlive_the_process;
            }
            identity {
                a_key_is_found_by_its_digest;
                keys_are_listed_newest_first;
                a_revoked_key_stays_revoked;
                use_is_noted_once_a_minute;
                ended_keys_leave;
                a_tenant_has_so_many_live_keys;
                keys_are_checked;
                keys_outlive_the_process;
            }
            audit {
                entries_come_back_newest_first;
                entries_are_found_by_every_condition;
                an_entry_is_written_once;
                old_entries_leave;
                entries_of_a_tenant_are_its_own;
                long_texts_are_cut;
            }
            import {
                gaps_stay_and_the_run_goes_on proves "ES-003";
                a_reader_sees_it_come_in;
                an_export_comes_back_after_deletion;
                a_taken_request_is_refused;
                a_broken_export_is_refused proves "ES-004";
                events_belong_to_the_tenant_of_the_row;
            }
            admin {
                it_says_what_it_is;
                everything_outlives_the_process proves "ES-001";
                a_closed_store_says_so;
            }
        }
    };
}

macro_rules! table {
    (() $($group:ident { $($name:ident $(proves $($ledger:literal),+)?;)* })*) => {
        pub const CASES: &[Case] = &[
            $($(Case {
                name: concat!(stringify!($group), "::", stringify!($name)),
                ledger: &[$($($ledger),+)?],
                run: |ctx| Box::pin(async move { super::$group::$name(&ctx).await }),
            },)*)*
        ];
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_table { ($($list:tt)*) => { table! { $($list)* } } }

__conformance_cases! { __conformance_table () }
