//! A run's steps in numbers: what a step adds is taken away again when the step is replaced, to the last digit.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Result, params};

use super::cell::{Cells, amount, count_in, json_in, nano_in};
use super::execute;
use crate::{Health, StepRow, Tokens};

/// What one step brings to its run.
pub(super) struct Share {
    score: f64,
    /// Total, input, output, cache read, cache written, cost in billionths.
    spent: Spent,
    model: String,
    injected: bool,
    scores: BTreeMap<String, f64>,
    fired: BTreeSet<String>,
    patterns: BTreeSet<String>,
}

type Spent = [i64; 6];

impl Share {
    pub(super) const COLUMNS: &str = "total_score, cost_usd, tokens_total, tokens_input, tokens_output, cache_read, \
                                      cache_write, injected, model, scores, fired, injections";

    pub(super) fn of(step: &StepRow) -> Self {
        Self {
            score: amount(step.total_score),
            spent: spent(&step.tokens, step.cost_usd),
            model: step.model.clone(),
            injected: step.is_injected(),
            scores: step.scores.clone(),
            fired: step.fired.iter().cloned().collect(),
            patterns: step.patterns().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Of a step as it is stored, from [`Share::COLUMNS`].
    pub(super) fn read(cells: &mut Cells<'_>) -> Result<Self> {
        let score = cells.next()?;
        let cost = nano_in(cells.next()?);
        let tokens = [cells.next()?, cells.next()?, cells.next()?, cells.next()?, cells.next()?];
        Ok(Self {
            score,
            spent: with_cost(tokens, cost),
            injected: cells.next()?,
            model: cells.next()?,
            scores: cells.next_json()?,
            fired: cells.next_json()?,
            patterns: {
                let injections = cells.next_json()?;
                Self::of(&StepRow { injections, ..StepRow::default() }).patterns
            },
        })
    }

    /// The patterns that were shown.
    pub(super) fn patterns(&self) -> &BTreeSet<String> {
        &self.patterns
    }

    /// Tokens as a meter counts them.
    pub(super) fn tokens(&self) -> i64 {
        self.spent[0]
    }

    pub(super) fn is_injected(&self) -> bool {
        self.injected
    }
}

fn spent(tokens: &Tokens, cost_usd: f64) -> Spent {
    let Tokens { total, input, output, cache_read, cache_write } = *tokens;
    with_cost([total, input, output, cache_read, cache_write].map(count_in), nano_in(cost_usd))
}

fn with_cost([total, input, output, cache_read, cache_write]: [i64; 5], cost_nano: i64) -> Spent {
    [total, input, output, cache_read, cache_write, cost_nano]
}

/// The sums over a run's steps, as they lie in its row.
#[derive(Default)]
pub(super) struct Tally {
    steps: i64,
    injected_steps: i64,
    fired_steps: i64,
    warn_steps: i64,
    danger_steps: i64,
    score_nano: i64,
    score_peak: f64,
    spent: Spent,
    /// Fired, low, warn, danger.
    pub(super) monitors: BTreeMap<String, [i64; 4]>,
    pub(super) models: BTreeMap<String, Spent>,
}

/// Whether a share is added or taken away.
#[derive(Clone, Copy)]
enum Sign {
    Plus,
    Minus,
}

impl Sign {
    fn of(self, number: i64) -> i64 {
        match self {
            Self::Plus => number,
            Self::Minus => -number,
        }
    }
}

impl Tally {
    pub(super) const COLUMNS: &str = "step_count, injected_steps, fired_steps, warn_steps, danger_steps, score_nano, \
                                      score_peak, tokens_total, tokens_input, tokens_output, cache_read, cache_write, cost_nano, monitors, models";

    /// From [`Tally::COLUMNS`].
    pub(super) fn read(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
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

    pub(super) fn add(&mut self, share: &Share) {
        self.count(share, Sign::Plus);
        self.score_peak = self.score_peak.max(share.score);
    }

    /// Takes a share away. The answer says whether the peak went with it and has to be looked for.
    #[must_use]
    pub(super) fn take(&mut self, share: &Share) -> bool {
        self.count(share, Sign::Minus);
        share.score >= self.score_peak
    }

    pub(super) fn set_peak(&mut self, peak: f64) {
        self.score_peak = peak;
    }

    /// The monitors that fired on at least one step.
    pub(super) fn fired(&self) -> BTreeSet<String> {
        let fired = self.monitors.iter().filter(|(_, counts)| counts[0] > 0);
        fired.map(|(name, _)| name.clone()).collect()
    }

    fn count(&mut self, share: &Share, sign: Sign) {
        self.steps += sign.of(1);
        self.injected_steps += sign.of(i64::from(share.injected));
        self.fired_steps += sign.of(i64::from(!share.fired.is_empty()));
        match Severity::of(share.score) {
            Severity::Low => {}
            Severity::Warn => self.warn_steps += sign.of(1),
            Severity::Danger => self.danger_steps += sign.of(1),
        }
        self.score_nano += sign.of(nano_in(share.score));
        for (sum, spent) in self.spent.iter_mut().zip(share.spent) {
            *sum += sign.of(spent);
        }
        if share.spent != Spent::default() {
            let model = self.models.entry(share.model.clone()).or_default();
            for (sum, spent) in model.iter_mut().zip(share.spent) {
                *sum += sign.of(spent);
            }
            self.models.retain(|_, sums| *sums != Spent::default());
        }
        for (name, score) in share.scores.iter().filter(|(_, score)| score.is_finite()) {
            self.monitors.entry(name.clone()).or_default()[Severity::of(*score).place()] +=
                sign.of(1);
        }
        for name in &share.fired {
            self.monitors.entry(name.clone()).or_default()[0] += sign.of(1);
        }
        self.monitors.retain(|_, counts| *counts != [0; 4]);
    }

    /// Writes the sums into the row of their run; `at_ms` is when it was heard of.
    pub(super) fn write(&self, connection: &Connection, run: i64, at_ms: i64) -> Result<u64> {
        let [total, input, output, cache_read, cache_write, cost_nano] = self.spent;
        execute(
            connection,
            "UPDATE runs SET seen_ms = max(seen_ms, ?), step_count = ?, injected_steps = ?, fired_steps = ?,
                warn_steps = ?, danger_steps = ?, score_nano = ?, score_peak = ?, tokens_total = ?, tokens_input = ?, tokens_output = ?,
                cache_read = ?, cache_write = ?, cost_nano = ?, monitors = ?, models = ?
             WHERE id = ?",
            params![
                at_ms,
                self.steps,
                self.injected_steps,
                self.fired_steps,
                self.warn_steps,
                self.danger_steps,
                self.score_nano,
                self.score_peak,
                total,
                input,
                output,
                cache_read,
                cache_write,
                cost_nano,
                json_in(&self.monitors)?,
                json_in(&self.models)?,
                run,
            ],
        )
    }
}

/// How high a score is.
enum Severity {
    Low,
    Warn,
    Danger,
}

impl Severity {
    fn of(score: f64) -> Self {
        if score < Health::CLEAN_BELOW {
            Self::Low
        } else if score < Health::DANGER_FROM {
            Self::Warn
        } else {
            Self::Danger
        }
    }

    /// Where a monitor's score is counted: behind the place of the steps on which the monitor fired.
    fn place(&self) -> usize {
        match self {
            Self::Low => 1,
            Self::Warn => 2,
            Self::Danger => 3,
        }
    }
}
