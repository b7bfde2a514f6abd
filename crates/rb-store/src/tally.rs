//! A run's steps in numbers: what a step adds is taken away again when the step is replaced, to the last digit.

use std::collections::{BTreeMap, BTreeSet};

use crate::numbers::{amount, count_in, count_out, nano_in, nano_out};
use crate::rows::pattern;
use crate::{Health, ModelTokens, StepRow, Tokens};

/// What one step brings to its run.
pub(crate) struct Share {
    pub(crate) score: f64,
    pub(crate) spent: Spent,
    pub(crate) model: String,
    pub(crate) injected: bool,
    pub(crate) scores: BTreeMap<String, f64>,
    pub(crate) fired: BTreeSet<String>,
    /// The patterns that were shown.
    pub(crate) patterns: BTreeSet<String>,
}

/// Total, input, output, cache read, cache written, cost in billionths.
pub(crate) type Spent = [i64; 6];

impl Share {
    pub(crate) const COLUMNS: &str = "total_score, cost_usd, tokens_total, tokens_input, tokens_output, cache_read, \
                                      cache_write, injected, model, scores, fired, injections";

    pub(crate) fn of(step: &StepRow) -> Self {
        Self {
            score: amount(step.total_score),
            spent: spent(&step.tokens, step.cost_usd),
            model: step.model.clone(),
            injected: step.is_injected(),
            scores: step.scores.clone(),
            fired: step.fired.iter().cloned().collect(),
            patterns: shown(&step.injections),
        }
    }

    /// Tokens as a meter counts them.
    pub(crate) fn tokens(&self) -> i64 {
        self.spent[0]
    }
}

/// The patterns among what was injected.
pub(crate) fn shown(injections: &[String]) -> BTreeSet<String> {
    injections.iter().filter_map(|shown| pattern(shown)).map(str::to_owned).collect()
}

fn spent(tokens: &Tokens, cost_usd: f64) -> Spent {
    let Tokens { total, input, output, cache_read, cache_write } = *tokens;
    with_cost([total, input, output, cache_read, cache_write].map(count_in), nano_in(cost_usd))
}

/// Tokens as a step has them, and its cost.
pub(crate) fn with_cost(
    [total, input, output, cache_read, cache_write]: [i64; 5],
    cost_nano: i64,
) -> Spent {
    [total, input, output, cache_read, cache_write, cost_nano]
}

/// The sums over a run's steps, as they lie in its row.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) steps: i64,
    pub(crate) injected_steps: i64,
    pub(crate) fired_steps: i64,
    pub(crate) warn_steps: i64,
    pub(crate) danger_steps: i64,
    pub(crate) score_nano: i64,
    pub(crate) score_peak: f64,
    pub(crate) spent: Spent,
    /// Fired, low, warn, danger.
    pub(crate) monitors: BTreeMap<String, [i64; 4]>,
    pub(crate) models: BTreeMap<String, Spent>,
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
    pub(crate) const COLUMNS: &str = "step_count, injected_steps, fired_steps, warn_steps, danger_steps, score_nano, \
                                      score_peak, tokens_total, tokens_input, tokens_output, cache_read, cache_write, \
                                      cost_nano, monitors, models";

    pub(crate) fn add(&mut self, share: &Share) {
        self.count(share, Sign::Plus);
        self.score_peak = self.score_peak.max(share.score);
    }

    /// Takes a share away. The answer says whether the peak went with it and has to be looked for.
    #[must_use]
    pub(crate) fn take(&mut self, share: &Share) -> bool {
        self.count(share, Sign::Minus);
        share.score >= self.score_peak
    }

    pub(crate) fn set_peak(&mut self, peak: f64) {
        self.score_peak = peak;
    }

    /// The monitors that fired on at least one step.
    pub(crate) fn fired(&self) -> BTreeSet<String> {
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
            let place = Severity::of(*score).place();
            self.monitors.entry(name.clone()).or_default()[place] += sign.of(1);
        }
        for name in &share.fired {
            self.monitors.entry(name.clone()).or_default()[0] += sign.of(1);
        }
        self.monitors.retain(|_, counts| *counts != [0; 4]);
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

/// What a run used by model; a step that names none used the run's own.
pub(crate) fn by_model(own: String, mut models: BTreeMap<String, Spent>) -> Vec<ModelTokens> {
    if let Some(unnamed) = models.remove("") {
        for (sum, spent) in models.entry(own).or_default().iter_mut().zip(unnamed) {
            *sum += spent;
        }
    }
    let tokens =
        |(model, [total, input, output, cache_read, cache_write, cost_nano]): (_, Spent)| {
            let [total, input, output, cache_read, cache_write] =
                [total, input, output, cache_read, cache_write].map(count_out);
            let tokens = Tokens { total, input, output, cache_read, cache_write };
            ModelTokens { model, tokens, cost_usd: nano_out(cost_nano) }
        };
    models.into_iter().map(tokens).collect()
}
