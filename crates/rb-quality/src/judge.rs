//! Whoever gives a run its scores: a suite of monitors, or something to compare it with.

use rayon::prelude::*;
use rb_engine::config::Engine;
use rb_engine::monitors::{ALL, Suite, SuiteChoice};
use rb_engine::run::MonitorSet;
use serde::Serialize;

use crate::corpus::LabelledRun;

/// Reads a run from its first step to its last.
pub trait Judge: Sync {
    /// Its name in tables.
    fn name(&self) -> &str;

    /// Its monitors; every step of a trace has one score for each, in this order.
    fn monitors(&self) -> Vec<&'static str>;

    /// What it says to the run. It must not look ahead: the score of a step rests on the steps up to it.
    fn trace(&self, run: &LabelledRun) -> Trace;
}

/// What a judge said to one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// One a step.
    pub steps: Vec<TracedStep>,
}

/// What a judge said to one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TracedStep {
    /// One a monitor, in the judge's order.
    pub scores: Vec<f64>,
    /// All of them in one number.
    pub composite: f64,
    /// The monitors that fire at this step.
    pub fired: Vec<Fired>,
}

/// One monitor firing at one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The monitor's place in the judge's order.
    pub monitor: usize,
    /// It did not fire at the step before: the alarm begins here.
    pub begins: bool,
    /// The evidence as a sentence; only where the alarm begins.
    pub sentence: String,
}

/// How a series of scores becomes one number for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The largest.
    Peak,
    /// The average.
    Mean,
    /// The last.
    Last,
}

impl Statistic {
    /// Of a series; an empty one is 0.
    pub fn of(self, series: impl Iterator<Item = f64>) -> f64 {
        match self {
            Self::Peak => series.fold(0.0, f64::max),
            Self::Last => series.last().unwrap_or(0.0),
            Self::Mean => {
                let (sum, count) =
                    series.fold((0.0, 0.0), |(sum, n), score| (sum + score, n + 1.0));
                if count > 0.0 { sum / count } else { 0.0 }
            }
        }
    }
}

impl Trace {
    /// The composite of the first `steps_max` steps as one number.
    pub fn composite(&self, statistic: Statistic, steps_max: usize) -> f64 {
        statistic.of(self.steps.iter().take(steps_max).map(|step| step.composite))
    }

    /// One monitor's score as one number.
    pub fn score(&self, monitor: usize, statistic: Statistic) -> f64 {
        let of = |step: &TracedStep| step.scores.get(monitor).copied().unwrap_or(0.0);
        statistic.of(self.steps.iter().map(of))
    }

    /// Every alarm that begins: the step, the monitor and the sentence, in order.
    pub fn alarms(&self) -> impl Iterator<Item = (usize, &Fired)> {
        let each = |(at, step)| {
            let step: &TracedStep = step;
            step.fired.iter().filter(|fired| fired.begins).map(move |fired| (at, fired))
        };
        self.steps.iter().enumerate().flat_map(each)
    }

    /// Whether any monitor fires anywhere.
    pub fn fires(&self) -> bool {
        self.steps.iter().any(|step| !step.fired.is_empty())
    }

    /// Whether that monitor fires anywhere.
    pub fn monitor_fires(&self, monitor: usize) -> bool {
        self.steps.iter().any(|step| step.fired.iter().any(|fired| fired.monitor == monitor))
    }
}

/// Somebody who wants to see how far the work has come.
pub trait Watch: Sync {
    /// So many more steps will be judged.
    fn planned(&self, steps: usize);

    /// So many more steps have been.
    fn judged(&self, steps: usize);
}

/// Nobody looks.
impl Watch for () {
    fn planned(&self, _: usize) {}

    fn judged(&self, _: usize) {}
}

/// All runs through one judge, in the order of the runs.
pub(crate) fn traces(judge: &dyn Judge, runs: &[&LabelledRun], watch: &dyn Watch) -> Vec<Trace> {
    let trace = |run: &&LabelledRun| {
        let trace = judge.trace(run);
        watch.judged(trace.steps.len());
        trace
    };
    runs.par_iter().map(trace).collect()
}

/// The engine's monitors under given rules.
#[derive(Debug, Clone)]
pub struct SuiteJudge {
    rules: Engine,
}

impl SuiteJudge {
    /// The monitors of the suites that the rules choose.
    pub fn new(rules: Engine) -> Self {
        Self { rules }
    }
}

impl Judge for SuiteJudge {
    fn name(&self) -> &str {
        match self.rules.config().suite {
            SuiteChoice::Neither => "none",
            SuiteChoice::Heuristic => Suite::Heuristic.name(),
            SuiteChoice::Semantic => Suite::Semantic.name(),
            SuiteChoice::Both => "both",
        }
    }

    fn monitors(&self) -> Vec<&'static str> {
        let suite = self.rules.config().suite;
        ALL.iter().filter(|spec| suite.includes(spec.suite)).map(|spec| spec.id).collect()
    }

    fn trace(&self, run: &LabelledRun) -> Trace {
        let mut panel = MonitorSet::new(&self.rules, &run.task.text);
        let mut before: Vec<bool> = Vec::new();
        let steps = run.steps.iter().map(|step| {
            let assessment = panel.observe(&step.step());
            let fired_before = std::mem::take(&mut before);
            let mut fired = Vec::new();
            for (monitor, reading) in assessment.readings.iter().enumerate() {
                before.push(reading.fired);
                if reading.fired {
                    let begins = !fired_before.get(monitor).copied().unwrap_or(false);
                    let sentence = if begins { reading.advice() } else { None };
                    fired.push(Fired { monitor, begins, sentence: sentence.unwrap_or_default() });
                }
            }
            let scores = assessment.readings.iter().map(|reading| reading.score).collect();
            TracedStep { scores, composite: assessment.composite, fired }
        });
        Trace { steps: steps.collect() }
    }
}

/// The plain number of steps so far: what every monitor must beat, because long runs fail more often.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepCount;

impl Judge for StepCount {
    fn name(&self) -> &'static str {
        "step count"
    }

    fn monitors(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn trace(&self, run: &LabelledRun) -> Trace {
        let step = |at: usize| TracedStep {
            composite: f64::from(u32::try_from(at + 1).unwrap_or(u32::MAX)),
            ..TracedStep::default()
        };
        Trace { steps: (0..run.steps.len()).map(step).collect() }
    }
}

#[cfg(test)]
mod tests {
    use rb_engine::config::EngineConfig;

    use super::*;
    use crate::corpus::OwnedStep;

    fn run_of(count: usize) -> LabelledRun {
        let step =
            OwnedStep { tool: "bash".into(), thought: "Go on.".into(), ..OwnedStep::default() };
        LabelledRun { steps: vec![step; count], ..LabelledRun::default() }
    }

    #[test]
    fn an_alarm_begins_once() {
        let config = EngineConfig { suite: SuiteChoice::Heuristic, ..EngineConfig::default() };
        let judge = SuiteJudge::new(config.check().expect("good rules"));
        let trace = judge.trace(&run_of(12));
        let streak = judge.monitors().iter().position(|id| *id == "streak").expect("a monitor");
        let begins: Vec<_> = trace.alarms().filter(|(_, fired)| fired.monitor == streak).collect();
        assert_eq!(begins.len(), 1);
        assert!(begins[0].1.sentence.contains("bash"), "{}", begins[0].1.sentence);
        assert!(trace.fires() && trace.monitor_fires(streak));
        assert_eq!(trace.steps[0].scores.len(), judge.monitors().len());
    }

    #[test]
    fn statistics_of_a_series() {
        let of = |statistic: Statistic| statistic.of([0.2, 0.8, 0.5].into_iter());
        assert_eq!(
            (of(Statistic::Peak), of(Statistic::Mean), of(Statistic::Last)),
            (0.8, 0.5, 0.5)
        );
        assert_eq!(Statistic::Mean.of(std::iter::empty()), 0.0);
        assert_eq!(StepCount.trace(&run_of(3)).composite(Statistic::Peak, 2), 2.0);
    }
}
