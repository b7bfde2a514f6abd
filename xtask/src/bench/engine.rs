//! `cargo xtask bench engine`: what the n-th step of a run costs, here and in the public Python package.
//!
//! **Python** is asked for what it does about every step: `evaluate_all` over the whole run so far. Rust is measured
//! three times. **Monitors** does what Python does, the readings of the same six monitors, and the difficulty besides:
//! that is like with like. **Walk** is everything that happens about a step: also the state machine, the gate, routing,
//! the text for the agent and the record. **Both suites** is the walk with the semantic monitors and their embeddings.
//!
//! All get the same texts, and what Python and Rust read after the last step is compared before a number is printed.
//! They take turns, length by length and round by round, and every figure is the fastest of its rounds: what else runs
//! on the machine can only add.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use rb_engine::analysis::embedding::Vector;
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::guidance::{Retrieved, TierResult};
use rb_engine::monitors::SuiteChoice;
use rb_engine::run::Run;
use rb_engine::run::record::{Reply, StepRecord};
use rb_engine::run::{Assessment, MonitorSet};
use rb_engine::step::{Input, Step};

use super::python::{Answer, Python};
use super::report;
use super::trace::{Mix, OwnedStep, PERIOD, trace};
use crate::{out, shell};

/// Lengths of the run, and how often each is walked here in one round.
pub(super) const LENGTHS: [(usize, u32); 3] = [(20, 40), (200, 10), (2_000, 2)];

const ROUNDS: u32 = 10;

/// One way of measuring Rust.
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Python does the same, or less is done there.
    pub(super) is_compared: bool,
    suite: SuiteChoice,
    walks: bool,
}

pub(super) const COLUMNS: [Column; 3] = [
    Column { name: "monitors", is_compared: true, suite: SuiteChoice::Heuristic, walks: false },
    Column { name: "walk", is_compared: true, suite: SuiteChoice::Heuristic, walks: true },
    Column { name: "walk, both suites", is_compared: false, suite: SuiteChoice::Both, walks: true },
];

/// What one length of the run showed.
#[derive(Default)]
pub(super) struct Row {
    /// Seconds per step, where there is a Python package.
    pub(super) python: Option<f64>,
    pub(super) cells: [Cell; COLUMNS.len()],
}

/// What one column showed at one length.
pub(super) struct Cell {
    /// Per step, over the last [`PERIOD`] steps.
    pub(super) seconds: f64,
    pub(super) heap_bytes: usize,
}

impl Default for Cell {
    fn default() -> Self {
        Self { seconds: f64::INFINITY, heap_bytes: 0 }
    }
}

/// What the user asked for.
const TASK: &str = "The session handler times out under load. Find out why and fix it.";

pub(crate) fn run() -> Result<()> {
    if cfg!(debug_assertions) {
        return shell::run(&mut shell::cargo(&[
            "run",
            "--quiet",
            "--release",
            "--package",
            "xtask",
            "--",
            "bench",
            "engine",
        ])?);
    }
    let mut rules = Vec::new();
    for column in &COLUMNS {
        rules.push(rules_for(column.suite)?);
    }
    for mix in Mix::ALL {
        measure(mix, &rules)?;
    }
    Ok(())
}

fn measure(mix: Mix, rules: &[Arc<Engine>]) -> Result<()> {
    let steps = trace(mix, LENGTHS.map(|(length, _)| length).into_iter().max().unwrap_or_default());
    let mut python = match Python::start(&steps) {
        Ok(python) => Some(python),
        Err(error) => {
            out::complain(&format!("without the Python package: {error:#}"));
            None
        }
    };
    introduce(mix, &steps);
    if let Some(python) = &mut python {
        compare(&steps, python)?;
    }
    let mut rows: [Row; LENGTHS.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (row, (length, repeats)) in rows.iter_mut().zip(LENGTHS) {
            if let Some(python) = &mut python {
                let seconds = python.evaluate(length)?.seconds;
                row.python = Some(row.python.map_or(seconds, |fastest| fastest.min(seconds)));
            }
            for ((cell, column), rules) in row.cells.iter_mut().zip(&COLUMNS).zip(rules) {
                for _ in 0..repeats {
                    cell.measure(&steps[..length], rules, column.walks);
                }
            }
        }
    }
    report::table(&rows);
    report::growth(&rows);
    for (column, rules) in COLUMNS.iter().zip(rules).filter(|(column, _)| column.walks) {
        report::spread(column.name, single_steps(&steps, rules));
    }
    out::say("");
    Ok(())
}

fn introduce(mix: Mix, steps: &[OwnedStep]) {
    let sum = |part: fn(&OwnedStep) -> usize| steps.iter().map(part).sum::<usize>();
    let thought = sum(|step| step.thought.len());
    let input = sum(|step| step.input.len());
    let observation = sum(|step| step.observation.len());
    let all = (thought + input + observation).max(1);
    out::say(&format!(
        "{} agent: {} bytes of text a step, {} % thought, {} % argument, {} % observation\n",
        mix.name(),
        report::whole(all / steps.len().max(1)),
        thought * 100 / all,
        input * 100 / all,
        observation * 100 / all,
    ));
}

impl Cell {
    /// Goes through the run and times its last steps.
    fn measure(&mut self, steps: &[OwnedStep], rules: &Arc<Engine>, walks: bool) {
        let (before, timed) = steps.split_at(steps.len().saturating_sub(PERIOD));
        let seconds = if walks {
            let mut run = begun(rules);
            for step in before {
                walk(&mut run, &[borrowed(step)]);
            }
            let seconds = time(timed, |step| walk(&mut run, &[step]));
            self.heap_bytes = run.heap_bytes();
            seconds
        } else {
            let mut panel = MonitorSet::new(rules, TASK);
            for step in before {
                panel.observe(&borrowed(step));
            }
            let seconds = time(timed, |step| panel.observe(&step));
            self.heap_bytes = panel.heap_bytes();
            seconds
        };
        self.seconds = self.seconds.min(seconds);
    }
}

/// Seconds per step.
fn time<T>(steps: &[OwnedStep], mut take: impl FnMut(Step<'_>) -> T) -> f64 {
    let begun = Instant::now();
    for step in steps {
        black_box(take(borrowed(black_box(step))));
    }
    begun.elapsed().as_secs_f64() / f64::from(u32::try_from(steps.len()).unwrap_or(1))
}

/// The seconds of every step of one run.
fn single_steps(steps: &[OwnedStep], rules: &Arc<Engine>) -> Vec<f64> {
    let mut run = begun(rules);
    let one = |step| time(std::slice::from_ref(step), |step| walk(&mut run, &[step]));
    steps.iter().map(one).collect()
}

/// A run whose first model call was made.
fn begun(rules: &Arc<Engine>) -> Run {
    let mut run = Run::new(Arc::clone(rules), TASK);
    walk(&mut run, &[]);
    run
}

/// One step, with a pattern library that answers and knows nothing.
fn walk(run: &mut Run, new_steps: &[Step<'_>]) -> StepRecord {
    let ask = run.before_model(new_steps);
    let empty = || TierResult::Answered(Vec::new());
    let plan = run.plan(ask, Retrieved { e1: empty(), e2: empty(), e3: empty() }, "claude-sonnet");
    run.record(plan, Reply::default())
}

fn borrowed(step: &OwnedStep) -> Step<'_> {
    Step::thought(&step.thought)
        .with_action(step.tool, Input::Text(&step.input))
        .with_observation(&step.observation)
}

fn rules_for(suite: SuiteChoice) -> Result<Arc<Engine>> {
    let rules = EngineConfig { suite, ..EngineConfig::default() }.check()?;
    let embedder = |text: &str| Vector::of(rb_embed::embed(text).values());
    Ok(Arc::new(rules.with_embedder(Arc::new(embedder))))
}

/// Both must have said the same, or the comparison means nothing.
fn compare(steps: &[OwnedStep], python: &mut Python) -> Result<()> {
    let mut version = String::new();
    for (length, _) in LENGTHS {
        let said = readings(&steps[..length])?;
        let ours: Vec<f64> = said.readings.iter().map(|reading| reading.score).collect();
        let Answer { scores: theirs, total, version: running, .. } = python.evaluate(length)?;
        if theirs != ours || total != said.composite {
            out::complain(&format!(
                "after {length} steps Rust reads {ours:?}, Python {theirs:?}: they did not do the same work"
            ));
        }
        version = running;
    }
    out::say(&format!(
        "reasonblocks 0.1.0 on Python {version}; time per step, the fastest of {ROUNDS} rounds; memory of one run\n"
    ));
    Ok(())
}

/// What the monitors of the heuristic suite say after the last step.
fn readings(steps: &[OwnedStep]) -> Result<Assessment> {
    let mut panel = MonitorSet::new(rules_for(SuiteChoice::Heuristic)?.as_ref(), TASK);
    Ok(steps.iter().map(|step| panel.observe(&borrowed(step))).last().unwrap_or_default())
}
