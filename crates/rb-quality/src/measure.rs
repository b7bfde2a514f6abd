//! From runs and judges to a report.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::corpus::{LabelledRun, Outcome, Split};
use crate::judge::{Judge, Statistic, Trace, Watch, traces};
use crate::report::{
    CompositeReport, EarlyReport, FalseAlarm, JudgeReport, MeanReport, MonitorReport, Report,
    SetReport,
};
use crate::splice::{self, Spliced};
use crate::stats::agreement::{Agreement, LabelledAlarms, agreement};
use crate::stats::auc::{Area, Matched, Sample, raw_area};
use crate::stats::rate::Rate;
use crate::stats::resample::{Resamples, number_tasks};
use crate::stats::{Estimate, median, real};
use crate::text::{head, line};

/// What may be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The seed of every draw.
    pub seed: u64,
    /// Shorter runs are left out.
    pub steps_min: usize,
    /// How many times tasks are drawn for an interval.
    pub resamples: usize,
    /// An alarm this many steps from a label still hits it.
    pub window: usize,
    /// At most so many plants of each kind into each set; 0 plants nothing.
    pub plants_max: usize,
    /// At most so many false alarms are shown.
    pub false_alarms_max: usize,
    /// At most so many missed plants are shown.
    pub missed_plants_max: usize,
    /// Texts of runs are shown from this part only: who reads the held-out part while tuning has none.
    pub shown: Split,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            steps_min: 5,
            resamples: 1000,
            window: 1,
            plants_max: 60,
            false_alarms_max: 40,
            missed_plants_max: 40,
            shown: Split::Dev,
        }
    }
}

/// A set with fewer matched pairs is not averaged: its area is noise.
const PAIRS_MIN: usize = 30;
/// Nor is one with fewer successes or failures: many pairs of the same three runs are still three runs.
const OUTCOMES_MIN: usize = 10;
/// The early areas look at this many steps.
const EARLY_STEPS: [usize; 2] = [5, 10];
/// The statistics of the composite that are reported.
const STATISTICS: [Statistic; 3] = [Statistic::Mean, Statistic::Peak, Statistic::Last];
/// At most so many false alarms of one run are shown, so that one bad run does not fill the page.
const FALSE_ALARMS_PER_RUN: usize = 2;
/// So many actions before the alarm are shown with it.
const BEFORE_SHOWN: usize = 3;

/// Measures every judge on every set. The first judge is the one that the verdicts are about.
pub fn measure(
    runs: &[LabelledRun],
    judges: &[&dyn Judge],
    options: &Options,
    watch: &dyn Watch,
) -> Report {
    let long: Vec<&LabelledRun> =
        runs.iter().filter(|run| run.steps.len() >= options.steps_min).collect();
    let spliced = splice::splice_all(runs, options.plants_max, options.seed);
    watch.planned(work(&long, &spliced, judges));
    let readings: Vec<Judged<'_>> =
        judges.iter().map(|judge| Judged::new(*judge, &long, watch)).collect();
    let mut sets: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, run) in long.iter().enumerate() {
        sets.entry(&run.set).or_default().push(at);
    }
    let parts = sets.iter().flat_map(|(set, members)| {
        let held = |split: Split, at: usize| long.get(at).is_some_and(|run| split.holds(run));
        Split::ALL.map(|split| {
            let members = members.iter().copied().filter(|at| held(split, *at));
            (*set, split, members.collect::<Vec<usize>>())
        })
    });
    let parts: Vec<_> = parts.filter(|(_, _, members)| !members.is_empty()).collect();
    let measured: Vec<(SetReport, Vec<Averaged>)> = parts
        .par_iter()
        .map(|(set, split, members)| {
            Part::new(set, *split, &long, members, options).report(&readings)
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
    let headline = readings.first();
    let (plants, missed_plants) = splice::score(&spliced, judges, options, watch);
    let mut report = Report {
        seed: options.seed,
        steps_min: options.steps_min,
        resamples: options.resamples,
        headline: headline.map(|judged| judged.judge.name().to_owned()).unwrap_or_default(),
        sets: reports,
        means: averages.reports(),
        plants,
        missed_plants,
        verdicts: Vec::new(),
        shown: options.shown,
        false_alarms: headline.map_or_else(Vec::new, |judged| false_alarms(judged, &long, options)),
    };
    report.verdicts = crate::verdict::verdicts(&report);
    report
}

/// How many steps will be judged.
fn work(long: &[&LabelledRun], spliced: &[Spliced], judges: &[&dyn Judge]) -> usize {
    let real: usize = long.iter().map(|run| run.steps.len()).sum();
    let planted: usize = spliced.iter().map(|spliced| spliced.run.steps.len()).sum();
    let with_monitors = judges.iter().filter(|judge| !judge.monitors().is_empty()).count();
    real * judges.len() + planted * with_monitors
}

/// A judge and what it said to every run.
struct Judged<'a> {
    judge: &'a dyn Judge,
    monitors: Vec<&'static str>,
    traces: Vec<Trace>,
}

impl<'a> Judged<'a> {
    fn new(judge: &'a dyn Judge, runs: &[&LabelledRun], watch: &dyn Watch) -> Self {
        Self { judge, monitors: judge.monitors(), traces: traces(judge, runs, watch) }
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

    fn report(&self, readings: &[Judged<'_>]) -> (SetReport, Vec<Averaged>) {
        let mut averaged = Vec::new();
        let reports = readings.iter().map(|judged| {
            let traces: Vec<&Trace> =
                self.members.iter().filter_map(|at| judged.traces.get(*at)).collect();
            self.judge(judged, &traces, &mut averaged)
        });
        let judges = reports.collect();
        let report = SetReport {
            set: self.set.to_owned(),
            split: self.split,
            runs: self.runs.len(),
            successes: self.ended(Outcome::Success),
            failures: self.ended(Outcome::Failure),
            tasks: self.task_count,
            steps_median: median(self.runs.iter().map(|run| run.steps.len()).collect())
                .unwrap_or(0),
            judges,
        };
        (report, averaged)
    }

    fn judge(
        &self,
        judged: &Judged<'_>,
        traces: &[&Trace],
        averaged: &mut Vec<Averaged>,
    ) -> JudgeReport {
        let name = judged.judge.name();
        let mut composite = Vec::new();
        for statistic in STATISTICS {
            let samples = self.samples(traces, |trace| trace.composite(statistic, usize::MAX));
            let matched = Matched::new(&samples);
            let raw = raw_area(&samples, &self.resamples);
            let drawn = matched.drawn(&self.resamples);
            if let (Some(raw), Some(value)) = (raw, matched.auc())
                && matched.pairs() >= PAIRS_MIN
                && self.ended(Outcome::Success).min(self.ended(Outcome::Failure)) >= OUTCOMES_MIN
            {
                let of_set = OfSet { set: self.set.to_owned(), raw: raw.area.value, value, drawn };
                let key = (name.to_owned(), self.split, statistic);
                averaged.push(Averaged { key, of_set });
            }
            let matched = matched.area(&self.resamples);
            composite.push(CompositeReport { statistic, raw, matched });
        }
        let monitor = |(at, id): (usize, &&'static str)| self.monitor(at, id, traces);
        JudgeReport {
            judge: name.to_owned(),
            fires_on_successes: self.rate(Outcome::Success, traces, Trace::fires),
            fires_on_failures: self.rate(Outcome::Failure, traces, Trace::fires),
            composite,
            early: self.early(traces),
            agreement: self.agreement(traces, None),
            monitors: judged.monitors.iter().enumerate().map(monitor).collect(),
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

    /// The runs whose outcome is known, each with one number.
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

    /// Only runs with at least that many steps, so that length itself tells nothing.
    fn early(&self, traces: &[&Trace]) -> Vec<EarlyReport> {
        let mut early = Vec::new();
        for steps in EARLY_STEPS {
            for statistic in [Statistic::Mean, Statistic::Peak] {
                let mut samples = self.samples(traces, |trace| trace.composite(statistic, steps));
                samples.retain(|sample| sample.steps >= steps);
                let raw: Option<Area> = raw_area(&samples, &self.resamples);
                early.push(EarlyReport { steps, statistic, raw });
            }
        }
        early
    }

    /// The agreement of one monitor, or of all together.
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

/// One set's share of an average.
struct OfSet {
    set: String,
    raw: f64,
    value: f64,
    drawn: Vec<f64>,
}

/// One set's share, and in which average.
struct Averaged {
    key: (String, Split, Statistic),
    of_set: OfSet,
}

/// Averages over sets, collected while the sets are measured; in the order in which they first come.
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
        let row = |((judge, split, statistic), sets): ((String, Split, Statistic), Vec<OfSet>)| {
            let mean = |of: &dyn Fn(&OfSet) -> f64| -> f64 {
                sets.iter().map(of).sum::<f64>() / real(sets.len())
            };
            let count = sets.iter().map(|of_set| of_set.drawn.len()).min().unwrap_or(0);
            let nth = |n: usize| mean(&|set| set.drawn.get(n).copied().unwrap_or(f64::NAN));
            let drawn = (0..count).map(nth).collect();
            MeanReport {
                raw: mean(&|of_set| of_set.raw),
                matched: Estimate::from_resamples(mean(&|of_set| of_set.value), drawn),
                sets: sets.iter().map(|of_set| of_set.set.clone()).collect(),
                judge,
                split,
                statistic,
            }
        };
        self.rows.into_iter().map(row).collect()
    }
}

/// The alarms in successful runs, by falling composite.
fn false_alarms(judged: &Judged<'_>, long: &[&LabelledRun], options: &Options) -> Vec<FalseAlarm> {
    let mut found = Vec::new();
    for (run, trace) in long.iter().zip(&judged.traces) {
        if run.outcome != Some(Outcome::Success) || !options.shown.holds(run) {
            continue;
        }
        let alarm = |(at, fired): (usize, &crate::judge::Fired)| {
            let step = run.steps.get(at)?;
            Some(FalseAlarm {
                set: run.set.clone(),
                run: run.id.clone(),
                task: head(&run.task.text),
                step: at,
                steps: run.steps.len(),
                monitor: (*judged.monitors.get(fired.monitor)?).to_owned(),
                composite: trace.steps.get(at)?.composite,
                sentence: fired.sentence.clone(),
                thought: head(&step.thought),
                action: head(format!("{} {}", step.tool, step.input).trim()),
                observation: head(&step.observation),
                before: run
                    .steps
                    .get(at.saturating_sub(BEFORE_SHOWN)..at)
                    .map_or_else(Vec::new, |steps| {
                        steps.iter().map(|step| line(&step.tool, &step.input)).collect()
                    }),
            })
        };
        let mut of_run: Vec<FalseAlarm> = trace.alarms().filter_map(alarm).collect();
        of_run.sort_by(|a, b| b.composite.total_cmp(&a.composite));
        of_run.truncate(FALSE_ALARMS_PER_RUN);
        found.append(&mut of_run);
    }
    found.sort_by(|a, b| b.composite.total_cmp(&a.composite));
    found.truncate(options.false_alarms_max);
    found
}
