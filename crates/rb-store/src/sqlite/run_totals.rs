//! Columns of the run totals.

use std::borrow::Cow;

use rusqlite::{Connection, Result, params};

use super::columns::{Columns, to_json};
use super::execute;
use crate::numeric::to_nano;
use crate::run_totals::{RunTotals, StepContribution, owned, shown, with_cost};

/// Reads the contribution of a stored step from [`StepContribution::COLUMNS`].
pub(super) fn contribution(columns: &mut Columns<'_>) -> Result<StepContribution<'static>> {
    let score = columns.next()?;
    let cost = to_nano(columns.next()?);
    let tokens =
        [columns.next()?, columns.next()?, columns.next()?, columns.next()?, columns.next()?];
    Ok(StepContribution {
        score,
        tokens_and_cost: with_cost(tokens, cost),
        injected: columns.next()?,
        model: Cow::Owned(columns.next()?),
        scores: Cow::Owned(columns.next_json()?),
        fired: owned(columns.next_json()?),
        patterns: shown(&columns.next_json::<Vec<String>>()?),
    })
}

/// Reads totals from [`RunTotals::COLUMNS`].
pub(super) fn totals(columns: &mut Columns<'_>) -> Result<RunTotals> {
    Ok(RunTotals {
        steps: columns.next()?,
        injected_steps: columns.next()?,
        fired_steps: columns.next()?,
        warn_steps: columns.next()?,
        danger_steps: columns.next()?,
        score_nano: columns.next()?,
        score_peak: columns.next()?,
        tokens_and_cost: [
            columns.next()?,
            columns.next()?,
            columns.next()?,
            columns.next()?,
            columns.next()?,
            columns.next()?,
        ],
        monitors: columns.next_json()?,
        models: columns.next_json()?,
    })
}

/// Writes the totals into the run's row and adds `changes` to its version.
pub(super) fn write(
    connection: &Connection,
    run: i64,
    totals: &RunTotals,
    changes: u32,
    at_ms: i64,
) -> Result<()> {
    let [total, input, output, cache_read, cache_write, cost_nano] = totals.tokens_and_cost;
    execute(
        connection,
        "UPDATE runs SET version = version + ?, seen_ms = max(seen_ms, ?), step_count = ?, injected_steps = ?, fired_steps = ?,
            warn_steps = ?, danger_steps = ?, score_nano = ?, score_peak = ?, tokens_total = ?, tokens_input = ?, tokens_output = ?,
            cache_read = ?, cache_write = ?, cost_nano = ?, monitors = ?, models = ?
         WHERE id = ?",
        params![
            changes,
            at_ms,
            totals.steps,
            totals.injected_steps,
            totals.fired_steps,
            totals.warn_steps,
            totals.danger_steps,
            totals.score_nano,
            totals.score_peak,
            total,
            input,
            output,
            cache_read,
            cache_write,
            cost_nano,
            to_json(&totals.monitors)?,
            to_json(&totals.models)?,
            run,
        ],
    )
    .map(drop)
}
