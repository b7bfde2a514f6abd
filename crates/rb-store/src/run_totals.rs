//! Aggregates over the steps of a run. Sums are integers, so a replaced step can be subtracted exactly.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::numeric::{amount, count_from_db, count_to_db, from_nano, to_nano};
use crate::rows::pattern;
use crate::{Health, ModelTokens, Scores, StepRow, Tokens};

/// Contribution of one step to the totals of its run.
pub(crate) struct StepContribution<'a> {
    pub(crate) score: f64,
    pub(crate) tokens_and_cost: TokenTotals,
    pub(crate) model: Cow<'a, str>,
    pub(crate) injected: bool,
    pub(crate) scores: Cow<'a, Scores>,
    pub(crate) fired: BTreeSet<Cow<'a, str>>,
    /// Patterns that were shown.
    pub(crate) patterns: BTreeSet<String>,
}

/// Total, input, output, cache read and cache write tokens, and the cost in billionths.
pub(crate) type TokenTotals = [i64; 6];

/// Interventions, steps and tokens.
pub(crate) type UsageDelta = [i64; 3];

impl<'a> StepContribution<'a> {
    pub(crate) fn of(step: &'a StepRow) -> Self {
        Self {
            score: amount(step.total_score),
            tokens_and_cost: tokens_and_cost(&step.tokens, step.cost_usd),
            model: Cow::Borrowed(&step.model),
            injected: step.is_injected(),
            scores: Cow::Borrowed(&step.scores),
            fired: step.fired.iter().map(|name| Cow::Borrowed(name.as_str())).collect(),
            patterns: shown(&step.injections),
        }
    }

    /// Returns the usage that the step counts as.
    pub(crate) fn used(&self) -> UsageDelta {
        [i64::from(self.injected), 1, self.tokens_and_cost[0]]
    }
}

/// Returns the patterns among the injections.
pub(crate) fn shown(injections: &[String]) -> BTreeSet<String> {
    injections.iter().filter_map(|shown| pattern(shown)).map(str::to_owned).collect()
}

fn tokens_and_cost(tokens: &Tokens, cost_usd: f64) -> TokenTotals {
    let Tokens { total, input, output, cache_read, cache_write } = *tokens;
    with_cost([total, input, output, cache_read, cache_write].map(count_to_db), to_nano(cost_usd))
}

/// Joins token counts and cost.
pub(crate) fn with_cost(
    [total, input, output, cache_read, cache_write]: [i64; 5],
    cost_nano: i64,
) -> TokenTotals {
    [total, input, output, cache_read, cache_write, cost_nano]
}

/// Totals over the steps of a run.
#[derive(Default)]
pub(crate) struct RunTotals {
    pub(crate) steps: i64,
    pub(crate) injected_steps: i64,
    pub(crate) fired_steps: i64,
    pub(crate) warn_steps: i64,
    pub(crate) danger_steps: i64,
    pub(crate) score_nano: i64,
    pub(crate) score_peak: f64,
    pub(crate) tokens_and_cost: TokenTotals,
    /// Counts of fired, low, warn and danger.
    pub(crate) monitors: BTreeMap<String, [i64; 4]>,
    pub(crate) models: BTreeMap<String, TokenTotals>,
}

/// Direction of a change of the totals.
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

impl RunTotals {
    pub(crate) fn add(&mut self, contribution: &StepContribution<'_>) {
        self.count(contribution, Sign::Plus);
        self.score_peak = self.score_peak.max(contribution.score);
    }

    /// Subtracts a contribution. Returns true if it had the peak score, which must then be recomputed.
    #[must_use]
    pub(crate) fn subtract(&mut self, contribution: &StepContribution<'_>) -> bool {
        self.count(contribution, Sign::Minus);
        contribution.score >= self.score_peak
    }

    pub(crate) fn set_peak(&mut self, peak: f64) {
        self.score_peak = peak;
    }

    /// Returns the monitors that fired on at least one step.
    pub(crate) fn fired(&self) -> BTreeSet<String> {
        let fired = self.monitors.iter().filter(|(_, counts)| counts[0] > 0);
        fired.map(|(name, _)| name.clone()).collect()
    }

    fn count(&mut self, contribution: &StepContribution<'_>, sign: Sign) {
        self.steps += sign.of(1);
        self.injected_steps += sign.of(i64::from(contribution.injected));
        self.fired_steps += sign.of(i64::from(!contribution.fired.is_empty()));
        match Severity::of(contribution.score) {
            Severity::Low => {}
            Severity::Warn => self.warn_steps += sign.of(1),
            Severity::Danger => self.danger_steps += sign.of(1),
        }
        self.score_nano += sign.of(to_nano(contribution.score));
        add(
            &mut self.tokens_and_cost,
            contribution.tokens_and_cost.map(|tokens_and_cost| sign.of(tokens_and_cost)),
        );
        if contribution.tokens_and_cost != TokenTotals::default() {
            add_to(
                &mut self.models,
                &contribution.model,
                contribution.tokens_and_cost.map(|tokens_and_cost| sign.of(tokens_and_cost)),
            );
            self.models.retain(|_, sums| *sums != TokenTotals::default());
        }
        for (name, score) in contribution.scores.iter().filter(|(_, score)| score.is_finite()) {
            let mut counts = [0; 4];
            counts[Severity::of(*score).place()] = sign.of(1);
            add_to(&mut self.monitors, name, counts);
        }
        for name in &contribution.fired {
            add_to(&mut self.monitors, name, [sign.of(1), 0, 0, 0]);
        }
        self.monitors.retain(|_, counts| *counts != [0; 4]);
    }
}

pub(crate) fn add<const N: usize>(sums: &mut [i64; N], more: [i64; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

/// Adds to the sums under a name, which usually exists.
fn add_to<const N: usize>(sums: &mut BTreeMap<String, [i64; N]>, name: &str, more: [i64; N]) {
    match sums.get_mut(name) {
        Some(known) => add(known, more),
        None => drop(sums.insert(name.to_owned(), more)),
    }
}

/// Severity class of a score.
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

    /// Returns the index of the count; index 0 counts the steps on which the monitor fired.
    fn place(&self) -> usize {
        match self {
            Self::Low => 1,
            Self::Warn => 2,
            Self::Danger => 3,
        }
    }
}

/// Returns the totals by model; steps without a model count for the model of the run.
pub(crate) fn by_model(own: String, mut models: BTreeMap<String, TokenTotals>) -> Vec<ModelTokens> {
    if let Some(unnamed) = models.remove("") {
        for (sum, tokens_and_cost) in models.entry(own).or_default().iter_mut().zip(unnamed) {
            *sum += tokens_and_cost;
        }
    }
    let tokens =
        |(model, [total, input, output, cache_read, cache_write, cost_nano]): (_, TokenTotals)| {
            let [total, input, output, cache_read, cache_write] =
                [total, input, output, cache_read, cache_write].map(count_from_db);
            let tokens = Tokens { total, input, output, cache_read, cache_write };
            ModelTokens { model, tokens, cost_usd: from_nano(cost_nano) }
        };
    models.into_iter().map(tokens).collect()
}
