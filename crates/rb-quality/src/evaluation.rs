//! Evaluates scorers on labelled runs.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::corpus::{LabelledRun, Outcome, Split};
use crate::report::{
    CompositeReport, EarlyReport, MeanReport, MonitorReport, Report, ScorerReport, SetReport,
};
use crate::scorer::{Progress, Scorer, Statistic, Trace, traces};
use crate::stats::agreement::{Agreement, LabelledAlarms, agreement};
use crate::stats::auc::{Matched, Sample, raw_area};
use crate::stats::rate::Rate;
use crate::stats::resample::{Resamples, number_tasks};
use crate::stats::{Estimate, as_f64, median};

/// Parameters of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Seed of all resampling.
    pub seed: u64,
    /// Shorter runs are excluded.
    pub steps_min: usize,
    /// Number of resamples per interval.
    pub resamples: usize,
    /// Maximum distance of an alarm from the label that it hits, in steps.
    pub window: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, steps_min: 5, resamples: 1000, window: 1 }
    }
}

/// Minimum number of matched pairs of an averaged set.
const MIN_PAIRS: usize = 30;
/// Minimum number of successes and of failures of an averaged set.
const MIN_OUTCOMES: usize = 10;
/// Numbers of first steps of the early areas.
const EARLY_STEPS: [usize; 2] = [5, 10];
/// Reported statistics of the composite.
const STATISTICS: [Statistic; 3] = [Statistic::Mean, Statistic::Peak, Statistic::Last];
/// Evaluates every scorer on every set. The first scorer is the headline.
pub fn evaluate(
    runs: &[LabelledRun],
    scorers: &[&dyn Scorer],
    options: &Options,
    progress: &dyn Progress,
) -> Report {
    let long: Vec<&LabelledRun> =
        runs.iter().filter(|run| run.steps.len() >= options.steps_min).collect();
    let steps: usize = long.iter().map(|run| run.steps.len()).sum();
    progress.planned(steps * scorers.len());
    let scored: Vec<Scored<'_>> =
        scorers.iter().map(|scorer| Scored::new(*scorer, &long, progress)).collect();
    let mut sets: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, run) in long.iter().enumerate() {
        sets.entry(&run.set).or_default().push(at);
    }
    let parts = sets.iter().flat_map(|(set, members)| {
        let contains =
            |split: Split, at: usize| long.get(at).is_some_and(|run| split.contains(run));
        Split::ALL.map(|split| {
            let members = members.iter().copied().filter(|at| contains(split, *at));
            (*set, split, members.collect::<Vec<usize>>())
        })
    });
    let parts: Vec<_> = parts.filter(|(_, _, members)| !members.is_empty()).collect();
    let measured: Vec<(SetReport, Vec<Averaged>)> = parts
        .par_iter()
        .map(|(set, split, members)| {
            Part::new(set, *split, &long, members, options).report(&scored)
        })
        .collect();
    let mut reports = Vec::new();
    let mut averages = Averages::default();
    for (report, averaged) in measured {
        reports.push(report);
        for averaged in averaged {
            averages.push(averaged);
        }
    }
    Report {
        seed: options.seed,
        steps_min: options.steps_min,
        resamples: options.resamples,
        headline: scorers.first().map(|scorer| scorer.name().to_owned()).unwrap_or_default(),
        sets: reports,
        means: averages.reports(),
    }
}

/// A scorer and its traces of all runs.
struct Scored<'a> {
    scorer: &'a dyn Scorer,
    monitors: Vec<&'static str>,
    traces: Vec<Trace>,
}

impl<'a> Scored<'a> {
    fn new(scorer: &'a dyn Scorer, runs: &[&LabelledRun], progress: &dyn Progress) -> Self {
        Self { scorer, monitors: scorer.monitors(), traces: traces(scorer, runs, progress) }
    }
}

/// One split of one set.
struct Part<'a> {
    set: &'a str,
    split: Split,
    members: &'a [usize],
    runs: Vec<&'a LabelledRun>,
    tasks: Vec<usize>,
    task_count: usize,
    resamples: Resamples,
    window: usize,
}

impl<'a> Part<'a> {
    fn new(
        set: &'a str,
        split: Split,
        long: &[&'a LabelledRun],
        members: &'a [usize],
        options: &Options,
    ) -> Self {
        let runs: Vec<&LabelledRun> =
            members.iter().filter_map(|at| long.get(*at).copied()).collect();
        let (tasks, task_count) = number_tasks(runs.iter().map(|run| run.task.key.as_str()));
        let resamples = Resamples::new(task_count, options.resamples, options.seed);
        Self { set, split, members, runs, tasks, task_count, resamples, window: options.window }
    }

    fn ended(&self, outcome: Outcome) -> usize {
        self.runs.iter().filter(|run| run.outcome == Some(outcome)).count()
    }

    fn report(&self, scored: &[Scored<'_>]) -> (SetReport, Vec<Averaged>) {
        let mut averaged = Vec::new();
        let reports = scored.iter().map(|scored| {
            let traces: Vec<&Trace> =
                self.members.iter().filter_map(|at| scored.traces.get(*at)).collect();
            self.scorer(scored, &traces, &mut averaged)
        });
        let scorers = reports.collect();
        let report = SetReport {
            set: self.set.to_owned(),
            split: self.split,
            runs: self.runs.len(),
            successes: self.ended(Outcome::Success),
            failures: self.ended(Outcome::Failure),
            tasks: self.task_count,
            steps_median: median(self.runs.iter().map(|run| run.steps.len()).collect())
                .unwrap_or(0),
            scorers,
        };
        (report, averaged)
    }

    fn scorer(
        &self,
        scored: &Scored<'_>,
        traces: &[&Trace],
        averaged: &mut Vec<Averaged>,
    ) -> ScorerReport {
        let name = scored.scorer.name();
        let mut composite = Vec::new();
        for statistic in STATISTICS {
            let samples = self.samples(traces, |trace| trace.composite(statistic, usize::MAX));
            let matched = Matched::new(&samples);
            let raw = raw_area(&samples, &self.resamples);
            let drawn = matched.drawn(&self.resamples);
            if let (Some(raw), Some(value)) = (raw, matched.auc())
                && matched.pairs() >= MIN_PAIRS
                && self.ended(Outcome::Success).min(self.ended(Outcome::Failure)) >= MIN_OUTCOMES
            {
                let of_set = OfSet { set: self.set.to_owned(), raw: raw.area.value, value, drawn };
                let key = (name.to_owned(), self.split, statistic);
                averaged.push(Averaged { key, of_set });
            }
            let matched = matched.area(&self.resamples);
            composite.push(CompositeReport { statistic, raw, matched });
        }
        let monitor = |(at, id): (usize, &&'static str)| self.monitor(at, id, traces);
        ScorerReport {
            scorer: name.to_owned(),
            fires_on_successes: self.rate(Outcome::Success, traces, Trace::fires),
            fires_on_failures: self.rate(Outcome::Failure, traces, Trace::fires),
            composite,
            early: self.early(traces),
            agreement: self.agreement(traces, None),
            monitors: scored.monitors.iter().enumerate().map(monitor).collect(),
        }
    }

    fn monitor(&self, at: usize, id: &str, traces: &[&Trace]) -> MonitorReport {
        let samples = self.samples(traces, |trace| trace.score(at, Statistic::Peak));
        MonitorReport {
            monitor: id.to_owned(),
            fires_on_successes: self
                .rate(Outcome::Success, traces, |trace| trace.monitor_fires(at)),
            fires_on_failures: self.rate(Outcome::Failure, traces, |trace| trace.monitor_fires(at)),
            raw: raw_area(&samples, &self.resamples),
            matched: Matched::new(&samples).area(&self.resamples),
            agreement: self.agreement(traces, Some(at)),
        }
    }

    /// The runs with known outcomes, each with one score.
    fn samples(&self, traces: &[&Trace], score: impl Fn(&Trace) -> f64) -> Vec<Sample> {
        let each = self.runs.iter().zip(&self.tasks).zip(traces);
        each.filter_map(|((run, task), trace)| {
            Some(Sample {
                failed: run.outcome? == Outcome::Failure,
                score: score(trace),
                steps: run.steps.len(),
                task: *task,
            })
        })
        .collect()
    }

    fn rate(&self, outcome: Outcome, traces: &[&Trace], hit: impl Fn(&Trace) -> bool) -> Rate {
        let each = self.runs.iter().zip(&self.tasks).zip(traces);
        let items: Vec<(usize, bool)> = each
            .filter(|((run, _), _)| run.outcome == Some(outcome))
            .map(|((_, task), trace)| (*task, hit(trace)))
            .collect();
        Rate::by_task(&items, &self.resamples)
    }

    /// Compares only runs with at least that many steps, so that length has no influence.
    fn early(&self, traces: &[&Trace]) -> Vec<EarlyReport> {
        let mut early = Vec::new();
        for steps in EARLY_STEPS {
            for statistic in [Statistic::Mean, Statistic::Peak] {
                let mut samples = self.samples(traces, |trace| trace.composite(statistic, steps));
                samples.retain(|sample| sample.steps >= steps);
                early.push(EarlyReport {
                    steps,
                    statistic,
                    raw: raw_area(&samples, &self.resamples),
                });
            }
        }
        early
    }

    /// Agreement of one monitor, or of all together.
    fn agreement(&self, traces: &[&Trace], monitor: Option<usize>) -> Option<Agreement> {
        let each = self.runs.iter().zip(&self.tasks).zip(traces);
        let labelled: Vec<LabelledAlarms> = each
            .filter(|((run, _), _)| !run.labelled_steps.is_empty())
            .map(|((run, task), trace)| LabelledAlarms {
                task: *task,
                steps: run.steps.len(),
                labels: run.labelled_steps.iter().map(|label| label.index).collect(),
                alarms: trace
                    .alarms()
                    .filter(|(_, fired)| monitor.is_none_or(|monitor| fired.monitor == monitor))
                    .map(|(at, _)| at)
                    .collect(),
            })
            .collect();
        agreement(&labelled, self.window, &self.resamples)
    }
}

/// Contribution of one set to an average.
struct OfSet {
    set: String,
    raw: f64,
    value: f64,
    drawn: Vec<f64>,
}

/// Contribution and the key of its average.
struct Averaged {
    key: (String, Split, Statistic),
    of_set: OfSet,
}

/// Averages over sets, in order of first occurrence.
#[derive(Default)]
struct Averages {
    rows: Vec<((String, Split, Statistic), Vec<OfSet>)>,
}

impl Averages {
    fn push(&mut self, Averaged { key, of_set }: Averaged) {
        match self.rows.iter_mut().find(|(other, _)| *other == key) {
            Some((_, sets)) => sets.push(of_set),
            None => self.rows.push((key, vec![of_set])),
        }
    }

    fn reports(self) -> Vec<MeanReport> {
        let row = |((scorer, split, statistic), sets): ((String, Split, Statistic), Vec<OfSet>)| {
            let mean = |of: &dyn Fn(&OfSet) -> f64| -> f64 {
                sets.iter().map(of).sum::<f64>() / as_f64(sets.len())
            };
            let count = sets.iter().map(|of_set| of_set.drawn.len()).min().unwrap_or(0);
            let nth = |n: usize| mean(&|set| set.drawn.get(n).copied().unwrap_or(f64::NAN));
            let drawn = (0..count).map(nth).collect();
            MeanReport {
                raw: mean(&|of_set| of_set.raw),
                matched: Estimate::from_resamples(mean(&|of_set| of_set.value), drawn),
                sets: sets.iter().map(|of_set| of_set.set.clone()).collect(),
                scorer,
                split,
                statistic,
            }
        };
        self.rows.into_iter().map(row).collect()
    }
}
