//! The monitors of one run, read together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{ALL, Monitor, MonitorSpec, Sign, Suite};
use crate::cues::Heard;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::rules::Rules;
use crate::scene::{Past, Scene};
use crate::score;
use crate::step::{Step, StepIndex};
use crate::text::{Folded, is_blank};
use crate::weights::Weights;

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
    /// The worse of two assessments by the same panel, monitor by monitor; the difficulty is the later one's.
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
pub struct Panel {
    slots: Vec<Slot>,
    weights: Weights,
    fire_at: Option<f64>,
    next: StepIndex,
    /// What the semantic monitors need of the past; only there when one watches.
    past: Option<Past>,
}

struct Slot {
    spec: &'static MonitorSpec,
    weight: f64,
    /// `None` once the monitor has panicked: it is retired for this run, the others go on.
    monitor: Option<Box<dyn Monitor>>,
    /// How many of its advices were shown.
    advised: u32,
}

impl Panel {
    /// Fresh monitors of the suites the rules choose. The task, as the user put it, may be empty.
    pub fn new(rules: &Rules, task: &str) -> Self {
        let config = &rules.config;
        let watching = ALL
            .iter()
            .zip(config.weights.iter())
            .filter(|(spec, _)| config.suite.includes(spec.suite));
        let slots: Vec<Slot> = watching
            .map(|(spec, weight)| Slot {
                spec,
                weight,
                monitor: Some((spec.build)(&config.monitors)),
                advised: 0,
            })
            .collect();
        let any_semantic = slots.iter().any(|slot| slot.spec.suite == Suite::Semantic);
        let past = || Past::new(Arc::clone(&rules.embedder), config.monitors.tools.clone(), task);
        let mut panel = Self {
            slots,
            weights: config.weights.clone(),
            fire_at: config.fire_threshold,
            next: StepIndex(0),
            past: None,
        };
        if any_semantic {
            panel.past = catch_unwind(AssertUnwindSafe(past)).ok();
            panel.retire_the_blind();
        }
        panel
    }

    /// Whether any monitor watches.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The rows of the monitors that watch.
    pub fn monitors(&self) -> impl Iterator<Item = &'static MonitorSpec> {
        self.slots.iter().map(|slot| slot.spec)
    }

    /// The weights in use.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Monitors that failed and are out for the rest of the run.
    pub fn retired(&self) -> impl Iterator<Item = &'static MonitorSpec> {
        self.slots.iter().filter(|slot| slot.monitor.is_none()).map(|slot| slot.spec)
    }

    /// The next step, the first one, is called by this number outside, and those after it follow.
    pub(crate) fn begins_at(&mut self, index: u32) {
        self.next = StepIndex(index);
    }

    /// Takes the next step and reads every monitor.
    pub fn observe(&mut self, step: &Step<'_>) -> Assessment {
        let thought = Folded::of(step.thought);
        let facts = Facts::of(*step, &thought);
        let at = self.next;
        self.next = StepIndex(at.0.saturating_add(1));
        let scene = self.look(step, facts.observation.heard);
        let facts = Facts { scene: scene.as_ref().zip(self.past.as_ref()), ..facts };
        let fire_at = self.fire_at;
        let read = |slot: &mut Slot| {
            let Sign { score, mut evidence } = slot.observe(at, &facts);
            if let Some(evidence) = &mut evidence {
                evidence.earlier = slot.advised;
            }
            let fired = score >= fire_at.unwrap_or(slot.spec.fire_at) && evidence.is_some();
            Reading { monitor: slot.spec, score, fired, evidence }
        };
        let readings: Vec<Reading> = self.slots.iter_mut().map(read).collect();
        let thought = facts.step.thought;
        let difficulty = (!is_blank(thought)).then(|| score::from_words(thought, &facts.thought));
        if let (Some(past), Some(scene)) = (&mut self.past, scene) {
            past.keep(at, scene);
        }
        let composite = self.composite(&readings);
        Assessment { difficulty, readings, composite }
    }

    /// Understands the step for the semantic monitors. Should that panic, they are retired together; the others go on.
    fn look(&mut self, step: &Step<'_>, heard: Heard) -> Option<Scene> {
        let past = self.past.as_mut()?;
        let looked = catch_unwind(AssertUnwindSafe(|| past.look(step, heard)));
        if looked.is_err() {
            self.past = None;
            self.retire_the_blind();
        }
        looked.ok()
    }

    /// Without an understanding of the run the semantic monitors see nothing.
    fn retire_the_blind(&mut self) {
        if self.past.is_none() {
            let semantic = self.slots.iter_mut().filter(|slot| slot.spec.suite == Suite::Semantic);
            semantic.for_each(|slot| slot.monitor = None);
        }
    }

    /// The advice of a monitor was shown: it judges what comes next afresh.
    pub(crate) fn advised(&mut self, id: &str) {
        let at = StepIndex(self.next.0.saturating_sub(1));
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.spec.id == id) {
            slot.advised = slot.advised.saturating_add(1);
            if let Some(monitor) = &mut slot.monitor {
                monitor.advised(at);
            }
        }
    }

    fn composite(&self, readings: &[Reading]) -> f64 {
        let of = |suite: Suite| -> f64 {
            let pairs =
                self.slots.iter().zip(readings).filter(|(slot, _)| slot.spec.suite == suite);
            round4(pairs.map(|(slot, reading)| slot.weight * reading.score).sum())
        };
        of(Suite::Heuristic).max(of(Suite::Semantic))
    }

    /// What the monitors keep on the heap.
    pub fn heap_bytes(&self) -> usize {
        let monitors = self.slots.iter().filter_map(|slot| slot.monitor.as_ref());
        let past = self.past.as_ref().map_or(0, Past::heap_bytes);
        past + monitors.map(|monitor| monitor.heap_bytes()).sum::<usize>()
    }
}

impl Slot {
    /// A monitor that panics costs itself, not the run: it is retired and reads zero from now on.
    fn observe(&mut self, at: StepIndex, facts: &Facts<'_>) -> Sign {
        let Some(monitor) = self.monitor.as_mut() else { return Sign::none() };
        catch_unwind(AssertUnwindSafe(|| monitor.observe(at, facts))).unwrap_or_else(|_| {
            self.monitor = None;
            Sign::none()
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
    use crate::monitors::{HEAP_BYTES_MAX, SuiteChoice};
    use crate::rules::RulesConfig;
    use crate::step::Input;

    fn heuristic() -> Rules {
        let config = RulesConfig { suite: SuiteChoice::Heuristic, ..RulesConfig::default() };
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
            fn observe(&mut self, at: StepIndex, _: &Facts<'_>) -> Sign {
                assert!(at.0 < 1, "boom");
                Sign::none()
            }
            fn heap_bytes(&self) -> usize {
                0
            }
        }
        let mut panel = Panel::new(&heuristic(), "");
        panel.slots[0].monitor = Some(Box::new(Bomb));
        let step = Step::thought("I was wrong").with_action("read", Input::None);
        for _ in 0..3 {
            panel.observe(&step);
        }
        assert_eq!(panel.retired().map(|spec| spec.id).collect::<Vec<_>>(), ["streak"]);
        let assessment = panel.observe(&step);
        assert_eq!(
            assessment.fired().map(|reading| reading.monitor.id).collect::<Vec<_>>(),
            ["hedge"]
        );
    }

    #[test]
    fn a_panicking_embedder_costs_the_semantic_suite_alone() {
        let embed = |text: &str| {
            assert!(!text.contains("boom"), "as a broken embedder would");
            crate::meaning::Vector::zero()
        };
        let rules = Rules::default().with_embedder(Arc::new(embed));
        assert_eq!(Panel::new(&rules, "a task that goes boom").retired().count(), 6);
        let mut panel = Panel::new(&rules, "");
        panel.observe(&Step::thought("all is well with this step"));
        let assessment = panel.observe(&Step::thought("I was wrong and then there was a boom"));
        assert_eq!(panel.retired().count(), 6);
        assert_eq!(
            assessment.fired().map(|reading| reading.monitor.id).collect::<Vec<_>>(),
            ["hedge"]
        );
    }

    #[test]
    fn no_monitor_grows_with_the_run() {
        let mut panel = Panel::new(&Rules::default(), "");
        for n in 0..30_000_u32 {
            let input =
                format!("src/file_{}.rs change number {n} {}", n / 2, "lorem ipsum ".repeat(3));
            let thought = format!("maybe step {n} is the one");
            let tool = if n % 3 == 0 { "run_tests".to_owned() } else { format!("edit{}", n % 40) };
            let tool = if n % 2 == 0 { "edit" } else { tool.as_str() };
            let step = Step::thought(&thought)
                .with_action(tool, Input::Text(&input))
                .with_observation("1 failed: assertion error in module");
            panel.observe(&step);
        }
        for slot in &panel.slots {
            let bytes = slot.monitor.as_ref().map_or(0, |monitor| monitor.heap_bytes());
            assert!(bytes <= HEAP_BYTES_MAX, "{} holds {bytes} bytes", slot.spec.id);
        }
        assert!(panel.heap_bytes() <= 256 * 1024, "{}", panel.heap_bytes());
    }
}
