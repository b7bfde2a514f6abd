//! Caveats of a report as sentences, the most serious first.

use std::collections::BTreeSet;

use rb_store::OutcomeClass;

use super::report::{Arm, Comparison, Measured, Srm};

/// Minimum finished runs per arm for a useful interval.
const MIN_RUNS: usize = 30;
/// Maximum names in a list; the rest is counted.
const MAX_NAMES: usize = 3;

pub(super) fn caveats(
    runs: &[Measured<'_>],
    left_out: usize,
    comparison: &Comparison,
    srm: &Srm,
) -> Vec<String> {
    let size = sizes(runs);
    [
        srm.flagged.then(|| skewed(srm)),
        size,
        no_difference(comparison),
        unfinished(runs),
        free_text(runs),
        lone_strata(comparison),
        without_tokens(runs),
        only_totals(runs),
        without_price(runs),
        some(left_out, |count| {
            format!(
                "{count} named neither `on` nor `off` as arm and {} left out.",
                is_are(left_out)
            )
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn skewed(srm: &Srm) -> String {
    format!(
        "The arms have {} and {} runs where {} and {} were expected (p = {:.2e}): the assignment is likely broken, so \
         the comparison cannot be trusted.",
        srm.observed.on, srm.observed.off, srm.expected.on, srm.expected.off, srm.p_value
    )
}

fn sizes(runs: &[Measured<'_>]) -> Option<String> {
    let finished = |arm| {
        runs.iter().filter(|run| run.arm == arm && run.class != OutcomeClass::Unfinished).count()
    };
    let (on, off) = (finished(Arm::On), finished(Arm::Off));
    let smaller = on.min(off);
    if smaller == 0 {
        let name = if on == 0 { "on" } else { "off" };
        return Some(format!("The arm `{name}` has no finished run: nothing can be compared yet."));
    }
    (smaller < MIN_RUNS).then(|| {
        format!(
            "The smaller arm has {}: below {MIN_RUNS}, intervals are wide and rates change with every run.",
            counted(smaller, "finished run")
        )
    })
}

fn no_difference(comparison: &Comparison) -> Option<String> {
    let [low, high] = comparison.success_rate.ci_95?;
    (low <= 0.0 && 0.0 <= high).then(|| {
        "The interval of the success rates' difference includes 0: no difference is shown."
            .to_owned()
    })
}

fn unfinished(runs: &[Measured<'_>]) -> Option<String> {
    let of = |arm| {
        runs.iter().filter(|run| run.arm == arm && run.class == OutcomeClass::Unfinished).count()
    };
    let (on, off) = (of(Arm::On), of(Arm::Off));
    some(on + off, |count| {
        format!(
            "{count} ({on} on, {off} off) did not finish and {} left out of success rates; tokens and costs count \
             what was reported so far.",
            is_are(on + off)
        )
    })
}

fn free_text(runs: &[Measured<'_>]) -> Option<String> {
    let other: Vec<_> = runs.iter().filter(|run| run.class == OutcomeClass::Other).collect();
    let texts = other.iter().filter_map(|run| run.run.outcome.as_deref()).collect();
    some(other.len(), |count| {
        format!(
            "{count} ended with a text that is neither `success` nor `failure` ({}); that counts as no success.",
            named(&texts)
        )
    })
}

fn lone_strata(comparison: &Comparison) -> Option<String> {
    let strata = &comparison.success_rate_stratified.strata;
    let lone = strata.iter().filter(|stratum| stratum.delta.is_none());
    let lone: BTreeSet<&str> = lone.map(|stratum| stratum.task_profile.as_str()).collect();
    (!lone.is_empty() && strata.len() > 1).then(|| {
        format!(
            "Task profiles with finished runs in one arm only are left out of the stratified comparison: {}.",
            named(&lone)
        )
    })
}

fn without_tokens(runs: &[Measured<'_>]) -> Option<String> {
    let missing = runs.iter().filter(|run| run.tokens.total == 0).count();
    some(missing, |count| {
        format!("{count} reported no tokens and {} left out of tokens and costs.", is_are(missing))
    })
}

fn only_totals(runs: &[Measured<'_>]) -> Option<String> {
    let totals = runs
        .iter()
        .filter(|run| run.tokens.total > 0 && run.tokens.input + run.tokens.output == 0)
        .count();
    some(totals, |count| {
        format!("{count} reported only total tokens, which are priced as input: costs are too low.")
    })
}

fn without_price(runs: &[Measured<'_>]) -> Option<String> {
    let without: Vec<_> = runs.iter().filter(|run| !run.unpriced.is_empty()).collect();
    let models = without.iter().flat_map(|run| run.unpriced.iter().copied()).collect();
    some(without.len(), |count| {
        format!(
            "{count} used a model without a price ({}) and {} left out of costs per run; give it one under `prices`.",
            named(&models),
            is_are(without.len())
        )
    })
}

fn some(runs: usize, say: impl Fn(String) -> String) -> Option<String> {
    (runs > 0).then(|| say(counted(runs, "run")))
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn is_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// First names of a set and the number of the others.
fn named(names: &BTreeSet<&str>) -> String {
    let first = names.iter().take(MAX_NAMES).map(|name| match *name {
        "" => "not named".to_owned(),
        name => format!("`{name}`"),
    });
    let first = first.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
