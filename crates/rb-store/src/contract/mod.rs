//! The suite that every backend passes: what the trait promises, one sentence a check.
//!
//! A backend's tests open an empty store for each of `ALL` and `Check::hold` it; what went wrong comes back as an
//! error that says what was found and what was expected. `recount` is the same for sequences of changes
//! that somebody else makes up, such as a property test.

/// Many callers at once.
mod crowd;
/// Runs that end and runs that go.
mod endings;
/// Which runs a list shows, and in which order.
mod lists;
/// Patterns, findings, profiles, keys, settings.
mod rest;
/// Runs begin and say more.
mod runs;
/// Rows to fill a store with.
mod sample;
/// Nobody sees what is another's.
mod scopes;
/// Steps are put and read.
mod steps;
/// Sums equal a recount.
mod sums;

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use crate::{Store, StoreError};

pub use sums::recount;

/// A promise that was not kept.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("{what}: found {found}, expected {expected}")]
    Differs { what: String, found: String, expected: String },
    #[error("{0}")]
    Store(#[from] StoreError),
}

type Checked = Result<(), Broken>;
type Checking = Pin<Box<dyn Future<Output = Checked> + Send>>;

/// One promise.
pub struct Check {
    /// A sentence.
    pub name: &'static str,
    body: fn(Arc<dyn Store>) -> Checking,
}

impl Check {
    /// Checks it on an empty store.
    pub async fn hold(&self, store: Arc<dyn Store>) -> Result<(), Broken> {
        (self.body)(store).await
    }
}

macro_rules! checks {
    ($($area:ident { $($name:ident,)+ })+) => {
        /// Every promise.
        pub const ALL: &[Check] = &[$($(
            Check { name: stringify!($name), body: |store| Box::pin($area::$name(store)) },
        )+)+];
    };
}

checks! {
    runs {
        a_run_comes_back_as_it_began,
        a_run_that_begins_again_keeps_what_is_not_said_anew,
        metadata_is_merged_key_by_key,
        experiment_and_arm_stand_once_they_are_set,
        an_unknown_run_is_none,
        every_change_of_a_run_makes_a_new_version,
        a_guarded_call_is_made_on_the_expected_version_alone,
        what_became_of_a_step_is_no_change_of_its_run,
    }
    steps {
        a_step_comes_back_as_it_was_put,
        a_step_of_an_unknown_run_begins_it,
        steps_come_in_order_whatever_the_order_they_came_in,
        steps_are_read_in_pages,
        a_step_put_again_replaces_the_first,
        the_last_index_there_is_can_be_used,
        numbers_that_are_none_are_kept_out_of_the_sums,
        large_texts_and_every_character_survive,
    }
    endings {
        an_ended_run_has_an_outcome_and_a_time,
        the_last_outcome_and_the_first_time_stand,
        an_unknown_run_begins_and_ends,
        a_deleted_run_takes_its_steps_along,
        a_run_may_come_back_after_it_was_deleted,
        silent_runs_expire_oldest_first_and_in_bites,
    }
    sums {
        a_run_counts_its_steps,
        replacing_the_highest_step_finds_the_next,
        health_counts_runs_steps_and_monitors,
        an_experiment_is_told_by_arm_and_model,
        usage_is_counted_by_day,
        runs_of_experiments_are_not_usage,
        deleting_a_run_does_not_give_its_usage_back,
    }
    lists {
        runs_come_newest_first,
        every_filter_filters,
        filters_hold_together,
        text_is_found_in_id_task_and_agent_in_any_case,
        pages_after_a_run_miss_nothing_and_repeat_nothing,
        runs_of_one_millisecond_are_paged_too,
        an_offset_skips,
    }
    scopes {
        every_read_sees_its_own_organisation_alone,
        changes_touch_their_own_organisation_alone,
        a_project_is_a_smaller_scope,
        no_scope_sees_everything,
    }
    rest {
        patterns_are_put_replaced_used_and_deleted,
        patterns_come_by_tier_and_id,
        a_pattern_is_found_by_its_name,
        patterns_are_listed_in_pages,
        changes_of_patterns_are_told_in_order_and_once,
        findings_are_put_invalidated_and_cleared,
        codebases_have_findings_or_runs,
        profiles_are_put_replaced_and_deleted,
        keys_are_found_by_hash_and_revoked_once,
        settings_are_kept_under_their_names,
        conversations_are_found_by_run_and_by_what_is_newest,
        words_wait_for_their_run_and_are_taken_once,
        changes_of_one_call_take_effect_together,
        deleting_what_is_not_there_touches_nothing,
        nothing_to_change_is_no_change,
        a_store_that_is_there_answers,
    }
    crowd {
        many_callers_write_one_run,
        one_failing_call_does_not_fail_its_neighbours,
        what_was_answered_can_be_read_at_once,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "reads like `assert_eq!`")]
fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Checked {
    if found == expected {
        return Ok(());
    }
    differs(what, &found, &expected)
}

/// Equal but for what adding in another order does to fractions.
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

/// What is there, where something must be.
fn there<T>(what: &str, found: Option<T>) -> Result<T, Broken> {
    found.ok_or_else(|| Broken::Differs {
        what: what.to_owned(),
        found: "nothing".to_owned(),
        expected: "something".to_owned(),
    })
}

/// Makes one change.
async fn put(store: &Arc<dyn Store>, change: crate::Change) -> Result<u64, Broken> {
    let touched = store.apply(vec![change]).await?;
    same("answers to one change", touched.len(), 1)?;
    Ok(touched.into_iter().sum())
}
