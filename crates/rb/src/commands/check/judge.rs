//! From a recorded run to a verdict: the one place where `rb check` asks the engine.

use rb_engine::config::Engine;
use rb_engine::evidence::Evidence;
use rb_engine::monitors::MonitorSpec;
use rb_engine::policy::fsm::{Fsm, Limits, State};
use rb_engine::run::MonitorSet;
use rb_wire::transcripts::Run;

/// What the engine says about one run.
#[derive(Debug)]
pub(super) struct Verdict {
    /// The monitors that watched, in the order of the table.
    pub(super) monitors: Vec<&'static MonitorSpec>,
    pub(super) steps: Vec<StepVerdict>,
    /// A row a step, a column a monitor.
    scores: Vec<f64>,
    /// One a monitor that fired, in the order of the table.
    pub(super) fires: Vec<Fire>,
    /// Monitors that broke down and are silent from then on.
    pub(super) retired: Vec<&'static MonitorSpec>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StepVerdict {
    /// `None` where the step has no thought.
    pub(super) difficulty: Option<f64>,
    pub(super) state: State,
    pub(super) composite: f64,
    /// One bit a column.
    fired: u64,
}

/// One monitor's firing over the whole run.
#[derive(Debug)]
pub(super) struct Fire {
    pub(super) monitor: &'static MonitorSpec,
    pub(super) first_step: usize,
    pub(super) last_step: usize,
    /// In how many steps it fired.
    pub(super) steps: u64,
    pub(super) peak: f64,
    /// As seen at the last of these steps.
    pub(super) evidence: Option<Evidence>,
}

impl StepVerdict {
    pub(super) fn fired(&self, column: usize) -> bool {
        self.fired >> column & 1 == 1
    }
}

impl Verdict {
    /// The scores of a step, one a monitor.
    pub(super) fn scores(&self, step: usize) -> &[f64] {
        let columns = self.monitors.len();
        self.scores.get(step * columns..(step + 1) * columns).unwrap_or_default()
    }

    /// The highest composite and the first step that has it.
    pub(super) fn peak(&self) -> Option<(usize, f64)> {
        let composites = self.steps.iter().map(|step| step.composite).enumerate();
        composites.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

/// Watches a run that was not steered, step by step.
pub(super) fn judge(run: &Run<'_>, rules: &Engine) -> Verdict {
    let mut panel = MonitorSet::new(rules, run.task.as_deref().unwrap_or_default());
    let mut fsm = Fsm::new(Limits::default());
    let monitors: Vec<_> = panel.monitors().collect();
    let mut fires: Vec<Option<Fire>> = monitors.iter().map(|_| None).collect();
    let mut scores = Vec::with_capacity(run.steps.len() * monitors.len());
    let mut steps = Vec::with_capacity(run.steps.len());
    for (at, step) in run.steps.iter().enumerate() {
        let step = step.step();
        let assessment = panel.observe(&step);
        let (difficulty, composite) = (assessment.difficulty, assessment.composite);
        let state = difficulty.map_or(fsm.state(), |difficulty| fsm.advance(difficulty));
        let mut bits = 0;
        for (column, reading) in assessment.readings.into_iter().enumerate() {
            scores.push(reading.score);
            if reading.fired {
                bits |= 1 << column;
                let fire = fires[column].get_or_insert(Fire {
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
        steps.push(StepVerdict { difficulty, state, composite, fired: bits });
    }
    let retired = panel.disabled_monitors().collect();
    Verdict { monitors, steps, scores, fires: fires.into_iter().flatten().collect(), retired }
}
