//! Report of an experiment: both arms, the confidence intervals of their differences, and caveats.
//!
//! A success rate is over the finished runs; an outcome other than `success` and `failure` counts as no success. Tokens
//! are over the runs that reported any, costs over those of them whose models all have a price. The caveats name what
//! is left out.

use std::collections::{BTreeMap, BTreeSet};

use rb_engine::run::round4;
use rb_store::{ExperimentRun, Health, OutcomeClass, Tokens};
use serde::Serialize;
use utoipa::ToSchema;

use super::caveats::caveats;
use super::stats::{
    Difference, Proportion, as_f64, mean, median, newcombe, relative, sample_ratio, stratified,
    winsorised_mean,
};
use crate::clock::{day_of, format_day};

/// The two arms of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Arm {
    /// With guidance.
    On,
    /// Observed only.
    Off,
}

/// Both arms and their comparison.
#[derive(Debug, Serialize, ToSchema)]
pub struct Report {
    experiment_id: String,
    arms: Arms,
    comparison: Comparison,
    srm: Srm,
    /// By start day, then by arm.
    timeseries: Vec<Day>,
    pub(super) caveats: Vec<String>,
}

/// The arms.
#[derive(Debug, Serialize, ToSchema)]
struct Arms {
    on: ArmReport,
    off: ArmReport,
}

/// One arm in numbers.
#[derive(Debug, Serialize, ToSchema)]
struct ArmReport {
    n_runs: u64,
    outcomes: Outcomes,
    /// Over the runs that finished; none if none did.
    success_rate: Option<f64>,
    tokens_per_run: Average,
    steps_per_run: Average,
    cost: Cost,
    reasoning_health: ReasoningHealth,
}

/// Runs by how they ended.
#[derive(Debug, Default, Clone, PartialEq, Serialize, ToSchema)]
struct Outcomes {
    success: u64,
    failure: u64,
    other: u64,
    unfinished: u64,
}

/// Two averages that few outliers do not move.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
struct Average {
    median: Option<f64>,
    winsorized_mean: Option<f64>,
    /// The runs it is over.
    n_runs: u64,
}

/// Tokens and cost of an arm.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "clients know the fields by these names")]
struct Cost {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    total_cost_usd: f64,
    /// The mean over the runs whose models all have a price.
    cost_per_run_usd: Option<f64>,
    by_model: BTreeMap<String, ModelCost>,
}

/// Tokens and cost of one model.
#[derive(Debug, Default, Clone, PartialEq, Serialize, ToSchema)]
struct ModelCost {
    tokens: u64,
    cost_usd: f64,
}

/// Monitor results.
#[derive(Debug, Serialize, ToSchema)]
struct ReasoningHealth {
    /// Mean composite over all steps.
    avg_score: f64,
    peak_score: f64,
    /// The share of runs whose composite stayed below 0.35.
    clean_run_rate: Option<f64>,
    fired_steps: u64,
    injected_steps: u64,
}

/// On against off.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Comparison {
    pub(super) success_rate: RateComparison,
    pub(super) success_rate_stratified: StratifiedComparison,
    tokens_per_run_median: NumberComparison,
    cost_per_run_usd: NumberComparison,
}

/// Two numbers, and the difference as a share of `off`.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct NumberComparison {
    on: Option<f64>,
    off: Option<f64>,
    pct: Option<f64>,
}

/// Two rates with the interval of their difference.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct RateComparison {
    on: Option<f64>,
    off: Option<f64>,
    delta: Option<f64>,
    /// From and to.
    pub(super) ci_95: Option<[f64; 2]>,
    /// `newcombe`: from the Wilson intervals of both arms.
    method: &'static str,
}

/// The difference within task profiles, averaged.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StratifiedComparison {
    delta: Option<f64>,
    ci_95: Option<[f64; 2]>,
    /// `inverse_variance`.
    method: &'static str,
    pub(super) strata: Vec<Stratum>,
}

/// One task profile.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stratum {
    pub(super) task_profile: String,
    on: Finished,
    off: Finished,
    pub(super) delta: Option<f64>,
}

/// Runs that finished, and those of them that succeeded.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Finished {
    n_runs: u64,
    success: u64,
}

/// Sample ratio mismatch check.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Srm {
    pub(super) observed: Split<u64>,
    pub(super) expected: Split<f64>,
    /// `None` if an arm with an expected size of zero has runs.
    chi_square: Option<f64>,
    pub(super) p_value: f64,
    /// The probability is below 0.01.
    pub(super) flagged: bool,
}

/// A number for each arm.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Split<T> {
    pub(super) on: T,
    pub(super) off: T,
}

/// One arm on one day.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "clients know the fields by these names")]
struct Day {
    /// `YYYY-MM-DD`, UTC.
    day: String,
    arm: Arm,
    n_runs: u64,
    /// The median.
    tokens_per_run: Option<f64>,
    success_rate: Option<f64>,
    cost_per_run_usd: Option<f64>,
}

/// A run with its sums and cost.
pub(super) struct Measured<'a> {
    pub(super) run: &'a ExperimentRun,
    pub(super) arm: Arm,
    pub(super) class: OutcomeClass,
    pub(super) tokens: Tokens,
    by_model: BTreeMap<&'a str, ModelCost>,
    cost_usd: f64,
    /// Models with tokens and no price.
    pub(super) unpriced: BTreeSet<&'a str>,
}

type Runs<'m, 'a> = [&'m Measured<'a>];

/// Builds the report of some runs. `price` returns the cost of tokens of a model at a time, 0 for an unknown model.
pub fn report(
    experiment_id: &str,
    runs: &[ExperimentRun],
    on_fraction: f64,
    price: impl Fn(&str, &Tokens, i64) -> f64,
) -> Report {
    let measured: Vec<_> = runs.iter().filter_map(|run| measure(run, &price)).collect();
    let of = |arm| measured.iter().filter(|run| run.arm == arm).collect::<Vec<_>>();
    let (on, off) = (of(Arm::On), of(Arm::Off));
    let arms = Arms { on: arm_report(&on), off: arm_report(&off) };
    let comparison = Comparison {
        success_rate: rates(success(&on), success(&off)),
        success_rate_stratified: by_profile(&on, &off),
        tokens_per_run_median: numbers(
            arms.on.tokens_per_run.median,
            arms.off.tokens_per_run.median,
            round4,
        ),
        cost_per_run_usd: numbers(mean(&costs(&on)), mean(&costs(&off)), round6),
    };
    let srm = srm(arms.on.n_runs, arms.off.n_runs, on_fraction);
    let left_out = runs.len() - measured.len();
    let caveats = caveats(&measured, left_out, &comparison, &srm);
    let timeseries = timeseries(&measured);
    let experiment_id = experiment_id.to_owned();
    Report { experiment_id, arms, comparison, srm, timeseries, caveats }
}

/// Sums of a run; `None` if it is in neither arm. A stored cost is used as it is; a missing one is computed, because the
/// model may have a price by now.
fn measure<'a>(
    run: &'a ExperimentRun,
    price: &impl Fn(&str, &Tokens, i64) -> f64,
) -> Option<Measured<'a>> {
    let arm = match run.arm.as_str() {
        "on" => Arm::On,
        "off" => Arm::Off,
        _ => return None,
    };
    let mut measured = Measured {
        run,
        arm,
        class: OutcomeClass::of(run.outcome.as_deref()),
        tokens: Tokens::default(),
        by_model: BTreeMap::new(),
        cost_usd: 0.0,
        unpriced: BTreeSet::new(),
    };
    for used in &run.by_model {
        let tokens = &used.tokens;
        let cost_usd = if used.cost_usd > 0.0 {
            used.cost_usd
        } else {
            price(&used.model, tokens, run.started_ms)
        };
        if cost_usd == 0.0 && tokens.total > 0 {
            measured.unpriced.insert(&used.model);
        }
        let model = measured.by_model.entry(&used.model).or_default();
        model.tokens += tokens.total;
        model.cost_usd += cost_usd;
        measured.cost_usd += cost_usd;
        let sum = &mut measured.tokens;
        sum.total += tokens.total;
        sum.input += tokens.input;
        sum.output += tokens.output;
        sum.cache_read += tokens.cache_read;
        sum.cache_write += tokens.cache_write;
    }
    Some(measured)
}

fn arm_report(runs: &Runs<'_, '_>) -> ArmReport {
    let steps: Vec<_> = runs.iter().map(|run| as_f64(run.run.step_count)).collect();
    ArmReport {
        n_runs: count(runs, |_| true),
        outcomes: outcomes(runs),
        success_rate: success(runs).rate().map(round4),
        tokens_per_run: average(&tokens(runs)),
        steps_per_run: average(&steps),
        cost: cost(runs),
        reasoning_health: reasoning_health(runs),
    }
}

fn outcomes(runs: &Runs<'_, '_>) -> Outcomes {
    let of = |class| count(runs, |run| run.class == class);
    Outcomes {
        success: of(OutcomeClass::Success),
        failure: of(OutcomeClass::Failure),
        other: of(OutcomeClass::Other),
        unfinished: of(OutcomeClass::Unfinished),
    }
}

fn cost(runs: &Runs<'_, '_>) -> Cost {
    let sum = |part: fn(&Tokens) -> u64| runs.iter().map(|run| part(&run.tokens)).sum();
    let mut by_model: BTreeMap<String, ModelCost> = BTreeMap::new();
    for (name, used) in runs.iter().flat_map(|run| &run.by_model) {
        let model = by_model.entry((*name).to_owned()).or_default();
        model.tokens += used.tokens;
        model.cost_usd = round6(model.cost_usd + used.cost_usd);
    }
    Cost {
        total_tokens: sum(|tokens| tokens.total),
        input_tokens: sum(|tokens| tokens.input),
        output_tokens: sum(|tokens| tokens.output),
        cache_read_tokens: sum(|tokens| tokens.cache_read),
        cache_write_tokens: sum(|tokens| tokens.cache_write),
        total_cost_usd: round6(runs.iter().map(|run| run.cost_usd).sum()),
        cost_per_run_usd: mean(&costs(runs)).map(round6),
        by_model,
    }
}

fn reasoning_health(runs: &Runs<'_, '_>) -> ReasoningHealth {
    let steps: u64 = runs.iter().map(|run| run.run.step_count).sum();
    let scores: f64 = runs.iter().map(|run| run.run.score_sum).sum();
    let clean = Proportion {
        hits: count(runs, |run| run.run.score_peak < Health::CLEAN_BELOW),
        of: count(runs, |_| true),
    };
    ReasoningHealth {
        avg_score: if steps == 0 { 0.0 } else { round4(scores / as_f64(steps)) },
        peak_score: round4(runs.iter().map(|run| run.run.score_peak).fold(0.0, f64::max)),
        clean_run_rate: clean.rate().map(round4),
        fired_steps: runs.iter().map(|run| run.run.fired_steps).sum(),
        injected_steps: runs.iter().map(|run| run.run.injected_steps).sum(),
    }
}

fn timeseries(runs: &[Measured<'_>]) -> Vec<Day> {
    let mut days: BTreeMap<(i64, Arm), Vec<&Measured<'_>>> = BTreeMap::new();
    for run in runs {
        days.entry((day_of(run.run.started_ms), run.arm)).or_default().push(run);
    }
    let day = |((day, arm), runs): (&(i64, Arm), &Vec<&Measured<'_>>)| Day {
        day: format_day(*day),
        arm: *arm,
        n_runs: count(runs, |_| true),
        tokens_per_run: median(&tokens(runs)),
        success_rate: success(runs).rate().map(round4),
        cost_per_run_usd: mean(&costs(runs)).map(round6),
    };
    days.iter().map(day).collect()
}

fn by_profile(on: &Runs<'_, '_>, off: &Runs<'_, '_>) -> StratifiedComparison {
    let names: BTreeSet<&str> =
        on.iter().chain(off).map(|run| run.run.task_profile.as_str()).collect();
    let of = |runs: &Runs<'_, '_>, name: &str| {
        let within = runs.iter().copied().filter(|run| run.run.task_profile == name);
        success(&within.collect::<Vec<_>>())
    };
    let shares: Vec<_> = names.iter().map(|name| (of(on, name), of(off, name))).collect();
    let finished = |share: Proportion| Finished { n_runs: share.of, success: share.hits };
    let strata = names.iter().zip(&shares).map(|(name, (on, off))| Stratum {
        task_profile: (*name).to_owned(),
        on: finished(*on),
        off: finished(*off),
        delta: on.rate().zip(off.rate()).map(|(on, off)| round4(on - off)),
    });
    let (delta, ci_95) = spread(stratified(&shares));
    StratifiedComparison { delta, ci_95, method: "inverse_variance", strata: strata.collect() }
}

fn rates(on: Proportion, off: Proportion) -> RateComparison {
    let (delta, ci_95) = spread(newcombe(on, off));
    let (on, off) = (on.rate().map(round4), off.rate().map(round4));
    RateComparison { on, off, delta, ci_95, method: "newcombe" }
}

fn spread(difference: Option<Difference>) -> (Option<f64>, Option<[f64; 2]>) {
    let ci_95 = difference.map(|it| [round4(it.low), round4(it.high)]);
    (difference.map(|it| round4(it.delta)), ci_95)
}

fn numbers(on: Option<f64>, off: Option<f64>, round: fn(f64) -> f64) -> NumberComparison {
    let pct = on.zip(off).and_then(|(on, off)| relative(on, off)).map(round4);
    NumberComparison { on: on.map(round), off: off.map(round), pct }
}

fn srm(on: u64, off: u64, on_fraction: f64) -> Srm {
    let ratio = sample_ratio(on, off, on_fraction);
    Srm {
        observed: Split { on, off },
        expected: Split { on: round4(ratio.expected.0), off: round4(ratio.expected.1) },
        chi_square: ratio.chi_square.is_finite().then(|| round4(ratio.chi_square)),
        // Not rounded: small probabilities would become 0.
        p_value: ratio.p_value,
        flagged: ratio.is_flagged(),
    }
}

fn count(runs: &Runs<'_, '_>, which: impl Fn(&Measured<'_>) -> bool) -> u64 {
    runs.iter().filter(|run| which(run)).count() as u64
}

fn success(runs: &Runs<'_, '_>) -> Proportion {
    Proportion {
        hits: count(runs, |run| run.class == OutcomeClass::Success),
        of: count(runs, |run| run.class != OutcomeClass::Unfinished),
    }
}

/// Tokens of the runs that reported any.
fn tokens(runs: &Runs<'_, '_>) -> Vec<f64> {
    runs.iter().map(|run| as_f64(run.tokens.total)).filter(|total| *total > 0.0).collect()
}

/// Costs of the runs that reported tokens and whose models all have a price.
fn costs(runs: &Runs<'_, '_>) -> Vec<f64> {
    let known = runs.iter().filter(|run| run.tokens.total > 0 && run.unpriced.is_empty());
    known.map(|run| run.cost_usd).collect()
}

fn average(values: &[f64]) -> Average {
    Average {
        median: median(values),
        winsorized_mean: winsorised_mean(values).map(round4),
        n_runs: values.len() as u64,
    }
}

/// Rounds to a millionth of a dollar.
fn round6(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}
