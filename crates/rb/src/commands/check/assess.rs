//! Runs the engine over a recorded run.

use rb_engine::config::Engine;
use rb_engine::evidence::Evidence;
use rb_engine::monitors::MonitorSpec;
use rb_engine::policy::Policy;
use rb_engine::policy::fsm::{Fsm, Limits, State};
use rb_engine::run::{MonitorSet, Reading};
use rb_wire::model::Run;

/// Scores and firings of one run.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Computed monitors, in the order of the table.
    pub(super) monitors: Vec<&'static MonitorSpec>,
    /// Policy of the engine.
    pub(super) policy: Policy,
    pub(super) steps: Vec<StepVerdict>,
    /// Row per step, column per monitor.
    scores: Vec<f64>,
    /// One entry per monitor that fired, in the order of the table.
    pub(super) fires: Vec<Fire>,
    /// One entry per monitor that is only a signal and reached its threshold.
    pub(super) signals: Vec<Fire>,
    /// Monitors that failed and were disabled.
    pub(super) disabled: Vec<&'static MonitorSpec>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StepVerdict {
    /// `None` without a thought.
    pub(super) difficulty: Option<f64>,
    pub(super) state: State,
    pub(super) composite: f64,
    /// One bit per column.
    fired: u64,
    signals: u64,
}

/// Steps of a run on which one monitor reached its threshold.
#[derive(Debug)]
pub(super) struct Fire {
    pub(super) monitor: &'static MonitorSpec,
    pub(super) first_step: usize,
    pub(super) last_step: usize,
    /// Number of these steps.
    pub(super) steps: u64,
    pub(super) peak: f64,
    /// Evidence of the last of these steps.
    pub(super) evidence: Option<Evidence>,
}

impl StepVerdict {
    pub(super) fn fired(&self, column: usize) -> bool {
        self.fired >> column & 1 == 1
    }

    pub(super) fn is_signal(&self, column: usize) -> bool {
        self.signals >> column & 1 == 1
    }
}

impl Verdict {
    /// Returns the scores of a step, one per monitor.
    pub(super) fn scores(&self, step: usize) -> &[f64] {
        let columns = self.monitors.len();
        self.scores.get(step * columns..(step + 1) * columns).unwrap_or_default()
    }

    /// Returns the highest composite and the first step with it.
    pub(super) fn peak(&self) -> Option<(usize, f64)> {
        let composites = self.steps.iter().map(|step| step.composite).enumerate();
        composites.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// Assesses the steps of a run without guidance.
pub(super) fn assess(run: &Run<'_>, engine: &Engine) -> Verdict {
    let mut monitor_set = MonitorSet::new(engine, run.task.as_deref().unwrap_or_default());
    let mut fsm = Fsm::new(Limits::default());
    let monitors: Vec<_> = monitor_set.monitors().collect();
    let none = || monitors.iter().map(|_| None).collect::<Vec<Option<Fire>>>();
    let (mut fires, mut signals) = (none(), none());
    let mut scores = Vec::with_capacity(run.steps.len() * monitors.len());
    let mut steps = Vec::with_capacity(run.steps.len());
    for (at, step) in run.steps.iter().enumerate() {
        let step = step.step();
        let assessment = monitor_set.observe(&step);
        let (difficulty, composite) = (assessment.difficulty, assessment.composite);
        let state = fsm.observe(difficulty);
        let mut step = StepVerdict { difficulty, state, composite, fired: 0, signals: 0 };
        for (column, reading) in assessment.readings.into_iter().enumerate() {
            scores.push(reading.score);
            if reading.fired {
                step.fired |= 1 << column;
                Fire::add(&mut fires[column], at, reading);
            } else if reading.signal {
                step.signals |= 1 << column;
                Fire::add(&mut signals[column], at, reading);
            }
        }
        steps.push(step);
    }
    let (fires, signals) =
        (fires.into_iter().flatten().collect(), signals.into_iter().flatten().collect());
    let disabled = monitor_set.disabled_monitors().collect();
    let policy = *engine.policy();
    Verdict { monitors, policy, steps, scores, fires, signals, disabled }
}

impl Fire {
    fn add(fire: &mut Option<Self>, at: usize, reading: Reading) {
        let fire = fire.get_or_insert(Self {
            monitor: reading.monitor,
            first_step: at,
            last_step: at,
            steps: 0,
            peak: 0.0,
            evidence: None,
        });
        fire.last_step = at;
        fire.steps += 1;
        fire.peak = fire.peak.max(reading.score);
        fire.evidence = reading.evidence;
    }
}
