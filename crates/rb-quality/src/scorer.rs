//! Monitor suites and the baseline they are compared with.

use rayon::prelude::*;
use rb_engine::config::Engine;
use rb_engine::monitors::{ALL, Suite, SuiteChoice};
use rb_engine::run::MonitorSet;
use serde::Serialize;

use crate::corpus::LabelledRun;

/// Scores the steps of a run in order.
pub trait Scorer: Sync {
    /// Its name in tables.
    fn name(&self) -> &str;

    /// Its monitors; a step of a trace has one score for each, in this order.
    fn monitors(&self) -> Vec<&'static str>;

    /// Scores a run. The score of a step depends on the steps up to it only.
    fn trace(&self, run: &LabelledRun) -> Trace;
}

/// The scores of one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// One per step.
    pub steps: Vec<TracedStep>,
}

/// The scores of one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TracedStep {
    /// One per monitor, in the order of [`Scorer::monitors`].
    pub scores: Vec<f64>,
    /// The weighted sum.
    pub composite: f64,
    /// The firing monitors.
    pub fired: Vec<Fired>,
}

/// A monitor that fires at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// Index in [`Scorer::monitors`].
    pub monitor: usize,
    /// The alarm begins here: the monitor did not fire at the previous step.
    pub begins: bool,
}

/// Aggregation of a series of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Maximum.
    Peak,
    /// Mean.
    Mean,
    /// Last value.
    Last,
}

impl Statistic {
    /// Aggregates a series; an empty one is 0.
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
    /// Aggregates the composite of the first `steps_max` steps.
    pub fn composite(&self, statistic: Statistic, steps_max: usize) -> f64 {
        statistic.of(self.steps.iter().take(steps_max).map(|step| step.composite))
    }

    /// Aggregates the score of one monitor.
    pub fn score(&self, monitor: usize, statistic: Statistic) -> f64 {
        let of = |step: &TracedStep| step.scores.get(monitor).copied().unwrap_or(0.0);
        statistic.of(self.steps.iter().map(of))
    }

    /// The beginning of every alarm, with its step.
    pub fn alarms(&self) -> impl Iterator<Item = (usize, &Fired)> {
        let each = |(at, step)| {
            let step: &TracedStep = step;
            step.fired.iter().filter(|fired| fired.begins).map(move |fired| (at, fired))
        };
        self.steps.iter().enumerate().flat_map(each)
    }

    /// Returns true if any monitor fires at any step.
    pub fn fires(&self) -> bool {
        self.steps.iter().any(|step| !step.fired.is_empty())
    }

    /// Returns true if the monitor fires at any step.
    pub fn monitor_fires(&self, monitor: usize) -> bool {
        self.steps.iter().any(|step| step.fired.iter().any(|fired| fired.monitor == monitor))
    }
}

/// Receives the progress of an evaluation.
pub trait Progress: Sync {
    /// Adds steps to the total.
    fn planned(&self, steps: usize);

    /// Adds finished steps.
    fn finished(&self, steps: usize);
}

/// Ignores the progress.
impl Progress for () {
    fn planned(&self, _: usize) {}

    fn finished(&self, _: usize) {}
}

/// Scores all runs in parallel.
pub fn traces(scorer: &dyn Scorer, runs: &[&LabelledRun], progress: &dyn Progress) -> Vec<Trace> {
    let trace = |run: &&LabelledRun| {
        let trace = scorer.trace(run);
        progress.finished(trace.steps.len());
        trace
    };
    runs.par_iter().map(trace).collect()
}

/// The monitors of an engine configuration.
#[derive(Debug, Clone)]
pub struct SuiteScorer {
    engine: Engine,
}

impl SuiteScorer {
    /// Uses the monitors of the configured suites.
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }
}

impl Scorer for SuiteScorer {
    fn name(&self) -> &str {
        match self.engine.policy().advises {
            SuiteChoice::Neither => "none",
            SuiteChoice::Heuristic => Suite::Heuristic.name(),
            SuiteChoice::Semantic => Suite::Semantic.name(),
            SuiteChoice::Both => "both",
        }
    }

    fn monitors(&self) -> Vec<&'static str> {
        let suite = self.engine.policy().computed;
        ALL.iter().filter(|spec| suite.includes(spec.suite)).map(|spec| spec.id).collect()
    }

    fn trace(&self, run: &LabelledRun) -> Trace {
        let mut monitors = MonitorSet::new(&self.engine, &run.task.text);
        let mut before: Vec<bool> = Vec::new();
        let steps = run.steps.iter().map(|step| {
            let assessment = monitors.observe(&step.step());
            let fired_before = std::mem::take(&mut before);
            let mut fired = Vec::new();
            for (monitor, reading) in assessment.readings.iter().enumerate() {
                before.push(reading.fired);
                if reading.fired {
                    let begins = !fired_before.get(monitor).copied().unwrap_or(false);
                    fired.push(Fired { monitor, begins });
                }
            }
            let scores = assessment.readings.iter().map(|reading| reading.score).collect();
            TracedStep { scores, composite: assessment.composite, fired }
        });
        Trace { steps: steps.collect() }
    }
}

/// The number of steps so far. The baseline of every monitor, because long runs fail more often.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepCount;

impl Scorer for StepCount {
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
    use rb_engine::policy::Policy;

    use super::*;
    use crate::corpus::OwnedStep;

    fn run_of(count: usize) -> LabelledRun {
        let step =
            OwnedStep { tool: "bash".into(), thought: "Go on.".into(), ..OwnedStep::default() };
        LabelledRun { steps: vec![step; count], ..LabelledRun::default() }
    }

    #[test]
    fn consecutive_firing_steps_are_one_alarm() {
        let config = EngineConfig::with_policy(Policy::only(SuiteChoice::Heuristic));
        let scorer = SuiteScorer::new(config.check().expect("a valid configuration"));
        let trace = scorer.trace(&run_of(12));
        let streak = scorer.monitors().iter().position(|id| *id == "streak").expect("a monitor");
        let begins: Vec<_> = trace.alarms().filter(|(_, fired)| fired.monitor == streak).collect();
        assert_eq!(begins.len(), 1);
        assert!(trace.fires() && trace.monitor_fires(streak));
        assert_eq!(trace.steps[0].scores.len(), scorer.monitors().len());
    }

    #[test]
    fn series_are_aggregated() {
        let of = |statistic: Statistic| statistic.of([0.2, 0.8, 0.5].into_iter());
        assert_eq!(
            (of(Statistic::Peak), of(Statistic::Mean), of(Statistic::Last)),
            (0.8, 0.5, 0.5)
        );
        assert_eq!(Statistic::Mean.of(std::iter::empty()), 0.0);
        assert_eq!(StepCount.trace(&run_of(3)).composite(Statistic::Peak, 2), 2.0);
    }
}
