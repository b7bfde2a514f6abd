//! The monitors of one run, read together.

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
use crate::step::{Step, StepIndex};

/// What one monitor reads after one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The monitor's row.
    pub monitor: &'static MonitorSpec,
    /// From 0 (healthy) to 1 (worst).
    pub score: f64,
    /// The score reached the monitor's threshold.
    pub fired: bool,
    /// There whenever the score is above zero.
    pub evidence: Option<Evidence>,
}

impl Reading {
    /// What to tell the agent; only a monitor that fired has something to say.
    pub fn advice(&self) -> Option<String> {
        let evidence = self.evidence.as_ref().filter(|_| self.fired)?;
        Some(self.monitor.advice(evidence))
    }
}

/// What one step says: how hard it looks, and all readings after it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assessment {
    /// How hard the thought looks; `None` where there is none.
    pub difficulty: Option<f64>,
    /// One a monitor that watches, in the order of the table.
    pub readings: Vec<Reading>,
    /// The weighted sum of a suite's scores, to four decimals; with two suites, the larger sum.
    pub composite: f64,
}

impl Assessment {
    /// The worse of two assessments by the same monitors, monitor by monitor; the difficulty is the later one's.
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

    /// The readings that fired, in the order of the table.
    pub fn fired(&self) -> impl Iterator<Item = &Reading> {
        self.readings.iter().filter(|reading| reading.fired)
    }
}

/// The monitors that watch one run.
pub struct MonitorSet {
    entries: Vec<Entry>,
    weights: Weights,
    fire_at: Option<f64>,
    next: StepIndex,
    /// What the semantic monitors need of the past; only there when one watches.
    past: Option<History>,
}

struct Entry {
    spec: &'static MonitorSpec,
    weight: f64,
    /// `None` once the monitor has panicked: it is retired for this run, the others go on.
    monitor: Option<Box<dyn Monitor>>,
    /// How many of its advices were shown.
    advised: u32,
}

impl MonitorSet {
    /// Fresh monitors of the suites the rules choose. The task, as the user put it, may be empty.
    pub fn new(rules: &Engine, task: &str) -> Self {
        let config = &rules.config;
        let watching = ALL
            .iter()
            .zip(config.weights.iter())
            .filter(|(spec, _)| config.suite.includes(spec.suite));
        let entries: Vec<Entry> = watching
            .map(|(spec, weight)| Entry {
                spec,
                weight,
                monitor: Some((spec.build)(&config.monitors)),
                advised: 0,
            })
            .collect();
        let any_semantic = entries.iter().any(|entry| entry.spec.suite == Suite::Semantic);
        let past =
            || History::new(Arc::clone(&rules.embedder), config.monitors.tools.clone(), task);
        let mut monitors = Self {
            entries,
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

    /// Whether any monitor watches.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The rows of the monitors that watch.
    pub fn monitors(&self) -> impl Iterator<Item = &'static MonitorSpec> {
        self.entries.iter().map(|entry| entry.spec)
    }

    /// The weights in use.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Monitors that failed and are out for the rest of the run.
    pub fn disabled_monitors(&self) -> impl Iterator<Item = &'static MonitorSpec> {
        self.entries.iter().filter(|entry| entry.monitor.is_none()).map(|entry| entry.spec)
    }

    /// The next step, the first one, is called by this number outside, and those after it follow.
    pub(crate) fn set_first_step_index(&mut self, index: u32) {
        self.next = StepIndex(index);
    }

    /// Takes the next step and reads every monitor.
    pub fn observe(&mut self, step: &Step<'_>) -> Assessment {
        let thought = Lowercased::of(step.thought);
        let facts = StepFeatures::of(*step, &thought);
        let at = self.next;
        self.next = StepIndex(at.0.saturating_add(1));
        let scene = self.look(step, facts.observation.cues);
        let facts = StepFeatures { context: scene.as_ref().zip(self.past.as_ref()), ..facts };
        let fire_at = self.fire_at;
        let read = |entry: &mut Entry| {
            let Signal { score, mut evidence } = entry.observe(at, &facts);
            if let Some(evidence) = &mut evidence {
                evidence.earlier = entry.advised;
            }
            let fired = score >= fire_at.unwrap_or(entry.spec.fire_at) && evidence.is_some();
            Reading { monitor: entry.spec, score, fired, evidence }
        };
        let readings: Vec<Reading> = self.entries.iter_mut().map(read).collect();
        let thought = facts.step.thought;
        let difficulty =
            (!is_blank(thought)).then(|| difficulty::from_words(thought, &facts.thought));
        if let (Some(past), Some(scene)) = (&mut self.past, scene) {
            past.record(at, scene);
        }
        let composite = self.composite(&readings);
        Assessment { difficulty, readings, composite }
    }

    /// Understands the step for the semantic monitors. Should that panic, they are retired together; the others go on.
    fn look(&mut self, step: &Step<'_>, heard: CueSet) -> Option<StepContext> {
        let past = self.past.as_mut()?;
        let looked = catch_unwind(AssertUnwindSafe(|| past.analyse(step, heard)));
        if looked.is_err() {
            self.past = None;
            self.disable_semantic();
        }
        looked.ok()
    }

    /// Without an understanding of the run the semantic monitors see nothing.
    fn disable_semantic(&mut self) {
        if self.past.is_none() {
            let semantic =
                self.entries.iter_mut().filter(|entry| entry.spec.suite == Suite::Semantic);
            semantic.for_each(|entry| entry.monitor = None);
        }
    }

    /// The advice of a monitor was shown: it judges what comes next afresh.
    pub(crate) fn advised(&mut self, id: &str) {
        let at = StepIndex(self.next.0.saturating_sub(1));
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.spec.id == id) {
            entry.advised = entry.advised.saturating_add(1);
            if let Some(monitor) = &mut entry.monitor {
                monitor.advised(at);
            }
        }
    }

    fn composite(&self, readings: &[Reading]) -> f64 {
        let of = |suite: Suite| -> f64 {
            let pairs =
                self.entries.iter().zip(readings).filter(|(entry, _)| entry.spec.suite == suite);
            round4(pairs.map(|(entry, reading)| entry.weight * reading.score).sum())
        };
        of(Suite::Heuristic).max(of(Suite::Semantic))
    }

    /// What the monitors keep on the heap.
    pub fn heap_bytes(&self) -> usize {
        let monitors = self.entries.iter().filter_map(|entry| entry.monitor.as_ref());
        let past = self.past.as_ref().map_or(0, History::heap_bytes);
        past + monitors.map(|monitor| monitor.heap_bytes()).sum::<usize>()
    }
}

impl Entry {
    /// A monitor that panics costs itself, not the run: it is retired and reads zero from now on.
    fn observe(&mut self, at: StepIndex, facts: &StepFeatures<'_>) -> Signal {
        let Some(monitor) = self.monitor.as_mut() else { return Signal::none() };
        catch_unwind(AssertUnwindSafe(|| monitor.observe(at, facts))).unwrap_or_else(|_| {
            self.monitor = None;
            Signal::none()
        })
    }
}

/// Rounds to four decimals as the reference does: correctly, halves to even.
pub fn round4(value: f64) -> f64 {
    let scaled = value * 1e4;
    let nearest = scaled.round_ties_even();
    // Multiplying may have rounded across a half; only near one does the exact decimal matter.
    if ((scaled - scaled.floor()) - 0.5).abs() > 1e-6 {
        return nearest / 1e4;
    }
    format!("{value:.4}").parse().unwrap_or(nearest / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EngineConfig;
    use crate::monitors::{HEAP_BYTES_MAX, SuiteChoice};
    use crate::step::Input;

    fn heuristic() -> Engine {
        let config = EngineConfig { suite: SuiteChoice::Heuristic, ..EngineConfig::default() };
        config.check().expect("good rules")
    }

    #[test]
    fn rounding_is_exact_with_halves_to_even() {
        for (value, expected) in [
            (0.03125, 0.0312),
            (0.09375, 0.0938),
            (0.123_45, 0.1235), // the double lies above the decimal
            (0.000_05, 0.0001),
            (0.355, 0.355),
            (1.0, 1.0),
            (0.0, 0.0),
        ] {
            assert_eq!(round4(value).to_bits(), f64::to_bits(expected), "{value}");
        }
    }

    #[test]
    fn a_panicking_monitor_is_retired_alone() {
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
    fn a_panicking_embedder_costs_the_semantic_suite_alone() {
        let embed = |text: &str| {
            assert!(!text.contains("boom"), "as a broken embedder would");
            crate::analysis::embedding::Vector::zero()
        };
        let rules = Engine::default().with_embedder(Arc::new(embed));
        assert_eq!(MonitorSet::new(&rules, "a task that goes boom").disabled_monitors().count(), 6);
        let mut monitors = MonitorSet::new(&rules, "");
        monitors.observe(&Step::thought("all is well with this step"));
        let assessment = monitors.observe(&Step::thought("I was wrong and then there was a boom"));
        assert_eq!(monitors.disabled_monitors().count(), 6);
        assert_eq!(
            assessment.fired().map(|reading| reading.monitor.id).collect::<Vec<_>>(),
            ["hedge"]
        );
    }

    #[test]
    fn no_monitor_grows_with_the_run() {
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
