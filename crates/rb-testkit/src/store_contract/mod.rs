//! Contract suite of the store: one named check per property of the trait.
//!
//! The tests of a backend run each check of `ALL` on an empty store; a failure states the found and the expected
//! value. `recount` checks the aggregates after any sequence of changes, for property tests.

/// Aggregates.
mod aggregates;
/// Concurrent callers.
mod concurrency;
/// Sample rows.
mod fixtures;
/// Patterns, findings, profiles, keys, settings.
mod library_and_keys;
/// Lists of runs.
mod lists;
/// End and deletion of runs.
mod run_end;
/// Start and description of runs.
mod runs;
/// Isolation of organisations and projects.
mod scopes;
/// Steps.
mod steps;

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use rb_store::{Store, StoreError};

pub use aggregates::recount;

/// Failed check.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("{what}: found {found}, expected {expected}")]
    Differs { what: String, found: String, expected: String },
    #[error("{0}")]
    Store(#[from] StoreError),
}

type Checked = Result<(), Broken>;
type Checking = Pin<Box<dyn Future<Output = Checked> + Send>>;

/// Named check.
pub struct Check {
    /// Sentence that describes the property.
    pub name: &'static str,
    body: fn(Arc<dyn Store>) -> Checking,
}

impl Check {
    /// Runs the check on an empty store.
    pub async fn hold(&self, store: Arc<dyn Store>) -> Result<(), Broken> {
        (self.body)(store).await
    }
}

macro_rules! checks {
    ($($area:ident { $($name:ident,)+ })+) => {
        /// All checks.
        pub const ALL: &[Check] = &[$($(
            Check { name: stringify!($name), body: |store| Box::pin($area::$name(store)) },
        )+)+];
    };
}

checks! {
    runs {
        a_started_run_is_read_back,
        a_second_start_keeps_the_fields_it_leaves_empty,
        metadata_is_merged_key_by_key,
        experiment_and_arm_keep_their_first_value,
        an_unknown_run_is_not_found,
        every_change_of_a_run_increases_its_version,
        a_guarded_call_requires_the_expected_version,
        amending_a_step_keeps_the_version_of_its_run,
    }
    steps {
        a_step_is_read_back_unchanged,
        a_step_creates_an_unknown_run,
        steps_are_listed_by_index,
        steps_are_read_in_pages,
        a_step_with_the_same_index_is_replaced,
        the_largest_step_index_is_valid,
        non_finite_numbers_are_left_out_of_sums,
        large_texts_and_all_characters_are_stored,
    }
    run_end {
        a_finished_run_has_an_outcome_and_a_time,
        the_last_outcome_and_the_first_end_time_are_kept,
        finishing_an_unknown_run_creates_it,
        deleting_a_run_deletes_its_steps,
        a_deleted_run_id_can_be_used_again,
        inactive_runs_expire_oldest_first_in_batches,
    }
    aggregates {
        a_run_counts_its_steps,
        replacing_the_peak_step_recomputes_the_peak,
        health_counts_runs_steps_and_monitors,
        an_experiment_is_reported_by_arm_and_model,
        usage_is_counted_by_day,
        experiment_runs_do_not_count_as_usage,
        deleting_a_run_keeps_its_usage,
    }
    lists {
        runs_are_listed_newest_first,
        each_filter_selects_its_runs,
        filters_can_be_combined,
        text_search_covers_id_task_and_agent_ignoring_case,
        pages_neither_skip_nor_repeat_runs,
        runs_with_equal_start_times_are_paged,
        an_offset_skips_runs,
    }
    scopes {
        reads_are_limited_to_the_organisation,
        changes_are_limited_to_the_organisation,
        a_project_limits_the_scope,
        an_unlimited_scope_includes_everything,
    }
    library_and_keys {
        patterns_are_put_replaced_used_and_deleted,
        patterns_are_listed_by_tier_and_id,
        a_pattern_is_found_by_its_key,
        patterns_are_listed_in_pages,
        pattern_changes_are_listed_in_order_and_once,
        findings_are_put_invalidated_and_cleared,
        codebases_with_findings_or_runs_are_listed,
        profiles_are_put_replaced_and_deleted,
        keys_are_found_by_hash_and_revoked_once,
        settings_are_stored_by_name,
        conversations_are_found_by_run_and_by_key,
        operator_messages_are_taken_once,
        changes_of_one_call_are_atomic,
        deleting_a_missing_row_affects_no_rows,
        an_empty_call_changes_nothing,
        an_open_store_answers_a_ping,
    }
    concurrency {
        concurrent_callers_write_one_run,
        a_failing_call_does_not_affect_concurrent_calls,
        an_acknowledged_write_is_visible_at_once,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "reads like `assert_eq!`")]
fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Checked {
    if found == expected {
        return Ok(());
    }
    differs(what, &found, &expected)
}

/// Compares with a tolerance for the order of floating-point additions.
fn near(what: &str, found: f64, expected: f64) -> Checked {
    if (found - expected).abs() < 1e-6 {
        return Ok(());
    }
    differs(what, &found, &expected)
}

fn holds(what: &str, is_so: bool) -> Checked {
    same(what, is_so, true)
}

fn differs(what: &str, found: &dyn Debug, expected: &dyn Debug) -> Checked {
    Err(Broken::Differs {
        what: what.to_owned(),
        found: format!("{found:?}"),
        expected: format!("{expected:?}"),
    })
}

/// Returns the value, or an error if it is missing.
fn there<T>(what: &str, found: Option<T>) -> Result<T, Broken> {
    found.ok_or_else(|| Broken::Differs {
        what: what.to_owned(),
        found: "nothing".to_owned(),
        expected: "something".to_owned(),
    })
}

/// Applies one change.
async fn put(store: &Arc<dyn Store>, change: rb_store::Change) -> Result<u64, Broken> {
    let touched = store.apply(vec![change]).await?;
    same("results of one change", touched.len(), 1)?;
    Ok(touched.into_iter().sum())
}
