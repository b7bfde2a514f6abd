//! Reads and writes a run's sums.

use std::borrow::Cow;

use rusqlite::{Connection, Result, params};

use super::cell::{Cells, json_in};
use super::execute;
use crate::numbers::nano_in;
use crate::tally::{Share, Tally, owned, shown, with_cost};

/// Of a step as it is stored, from [`Share::COLUMNS`].
pub(super) fn share(cells: &mut Cells<'_>) -> Result<Share<'static>> {
    let score = cells.next()?;
    let cost = nano_in(cells.next()?);
    let tokens = [cells.next()?, cells.next()?, cells.next()?, cells.next()?, cells.next()?];
    Ok(Share {
        score,
        spent: with_cost(tokens, cost),
        injected: cells.next()?,
        model: Cow::Owned(cells.next()?),
        scores: Cow::Owned(cells.next_json()?),
        fired: owned(cells.next_json()?),
        patterns: shown(&cells.next_json::<Vec<String>>()?),
    })
}

/// From [`Tally::COLUMNS`].
pub(super) fn tally(cells: &mut Cells<'_>) -> Result<Tally> {
    Ok(Tally {
        steps: cells.next()?,
        injected_steps: cells.next()?,
        fired_steps: cells.next()?,
        warn_steps: cells.next()?,
        danger_steps: cells.next()?,
        score_nano: cells.next()?,
        score_peak: cells.next()?,
        spent: [
            cells.next()?,
            cells.next()?,
            cells.next()?,
            cells.next()?,
            cells.next()?,
            cells.next()?,
        ],
        monitors: cells.next_json()?,
        models: cells.next_json()?,
    })
}

/// Writes the sums into the row of their run, which was changed so often; `at_ms` is when it was heard of.
pub(super) fn write(
    connection: &Connection,
    run: i64,
    tally: &Tally,
    changes: u32,
    at_ms: i64,
) -> Result<()> {
    let [total, input, output, cache_read, cache_write, cost_nano] = tally.spent;
    execute(
        connection,
        "UPDATE runs SET version = version + ?, seen_ms = max(seen_ms, ?), step_count = ?, injected_steps = ?, fired_steps = ?,
            warn_steps = ?, danger_steps = ?, score_nano = ?, score_peak = ?, tokens_total = ?, tokens_input = ?, tokens_output = ?,
            cache_read = ?, cache_write = ?, cost_nano = ?, monitors = ?, models = ?
         WHERE id = ?",
        params![
            changes,
            at_ms,
            tally.steps,
            tally.injected_steps,
            tally.fired_steps,
            tally.warn_steps,
            tally.danger_steps,
            tally.score_nano,
            tally.score_peak,
            total,
            input,
            output,
            cache_read,
            cache_write,
            cost_nano,
            json_in(&tally.monitors)?,
            json_in(&tally.models)?,
            run,
        ],
    )
    .map(drop)
}
