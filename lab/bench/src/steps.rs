//! `cargo lab-bench steps`: time per engine step at several positions of one run, and the memory of that run.
//!
//! *Monitors* computes the heuristic scores and the difficulty, which is what `evaluate_all` of the public Python package
//! does over the whole run so far. *Decision* adds the state machine, gate, routing, guidance and record; *both suites* also
//! the semantic monitors and their embeddings. Every figure is the fastest of several rounds.

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rb_engine::analysis::embedding::Vector;
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::guidance::{Retrieved, TierResult};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::run::record::Reply;
use rb_engine::run::{MonitorSet, Run};
use rb_engine::step::{Input, Step};
use serde_json::json;

use crate::conversation::{OwnedStep, PERIOD, TALKATIVE, steps};

/// Positions in the run.
const LENGTHS: [usize; 3] = [20, 200, 2_000];
const ROUNDS: usize = 20;
const TASK: &str = "The session handler times out under load. Find out why and fix it.";
/// Reads the steps as one line and prints the seconds of one `evaluate_all` per length given as argument.
const REFERENCE: &str = include_str!("reference.py");

pub(crate) fn run() -> Result<()> {
    let all = steps(TALKATIVE, LENGTHS[2]);
    let (heuristic, both) = (engine(SuiteChoice::Heuristic)?, engine(SuiteChoice::Both)?);
    let python = reference(&all)?;
    println!(
        "| at step | Python | monitors | memory | decision | memory | decision, both suites | memory |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (at, length) in LENGTHS.into_iter().enumerate() {
        let steps = &all[..length];
        let cells =
            [monitors(steps, &heuristic), decisions(steps, &heuristic), decisions(steps, &both)];
        let cells = cells.map(|(seconds, bytes)| {
            format!("{:.1} µs | {} KB", seconds * 1e6, bytes.div_ceil(1_000))
        });
        let python =
            python.get(at).map_or("–".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3));
        println!("| {length} | {python} | {} |", cells.join(" | "));
    }
    Ok(())
}

fn engine(suite: SuiteChoice) -> Result<Arc<Engine>> {
    let engine = EngineConfig::with_policy(Policy::only(suite)).check()?;
    Ok(Arc::new(
        engine.with_embedder(Arc::new(|text: &str| Vector::of(rb_embed::embed(text).values()))),
    ))
}

/// Seconds per step over the last period, and bytes of memory of the run.
type Cell = (f64, usize);

fn monitors(steps: &[OwnedStep], engine: &Engine) -> Cell {
    fastest(
        steps,
        || MonitorSet::new(engine, TASK),
        |set, step| drop(black_box(set.observe(&step))),
        MonitorSet::heap_bytes,
    )
}

fn decisions(steps: &[OwnedStep], engine: &Arc<Engine>) -> Cell {
    fastest(
        steps,
        || Run::new(Arc::clone(engine), TASK),
        |run, step| decide(run, &step),
        Run::heap_bytes,
    )
}

/// One step of a host whose pattern library has no match.
fn decide(run: &mut Run, step: &Step<'_>) {
    let call = run.before_model(std::slice::from_ref(step));
    let none = || TierResult::Answered(Vec::new());
    let plan = run.plan(call, Retrieved { e1: none(), e2: none(), e3: none() }, "claude-sonnet");
    black_box(run.record(plan, Reply::default()));
}

/// Replays the run several times and times its last period.
fn fastest<T>(
    steps: &[OwnedStep],
    new: impl Fn() -> T,
    mut observe: impl FnMut(&mut T, Step<'_>),
    heap_bytes: impl Fn(&T) -> usize,
) -> Cell {
    let (before, timed) = steps.split_at(steps.len() - PERIOD);
    let mut best = (f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        let mut state = new();
        for step in before {
            observe(&mut state, borrowed(step));
        }
        let started = Instant::now();
        for step in timed {
            observe(&mut state, borrowed(step));
        }
        let seconds =
            started.elapsed().as_secs_f64() / f64::from(u32::try_from(PERIOD).unwrap_or(1));
        best = (best.0.min(seconds), heap_bytes(&state));
    }
    best
}

fn borrowed(step: &OwnedStep) -> Step<'_> {
    Step::thought(&step.thought)
        .with_action(step.tool, Input::Text(&step.input))
        .with_observation(&step.observation)
}

/// Seconds of `evaluate_all` of the public package at each length, if `RB_REFERENCE_PYTHON` names a Python that has it.
fn reference(steps: &[OwnedStep]) -> Result<Vec<f64>> {
    let Some(python) = std::env::var_os("RB_REFERENCE_PYTHON") else { return Ok(Vec::new()) };
    let steps: serde_json::Value = steps
        .iter()
        .map(|step| {
            json!({
                "thought": step.thought, "action": step.tool, "action_input": step.input, "observation": step.observation,
            })
        })
        .collect();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("steps.json");
    std::fs::write(&file, steps.to_string())?;
    let mut command = Command::new(python);
    command.args(["-c", REFERENCE]).arg(&file).args(LENGTHS.map(|length| length.to_string()));
    let output = command.stderr(Stdio::inherit()).output().context("cannot start Python")?;
    ensure!(output.status.success(), "the reference measurement failed: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| line.parse().context("Python printed no number")).collect()
}
