//! A run's steps in numbers: what a step adds is taken away again when the step is replaced, to the last digit.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::numbers::{amount, count_in, count_out, nano_in, nano_out};
use crate::rows::pattern;
use crate::{Health, ModelTokens, Scores, StepRow, Tokens};

/// What one step brings to its run: of a row that is put, or of one that was stored.
pub(crate) struct Share<'a> {
    pub(crate) score: f64,
    pub(crate) spent: Spent,
    pub(crate) model: Cow<'a, str>,
    pub(crate) injected: bool,
    pub(crate) scores: Cow<'a, Scores>,
    pub(crate) fired: BTreeSet<Cow<'a, str>>,
    /// The patterns that were shown.
    pub(crate) patterns: BTreeSet<String>,
}

/// Total, input, output, cache read, cache written, cost in billionths.
pub(crate) type Spent = [i64; 6];

/// Interventions, steps and tokens.
pub(crate) type Used = [i64; 3];

impl<'a> Share<'a> {
    pub(crate) const COLUMNS: &'static str = "total_score, cost_usd, tokens_total, tokens_input, tokens_output, cache_read, \
                                      cache_write, injected, model, scores, fired, injections";

    pub(crate) fn of(step: &'a StepRow) -> Self {
        Self {
            score: amount(step.total_score),
            spent: spent(&step.tokens, step.cost_usd),
            model: Cow::Borrowed(&step.model),
            injected: step.is_injected(),
            scores: Cow::Borrowed(&step.scores),
            fired: step.fired.iter().map(|name| Cow::Borrowed(name.as_str())).collect(),
            patterns: shown(&step.injections),
        }
    }

    /// What a meter counts of it.
    pub(crate) fn used(&self) -> Used {
        [i64::from(self.injected), 1, self.spent[0]]
    }
}

/// The monitors that fired on a stored step.
pub(crate) fn owned(fired: BTreeSet<String>) -> BTreeSet<Cow<'static, str>> {
    fired.into_iter().map(Cow::Owned).collect()
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

    pub(crate) fn add(&mut self, share: &Share<'_>) {
        self.count(share, Sign::Plus);
        self.score_peak = self.score_peak.max(share.score);
    }

    /// Takes a share away. The answer says whether the peak went with it and has to be looked for.
    #[must_use]
    pub(crate) fn take(&mut self, share: &Share<'_>) -> bool {
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

    fn count(&mut self, share: &Share<'_>, sign: Sign) {
        self.steps += sign.of(1);
        self.injected_steps += sign.of(i64::from(share.injected));
        self.fired_steps += sign.of(i64::from(!share.fired.is_empty()));
        match Severity::of(share.score) {
            Severity::Low => {}
            Severity::Warn => self.warn_steps += sign.of(1),
            Severity::Danger => self.danger_steps += sign.of(1),
        }
        self.score_nano += sign.of(nano_in(share.score));
        add(&mut self.spent, share.spent.map(|spent| sign.of(spent)));
        if share.spent != Spent::default() {
            add_to(&mut self.models, &share.model, share.spent.map(|spent| sign.of(spent)));
            self.models.retain(|_, sums| *sums != Spent::default());
        }
        for (name, score) in share.scores.iter().filter(|(_, score)| score.is_finite()) {
            let mut counts = [0; 4];
            counts[Severity::of(*score).place()] = sign.of(1);
            add_to(&mut self.monitors, name, counts);
        }
        for name in &share.fired {
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

/// Adds to the sums under a name, which is nearly always known.
fn add_to<const N: usize>(sums: &mut BTreeMap<String, [i64; N]>, name: &str, more: [i64; N]) {
    match sums.get_mut(name) {
        Some(known) => add(known, more),
        None => drop(sums.insert(name.to_owned(), more)),
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
