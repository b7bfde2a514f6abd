//! Measures the monitors on files of labelled runs, one JSON object a line.
//!
//! `cargo run --release -p rb-quality --example measure -- [OPTION…] DATA.jsonl…`
//!
//! `--full` shows single monitors and ways of planting; `--html FILE` and `--json FILE` write the report;
//! `--seed N`, `--plants N` and `--alarms N` set the seed, the plants a kind and set, and the alarms shown;
//! `--show N` prints the first N plants of every kind and set instead, to be read. Texts come from the dev
//! part only, unless `--show-held-out` is given.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its terminal")]

use std::error::Error;
use std::fs;
use std::sync::Arc;

use rb_engine::meaning::Vector;
use rb_engine::monitors::SuiteChoice;
use rb_engine::rules::{Rules, RulesConfig, RulesError};
use rb_quality::corpus::{LabelledRun, LabelledStep, Outcome, OwnedStep, Split, Task};
use rb_quality::judge::{Judge, StepCount, SuiteJudge};
use rb_quality::measure::{Options, measure};
use rb_quality::report::table::{Detail, table};
use rb_quality::report::{html, json};
use rb_quality::splice::{Spliced, splice_all};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut runs = Vec::new();
    let mut detail = Detail::Short;
    let (mut page, mut data) = (None, None);
    let mut show = None;
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--full" => detail = Detail::Full,
            "--html" => page = args.next(),
            "--json" => data = args.next(),
            "--seed" => options.seed = args.next().unwrap_or_default().parse()?,
            "--plants" => options.plants_max = args.next().unwrap_or_default().parse()?,
            "--alarms" => options.false_alarms_max = args.next().unwrap_or_default().parse()?,
            "--show" => show = Some(args.next().unwrap_or_default().parse()?),
            "--show-held-out" => options.shown = Split::All,
            path => {
                let before = runs.len();
                for line in fs::read_to_string(path)?.lines() {
                    runs.push(run(&serde_json::from_str(line)?));
                }
                eprintln!("{path}: {} runs", runs.len() - before);
            }
        }
    }
    if let Some(count) = show {
        let plants = splice_all(&runs, count, options.seed);
        plants.iter().filter(|plant| options.shown.holds(&plant.run)).for_each(print_plant);
        return Ok(());
    }
    let rules = |suite| -> Result<Rules, RulesError> {
        let embedder = |text: &str| Vector::of(rb_embed::embed(text).values());
        Ok(RulesConfig { suite, ..RulesConfig::default() }
            .check()?
            .with_embedder(Arc::new(embedder)))
    };
    let semantic = SuiteJudge::new(rules(SuiteChoice::Semantic)?);
    let heuristic = SuiteJudge::new(rules(SuiteChoice::Heuristic)?);
    let judges: [&dyn Judge; 3] = [&semantic, &heuristic, &StepCount];
    let report = measure(&runs, &judges, &options);
    println!("{}", table(&report, detail));
    if let Some(path) = page {
        fs::write(path, html::html(&report))?;
    }
    if let Some(path) = data {
        fs::write(path, json::json(&report)?)?;
    }
    Ok(())
}

/// The planted part, each text cut to a line.
fn print_plant(plant: &Spliced) {
    let Spliced { run, kind, variant, start, changed_from } = plant;
    println!(
        "\n# {} ({variant}) at step {start} of {}: {} {}",
        kind.plural(),
        run.steps.len(),
        run.set,
        run.id
    );
    let line = |text: &str| text.replace('\n', "⏎").chars().take(160).collect::<String>();
    for (at, step) in run.steps.iter().enumerate().skip(*changed_from).take(7) {
        println!("{at:3} {}", line(&step.thought));
        println!("    > {} {}", step.tool, line(&step.input));
        println!("    < {}", line(&step.observation));
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    }
}

fn run(value: &Value) -> LabelledRun {
    let empty = Vec::new();
    let steps = value["steps"].as_array().unwrap_or(&empty);
    let task = text(&value["task"]);
    LabelledRun {
        id: text(&value["run_id"]),
        set: text(&value["dataset"]),
        task: Task { key: task.clone(), text: task },
        outcome: match value["outcome"].as_str() {
            Some("success") => Some(Outcome::Success),
            Some("failure") => Some(Outcome::Failure),
            _ => None,
        },
        steps: steps.iter().map(step).collect(),
        labelled_steps: labels(&value["labels"]),
        agent: text(&value["agent"]),
        model: text(&value["model"]),
    }
}

fn step(value: &Value) -> OwnedStep {
    OwnedStep {
        thought: text(&value["thought"]),
        tool: text(&value["action"]),
        input: text(&value["action_input"]),
        input_is_text: value["action_input"].is_string(),
        observation: text(&value["observation"]),
        is_error: value["is_error"].as_bool().unwrap_or(false),
        user_input: String::new(),
    }
}

fn labels(value: &Value) -> Vec<LabelledStep> {
    let at = |value: &Value| value.as_u64().and_then(|at| usize::try_from(at).ok());
    let mut found = Vec::new();
    for error in value["errors"].as_array().unwrap_or(&Vec::new()) {
        if let Some(index) = at(&error["step_index"]) {
            found.push(LabelledStep { index, category: text(&error["category"]) });
        }
    }
    if let Some(index) = at(&value["mistake_step"]) {
        found.push(LabelledStep { index, category: "mistake".to_owned() });
    }
    found
}
