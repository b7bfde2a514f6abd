//! `cargo xtask bench engine`: what the n-th step of a run costs, here and in the public Python package.
//!
//! **Python** is asked for what it does on every step: `evaluate_all` over the whole run so far. **Rust** takes
//! the step's difficulty, moves the state machine and reads every monitor of the suite. Both get the same texts,
//! and the readings after the last step are compared before any number is printed.

use std::hint::black_box;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rb_engine::fsm::{Fsm, Limits};
use rb_engine::monitors::{Assessment, MonitorSettings, Panel, SuiteChoice};
use rb_engine::score::difficulty;
use rb_engine::step::{Input, Step};
use rb_engine::weights::Weights;
use serde_json::{Value, json};

use super::trace::{OwnedStep, PERIOD, trace};
use crate::{out, shell, tools};

/// Lengths of the run, how often each is measured here, and how often in Python.
const LENGTHS: [(usize, u32, u32); 3] = [(20, 2_000, 200), (200, 300, 15), (2_000, 60, 5)];

/// The suites that are measured: a column each.
const SUITES: [(&str, SuiteChoice); 1] = [("heuristic", SuiteChoice::Heuristic)];

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
    for (name, choice) in SUITES {
        let rust = LENGTHS.map(|(length, repeats, _)| measure(&steps[..length], choice, repeats));
        if choice == SuiteChoice::Heuristic
            && let Some(python) = &python
        {
            compare(&rust, python);
        }
        report(name, &rust, python.as_ref());
    }
    Ok(())
}

/// What one length of the run showed.
struct Measured {
    /// Median over the repetitions, of the last [`PERIOD`] steps.
    seconds_per_step: f64,
    heap_bytes: usize,
    last: Assessment,
}

/// Walks the run many times and times its last steps.
fn measure(steps: &[OwnedStep], choice: SuiteChoice, repeats: u32) -> Measured {
    let (before, timed) = steps.split_at(steps.len().saturating_sub(PERIOD));
    let mut seconds = Vec::new();
    let (mut heap_bytes, mut last) = (0, Assessment::default());
    for _ in 0..repeats {
        let mut panel = Panel::new(choice, &MonitorSettings::default(), Weights::default(), None);
        let mut fsm = Fsm::new(Limits::default());
        for step in before {
            black_box(take(step, &mut fsm, &mut panel));
        }
        let begun = Instant::now();
        for step in timed {
            last = black_box(take(step, &mut fsm, &mut panel));
        }
        seconds.push(
            begun.elapsed().as_secs_f64() / f64::from(u32::try_from(timed.len()).unwrap_or(1)),
        );
        heap_bytes = panel.heap_bytes();
    }
    Measured { seconds_per_step: median(seconds), heap_bytes, last }
}

fn take(step: &OwnedStep, fsm: &mut Fsm, panel: &mut Panel) -> Assessment {
    let step = black_box(step);
    fsm.advance(difficulty(&step.thought));
    panel.observe(
        &Step::thought(&step.thought)
            .with_action(step.tool, Input::Text(&step.input))
            .with_observation(&step.observation),
    )
}

/// What the package in Python showed.
struct Python {
    version: String,
    seconds: Vec<f64>,
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
        scores: answers.iter().map(|one| numbers(&one["scores"])).collect(),
        totals: answers.iter().filter_map(|one| one["total"].as_f64()).collect(),
    })
}

/// Both must have said the same, or the comparison means nothing.
fn compare(rust: &[Measured], python: &Python) {
    for (at, measured) in rust.iter().enumerate() {
        let ours: Vec<f64> = measured.last.readings.iter().map(|reading| reading.score).collect();
        let same = python.scores.get(at) == Some(&ours)
            && python.totals.get(at) == Some(&measured.last.composite);
        if !same {
            out::complain(&format!(
                "after {} steps Rust reads {ours:?}, Python {:?}: they did not do the same work",
                LENGTHS[at].0,
                python.scores.get(at)
            ));
        }
    }
}

fn report(suite: &str, rust: &[Measured], python: Option<&Python>) {
    let version = python.map_or("not installed", |python| python.version.as_str());
    out::say(&format!("suite `{suite}`; reasonblocks 0.1.0 on Python {version}\n"));
    out::say("| at step | Python, per step | Rust, per step | ratio | held by the monitors |");
    out::say("|--:|--:|--:|--:|--:|");
    for (at, (measured, (length, ..))) in rust.iter().zip(LENGTHS).enumerate() {
        let ours = measured.seconds_per_step;
        let theirs = python.and_then(|python| python.seconds.get(at).copied());
        let heap = out::grouped(measured.heap_bytes.try_into().unwrap_or(u64::MAX));
        out::say(&format!(
            "| {} | {} | {} | {} | {heap} bytes |",
            out::grouped(length.try_into().unwrap_or(u64::MAX)),
            theirs.map_or("–".to_owned(), duration),
            duration(ours),
            theirs.map_or("–".to_owned(), |theirs| times(theirs / ours)),
        ));
    }
    if let [first, .., last] = rust {
        let growth = last.seconds_per_step / first.seconds_per_step;
        out::say(&format!("\nRust at step 2,000 against step 20: {growth:.2} times"));
    }
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
