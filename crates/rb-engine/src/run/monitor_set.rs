//! The monitors of one run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::analysis::difficulty;
use crate::analysis::features::StepFeatures;
use crate::analysis::history::{History, StepContext};
use crate::analysis::phrases::CueSet;
use crate::analysis::text::{Lowercased, is_blank};
use crate::config::Engine;
use crate::config::weights::Weights;
use crate::evidence::Evidence;
use crate::monitors::{ALL, Monitor, MonitorSpec, Signal, Suite};
use crate::policy::Policy;
use crate::step::{Step, StepIndex};

/// Score of one monitor after one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The monitor.
    pub monitor: &'static MonitorSpec,
    /// From 0 (healthy) to 1 (worst).
    pub score: f64,
    /// The score reached the threshold of a monitor that fires under the policy.
    pub fired: bool,
    /// The score reached the threshold of a monitor that is only recorded.
    pub signal: bool,
    /// Set if the score is above zero.
    pub evidence: Option<Evidence>,
}

impl Reading {
    /// Returns the advice for the agent, if the monitor fired.
    pub fn advice(&self) -> Option<String> {
        let evidence = self.evidence.as_ref().filter(|_| self.fired)?;
        Some(self.monitor.advice(evidence))
    }
}

/// Difficulty and scores of one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assessment {
    /// Difficulty of the thought; `None` without a thought.
    pub difficulty: Option<f64>,
    /// One per computed monitor, in the order of the table.
    pub readings: Vec<Reading>,
    /// The weighted sum of the scores of a suite; the largest of the suites that fire.
    pub composite: f64,
}

impl Assessment {
    /// Merges two assessments of the same monitors: the higher score of each monitor, the difficulty of `other`.
    pub(crate) fn worse(mut self, other: Self) -> Self {
        for (mine, theirs) in self.readings.iter_mut().zip(other.readings) {
            if theirs.score >= mine.score {
                *mine = theirs;
            }
        }
        self.composite = self.composite.max(other.composite);
        self.difficulty = other.difficulty;
        self
    }

    /// Returns the readings that fired, in the order of the table.
    pub fn fired(&self) -> impl Iterator<Item = &Reading> {
        self.readings.iter().filter(|reading| reading.fired)
    }

    /// Returns the quiet signals, in the order of the table.
    pub fn signals(&self) -> impl Iterator<Item = &Reading> {
        self.readings.iter().filter(|reading| reading.signal)
    }
}

/// The monitors of one run.
pub struct MonitorSet {
    entries: Vec<Entry>,
    policy: Policy,
    weights: Weights,
    fire_at: Option<f64>,
    next: StepIndex,
    /// Memory of the semantic monitors; `None` if none is computed.
    past: Option<History>,
}

struct Entry {
    spec: &'static MonitorSpec,
    /// `None` after a panic: the monitor is disabled for this run, the others continue.
    monitor: Option<Box<dyn Monitor>>,
    /// Number of its advices that were shown.
    advised: u32,
}

impl MonitorSet {
    /// Creates the monitors of the computed suites. The task is in the words of the user and may be empty.
    pub fn new(engine: &Engine, task: &str) -> Self {
        let config = &engine.config;
        let computed = ALL.iter().filter(|spec| config.policy.computed.includes(spec.suite));
        let entries: Vec<Entry> = computed
            .map(|spec| Entry { spec, monitor: Some((spec.build)(&config.monitors)), advised: 0 })
            .collect();
        let any_semantic = entries.iter().any(|entry| entry.spec.suite == Suite::Semantic);
        let past =
            || History::new(Arc::clone(&engine.embedder), config.monitors.tools.clone(), task);
        let mut monitors = Self {
            entries,
            policy: config.policy,
            weights: config.weights.clone(),
            fire_at: config.fire_threshold,
            next: StepIndex(0),
            past: None,
        };
        if any_semantic {
            monitors.past = catch_unwind(AssertUnwindSafe(past)).ok();
            monitors.disable_semantic();
        }
        monitors
    }

    /// Returns true if no monitor is computed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the computed monitors.
    pub fn monitors(&self) -> impl Iterator<Item = &'static MonitorSpec> {
        self.entries.iter().map(|entry| entry.spec)
    }

    /// Returns the monitors that panicked in this run.
    pub fn disabled_monitors(&self) -> impl Iterator<Item = &'static MonitorSpec> {
        self.entries.iter().filter(|entry| entry.monitor.is_none()).map(|entry| entry.spec)
    }

    /// Sets the index of the next step, which must be the first one; later steps follow it.
    pub fn set_first_step_index(&mut self, index: u32) {
        self.next = StepIndex(index);
    }

    /// Returns the index of the newest step; 0 before the first one.
    pub fn newest_step_index(&self) -> u32 {
        self.next.0.saturating_sub(1)
    }

    /// Observes the next step.
    pub fn observe(&mut self, step: &Step<'_>) -> Assessment {
        let thought = Lowercased::of(step.thought);
        let facts = StepFeatures::of(*step, &thought);
        let at = self.next;
        self.next = StepIndex(at.0.saturating_add(1));
        let scene = self.look(step, facts.observation.cues);
        let facts = StepFeatures { context: scene.as_ref().zip(self.past.as_ref()), ..facts };
        let (fire_at, policy) = (self.fire_at, self.policy);
        let read = |entry: &mut Entry| {
            let Signal { score, mut evidence } = entry.observe(at, &facts);
            if let Some(evidence) = &mut evidence {
                evidence.earlier = entry.advised;
            }
            let monitor = entry.spec;
            let is_over = score >= fire_at.unwrap_or(monitor.fire_at) && evidence.is_some();
            let fires = policy.fires(monitor.suite);
            Reading { monitor, score, fired: is_over && fires, signal: is_over && !fires, evidence }
        };
        let readings: Vec<Reading> = self.entries.iter_mut().map(read).collect();
        let thought = facts.step.thought;
        let difficulty =
            (!is_blank(thought)).then(|| difficulty::from_words(thought, &facts.thought));
        if let (Some(past), Some(scene)) = (&mut self.past, scene) {
            past.record(at, scene);
        }
        let mut scores = readings.iter().peekable();
        let composite = self.weights.composite(&self.policy, |spec| {
            scores.next_if(|reading| reading.monitor == spec).map(|reading| reading.score)
        });
        Assessment { difficulty, readings, composite }
    }

    /// Returns the readings above zero of the suites that fire, the most serious first; see [`Weights::order`].
    pub fn ranked<'a>(&self, assessment: &'a Assessment) -> Vec<&'a Reading> {
        let counts = |reading: &&Reading| {
            reading.score > 0.0 && (reading.fired || self.policy.fires(reading.monitor.suite))
        };
        let mut readings: Vec<&Reading> = assessment.readings.iter().filter(counts).collect();
        let of = |reading: &Reading| (reading.monitor.id, reading.score, reading.fired);
        readings.sort_by(|a, b| self.weights.order(of(a), of(b)));
        readings
    }

    /// Extracts the context of the step for the semantic monitors. A panic disables them; the others continue.
    fn look(&mut self, step: &Step<'_>, heard: CueSet) -> Option<StepContext> {
        let past = self.past.as_mut()?;
        let looked = catch_unwind(AssertUnwindSafe(|| past.analyse(step, heard)));
        if looked.is_err() {
            self.past = None;
            self.disable_semantic();
        }
        looked.ok()
    }

    /// Disables the semantic monitors if there is no history.
    fn disable_semantic(&mut self) {
        if self.past.is_none() {
            let semantic =
                self.entries.iter_mut().filter(|entry| entry.spec.suite == Suite::Semantic);
            semantic.for_each(|entry| entry.monitor = None);
        }
    }

    /// Records that the model has read the advice of a monitor after the newest step.
    pub fn advised(&mut self, id: &str) {
        let at = StepIndex(self.next.0.saturating_sub(1));
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.spec.id == id) {
            entry.advised = entry.advised.saturating_add(1);
            if let Some(monitor) = &mut entry.monitor {
                monitor.advised(at);
            }
        }
    }

    /// Returns the heap memory of the monitors.
    pub fn heap_bytes(&self) -> usize {
        let monitors = self.entries.iter().filter_map(|entry| entry.monitor.as_ref());
        let past = self.past.as_ref().map_or(0, History::heap_bytes);
        past + monitors.map(|monitor| monitor.heap_bytes()).sum::<usize>()
    }
}

impl Entry {
    /// Observes a step. After a panic the monitor is disabled and scores zero.
    fn observe(&mut self, at: StepIndex, facts: &StepFeatures<'_>) -> Signal {
        let Some(monitor) = self.monitor.as_mut() else { return Signal::none() };
        catch_unwind(AssertUnwindSafe(|| monitor.observe(at, facts))).unwrap_or_else(|_| {
            self.monitor = None;
            Signal::none()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EngineConfig;
    use crate::monitors::{HEAP_BYTES_MAX, SuiteChoice};
    use crate::policy::Policy;
    use crate::step::Input;

    fn heuristic() -> Engine {
        let config = EngineConfig::with_policy(Policy::only(SuiteChoice::Heuristic));
        config.check().expect("valid settings")
    }

    #[test]
    fn a_panicking_monitor_is_disabled_alone() {
        struct Bomb;
        impl Monitor for Bomb {
            fn observe(&mut self, at: StepIndex, _: &StepFeatures<'_>) -> Signal {
                assert!(at.0 < 1, "boom");
                Signal::none()
            }
            fn heap_bytes(&self) -> usize {
                0
            }
        }
        let mut monitors = MonitorSet::new(&heuristic(), "");
        monitors.entries[0].monitor = Some(Box::new(Bomb));
        let step = Step::thought("I was wrong").with_action("read", Input::None);
        for _ in 0..3 {
            monitors.observe(&step);
        }
        assert_eq!(
            monitors.disabled_monitors().map(|spec| spec.id).collect::<Vec<_>>(),
            ["streak"]
        );
        let assessment = monitors.observe(&step);
        assert_eq!(
            assessment.fired().map(|reading| reading.monitor.id).collect::<Vec<_>>(),
            ["hedge"]
        );
    }

    #[test]
    fn a_panicking_embedder_disables_only_the_semantic_suite() {
        let embed = |text: &str| {
            assert!(!text.contains("boom"), "as a broken embedder would");
            crate::analysis::embedding::Vector::zero()
        };
        let rules = Engine::default().with_embedder(Arc::new(embed));
        let disabled = |monitors: &MonitorSet| -> Vec<_> {
            monitors.disabled_monitors().map(|spec| spec.id).collect()
        };
        let semantic = ALL.iter().filter(|spec| spec.suite == Suite::Semantic);
        let semantic: Vec<_> = semantic.map(|spec| spec.id).collect();
        assert_eq!(disabled(&MonitorSet::new(&rules, "a task that goes boom")), semantic);
        let mut monitors = MonitorSet::new(&rules, "");
        monitors.observe(&Step::thought("all is well with this step"));
        let assessment = monitors.observe(&Step::thought("I was wrong and then there was a boom"));
        assert_eq!(disabled(&monitors), semantic);
        assert_eq!(
            assessment.signals().map(|reading| reading.monitor.id).collect::<Vec<_>>(),
            ["hedge"]
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut monitors = MonitorSet::new(&Engine::default(), "");
        for n in 0..30_000_u32 {
            let input =
                format!("src/file_{}.rs change number {n} {}", n / 2, "lorem ipsum ".repeat(3));
            let thought = format!("maybe step {n} is the one");
            let tool = if n % 3 == 0 { "run_tests".to_owned() } else { format!("edit{}", n % 40) };
            let tool = if n % 2 == 0 { "edit" } else { tool.as_str() };
            let step = Step::thought(&thought)
                .with_action(tool, Input::Text(&input))
                .with_observation("1 failed: assertion error in module");
            monitors.observe(&step);
        }
        for entry in &monitors.entries {
            let bytes = entry.monitor.as_ref().map_or(0, |monitor| monitor.heap_bytes());
            assert!(bytes <= HEAP_BYTES_MAX, "{} holds {bytes} bytes", entry.spec.id);
        }
        assert!(monitors.heap_bytes() <= 256 * 1024, "{}", monitors.heap_bytes());
    }
}
