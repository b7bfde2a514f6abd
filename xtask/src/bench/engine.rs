//! `cargo xtask bench engine`: what the n-th step of a run costs, here and in the public Python package.
//!
//! **Python** is asked for what it does about every step: `evaluate_all` over the whole run so far. **Rust** takes
//! the whole walk of the step: difficulty, state machine, monitors, gate, routing, the text for the agent, and the
//! record. Both get the same texts, and the readings after the last step are compared before a number is printed.

use std::hint::black_box;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rb_engine::guidance::{Found, Lookup};
use rb_engine::meaning::Vector;
use rb_engine::monitors::{Assessment, Panel, SuiteChoice};
use rb_engine::record::{Reply, StepRecord};
use rb_engine::rules::{Rules, RulesConfig};
use rb_engine::run::Run;
use rb_engine::step::{Input, Step};
use serde_json::{Value, json};

use super::trace::{OwnedStep, PERIOD, trace};
use crate::{out, shell, tools};

/// Lengths of the run, how often each is measured here in one round, and how often in Python.
const LENGTHS: [(usize, u32, u32); 3] = [(20, 100, 100), (200, 20, 15), (2_000, 4, 5)];

/// The lengths take turns, so that a busy moment of the machine does not fall on one of them alone.
const ROUNDS: u32 = 20;

/// The suites that are measured: a column each. The first is what Python does too.
const SUITES: [(&str, SuiteChoice); 2] =
    [("heuristic suite", SuiteChoice::Heuristic), ("both suites", SuiteChoice::Both)];

/// One suite at every length.
type Column = [Measured; LENGTHS.len()];

/// What the user asked for.
const TASK: &str = "The session handler times out under load. Find out why and fix it.";

const REFERENCE: &str = include_str!("reference.py");

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
    let steps = trace(LENGTHS.map(|(length, ..)| length).into_iter().max().unwrap_or_default());
    out::say(&format!(
        "one run of {} steps, {} bytes of text a step; each figure is a median\n",
        steps.len(),
        bytes(&steps) / steps.len().max(1)
    ));
    let python = match python(&steps) {
        Ok(python) => Some(python),
        Err(error) => {
            out::complain(&format!("without the Python package: {error:#}"));
            None
        }
    };
    if let Some(python) = &python {
        compare(&steps, python)?;
    }
    let mut columns: Vec<Column> = Vec::new();
    for (_, suite) in SUITES {
        let rules = rules(suite)?;
        let mut column = Column::default();
        for _ in 0..ROUNDS {
            for (measured, (length, repeats, _)) in column.iter_mut().zip(LENGTHS) {
                measured.measure(&steps[..length], &rules, repeats);
            }
        }
        columns.push(column);
    }
    report(&columns, python.as_ref());
    Ok(())
}

/// What one length of the run showed.
#[derive(Default)]
struct Measured {
    /// Per step, over the last [`PERIOD`] steps; one number a repetition.
    seconds: Vec<f64>,
    heap_bytes: usize,
}

impl Measured {
    /// Walks the run a few times and times its last steps.
    fn measure(&mut self, steps: &[OwnedStep], rules: &Arc<Rules>, repeats: u32) {
        let (before, timed) = steps.split_at(steps.len().saturating_sub(PERIOD));
        let timed_steps = f64::from(u32::try_from(timed.len()).unwrap_or(1));
        for _ in 0..repeats {
            let mut run = Run::new(Arc::clone(rules), TASK);
            walk(&mut run, &[]);
            for step in before {
                walk(&mut run, &[borrowed(step)]);
            }
            let begun = Instant::now();
            for step in timed {
                black_box(walk(&mut run, &[borrowed(black_box(step))]));
            }
            self.seconds.push(begun.elapsed().as_secs_f64() / timed_steps);
            self.heap_bytes = run.heap_bytes();
        }
    }

    fn seconds_per_step(&self) -> f64 {
        median(self.seconds.clone())
    }

    fn fastest(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// One step, with a pattern library that answers and knows nothing.
fn walk(run: &mut Run, new_steps: &[Step<'_>]) -> StepRecord {
    let ask = run.before_model(new_steps);
    let empty = || Lookup::Answered(Vec::new());
    let plan = run.plan(ask, Found { e1: empty(), e2: empty(), e3: empty() }, "claude-sonnet");
    run.record(plan, Reply::default())
}

fn borrowed(step: &OwnedStep) -> Step<'_> {
    Step::thought(&step.thought)
        .with_action(step.tool, Input::Text(&step.input))
        .with_observation(&step.observation)
}

/// What the monitors of the heuristic suite say after the last step.
fn readings(steps: &[OwnedStep]) -> Result<Assessment> {
    let mut panel = Panel::new(rules(SuiteChoice::Heuristic)?.as_ref(), TASK);
    Ok(steps.iter().map(|step| panel.observe(&borrowed(step))).last().unwrap_or_default())
}

fn rules(suite: SuiteChoice) -> Result<Arc<Rules>> {
    let rules = RulesConfig { suite, ..RulesConfig::default() }.check()?;
    let embedder = |text: &str| Vector::of(rb_embed::embed(text).values());
    Ok(Arc::new(rules.with_embedder(Arc::new(embedder))))
}

/// What the package in Python showed.
struct Python {
    version: String,
    seconds: Vec<f64>,
    fastest: Vec<f64>,
    scores: Vec<Vec<f64>>,
    totals: Vec<f64>,
}

fn python(steps: &[OwnedStep]) -> Result<Python> {
    let python = tools::install_reference()?;
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| {
            json!({
                "thought": step.thought, "action": step.tool,
                "action_input": step.input, "observation": step.observation,
            })
        })
        .collect();
    let lengths = LENGTHS.map(|(length, ..)| length);
    let repeats = LENGTHS.map(|(.., repeats)| repeats);
    let job = json!({ "steps": steps, "lengths": lengths, "repeats": repeats }).to_string();
    let mut child = shell::program(python)?
        .args(["-c", REFERENCE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start Python")?;
    child.stdin.take().context("an input")?.write_all(job.as_bytes())?;
    let output = child.wait_with_output()?;
    let answer: Value = serde_json::from_slice(&output.stdout).context("Python gave no answer")?;
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let answers = answer["answers"].as_array().context("answers")?;
    Ok(Python {
        version: answer["python"].as_str().unwrap_or_default().to_owned(),
        seconds: answers.iter().map(|one| median(numbers(&one["seconds"]))).collect(),
        fastest: answers
            .iter()
            .map(|one| numbers(&one["seconds"]).into_iter().fold(f64::INFINITY, f64::min))
            .collect(),
        scores: answers.iter().map(|one| numbers(&one["scores"])).collect(),
        totals: answers.iter().filter_map(|one| one["total"].as_f64()).collect(),
    })
}

/// Both must have said the same, or the comparison means nothing.
fn compare(steps: &[OwnedStep], python: &Python) -> Result<()> {
    for (at, (length, ..)) in LENGTHS.into_iter().enumerate() {
        let said = readings(&steps[..length])?;
        let ours: Vec<f64> = said.readings.iter().map(|reading| reading.score).collect();
        let theirs = python.scores.get(at);
        if theirs != Some(&ours) || python.totals.get(at) != Some(&said.composite) {
            out::complain(&format!(
                "after {length} steps Rust reads {ours:?}, Python {theirs:?}: they did not do the same work"
            ));
        }
    }
    Ok(())
}

fn report(columns: &[Column], python: Option<&Python>) {
    let Some(first) = columns.first() else { return };
    let version = python.map_or("not installed", |python| python.version.as_str());
    out::say(&format!(
        "reasonblocks 0.1.0 on Python {version}; time per step, memory of one run\n"
    ));
    let line = |cells: Vec<String>| out::say(&format!("| {} |", cells.join(" | ")));
    let mut head = vec!["at step".to_owned(), "Python".to_owned()];
    for (name, _) in SUITES {
        head.extend([format!("Rust, {name}"), "memory".to_owned()]);
    }
    head.push("ratio".to_owned());
    let rule = head.iter().map(|_| "--:".to_owned()).collect();
    line(head);
    line(rule);
    for (at, (length, ..)) in LENGTHS.into_iter().enumerate() {
        let theirs = python.and_then(|python| python.seconds.get(at).copied());
        let ratio = theirs.map(|theirs| theirs / first[at].seconds_per_step());
        let mut row = vec![whole(length), theirs.map_or("–".to_owned(), duration)];
        for measured in columns.iter().map(|column| &column[at]) {
            row.extend([duration(measured.seconds_per_step()), kilobytes(measured.heap_bytes)]);
        }
        row.push(ratio.map_or("–".to_owned(), times));
        line(row);
    }
    out::say("");
    if let Some(python) = python {
        // What a busy machine adds falls on both, but not evenly; the fastest repetition has least of it.
        for (at, (length, ..)) in LENGTHS.into_iter().enumerate() {
            let (theirs, ours) =
                (python.fastest.get(at).copied().unwrap_or(f64::NAN), first[at].fastest());
            let (length, ratio) = (whole(length), times(theirs / ours));
            let (theirs, ours) = (duration(theirs), duration(ours));
            out::say(&format!(
                "fastest at step {length}: Python {theirs}, Rust {ours}, ratio {ratio}"
            ));
        }
    }
    for ((name, _), [first, .., last]) in SUITES.iter().zip(columns) {
        let growth = last.seconds_per_step() / first.seconds_per_step();
        let calm = last.fastest() / first.fastest();
        out::say(&format!(
            "Rust, {name}: step 2,000 costs {growth:.2} times what step 20 costs (fastest: {calm:.2})"
        ));
    }
}

fn whole(number: usize) -> String {
    out::grouped(number.try_into().unwrap_or(u64::MAX))
}

fn kilobytes(bytes: usize) -> String {
    format!("{} KB", whole(bytes.div_ceil(1_000)))
}

fn bytes(steps: &[OwnedStep]) -> usize {
    steps.iter().map(|step| step.thought.len() + step.input.len() + step.observation.len()).sum()
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

fn times(ratio: f64) -> String {
    format!("{}×", out::grouped(format!("{ratio:.0}").parse().unwrap_or_default()))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
