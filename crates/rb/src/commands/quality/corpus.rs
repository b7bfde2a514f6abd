//! Converts recorded runs to labelled runs: set, task, outcome, labelled steps.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use rayon::prelude::*;
use rb_quality::corpus::{LabelledRun, LabelledStep, Outcome, OwnedStep, Task};
use rb_wire::model::{Run, RunInput, RunStep};
use rb_wire::transcripts::Diagnostic;
use serde_json::Value;

use crate::input::{Batch, Chunk, Diagnostics, Reading};
use crate::ui::{Out, counted};

/// Runs that could be read.
#[derive(Debug, Default)]
pub(super) struct Corpus {
    pub(super) runs: Vec<LabelledRun>,
    /// Runs without a step.
    pub(super) empty_runs: u64,
    /// Number of runs per outcome other than `success` and `failure`.
    other_outcomes: BTreeMap<String, u64>,
    /// First file of each set name; another file with the same name is a set named by its path.
    sets: BTreeMap<String, String>,
}

/// Reads all paths. The flag is true if input was lost.
pub(super) fn read(paths: &[PathBuf], out: &mut Out) -> anyhow::Result<(Corpus, bool)> {
    let mut corpus = Corpus::default();
    let mut reading = Reading::start(paths, out)?;
    reading.each(out, |batch, diagnostics, out| {
        corpus.take(batch, diagnostics, out);
        io::Result::Ok(())
    })?;
    let lost = reading.diagnostics.any_loss();
    reading.finish()?;
    for (word, runs) in &corpus.other_outcomes {
        out.warning(&format!(
            "the outcome `{word}` of {} is neither `success` nor `failure` and counts as unknown",
            counted(*runs, "run")
        ));
    }
    Ok((corpus, lost))
}

/// Labelled runs of a chunk with their unknown outcomes, and the chunk's diagnostics.
type Parsed = (Vec<(LabelledRun, Option<String>)>, Vec<Diagnostic>);

impl Corpus {
    fn take(&mut self, batch: &Batch, diagnostics: &mut Diagnostics, out: &mut Out) {
        let parse = |chunk: &Chunk| -> Parsed {
            let (runs, diagnostics) = (chunk.importer.parse)(batch.bytes(chunk));
            let count = runs.len();
            let runs = runs.into_iter().enumerate();
            (
                runs.map(|(at, run)| labelled(run, || chunk.location(at, count))).collect(),
                diagnostics,
            )
        };
        let parsed: Vec<Parsed> = batch.chunks.par_iter().map(parse).collect();
        for (chunk, (runs, found)) in batch.chunks.iter().zip(parsed) {
            diagnostics.report_chunk(chunk, &found, out);
            for (run, other_outcome) in runs {
                if let Some(word) = other_outcome {
                    *self.other_outcomes.entry(word).or_default() += 1;
                }
                self.push(run, chunk);
            }
        }
    }

    fn push(&mut self, mut run: LabelledRun, chunk: &Chunk) {
        if run.steps.is_empty() {
            self.empty_runs += 1;
            return;
        }
        let (stem, file) = (chunk.source.stem(), &chunk.source.name);
        let first = self.sets.entry(stem.to_owned()).or_insert_with(|| file.clone());
        run.set = if first == file { stem.to_owned() } else { file.clone() };
        self.runs.push(run);
    }
}

/// Converts a run, and returns its outcome if it is unknown.
fn labelled(run: Run<'_>, fallback_id: impl FnOnce() -> String) -> (LabelledRun, Option<String>) {
    let id = run.run_id.map_or_else(fallback_id, std::borrow::Cow::into_owned);
    let text = run.task.unwrap_or_default().into_owned();
    let (outcome, other_outcome) = match run.outcome.as_deref() {
        Some("success") => (Some(Outcome::Success), None),
        Some("failure") => (Some(Outcome::Failure), None),
        None => (None, None),
        Some(other) => (None, Some(other.to_owned())),
    };
    let labelled = LabelledRun {
        // A run without a task is a task of its own.
        task: Task { key: if text.trim().is_empty() { id.clone() } else { text.clone() }, text },
        id,
        set: String::new(),
        outcome,
        labelled_steps: run.labels.as_deref().map(labels).unwrap_or_default(),
        steps: run.steps.into_iter().map(step).collect(),
        agent: run.agent.unwrap_or_default().into_owned(),
        model: run.model.unwrap_or_default().into_owned(),
    };
    (labelled, other_outcome)
}

fn step(step: RunStep<'_>) -> OwnedStep {
    let (input, input_is_text) = match step.input {
        RunInput::None => (String::new(), false),
        RunInput::Text(text) => (text.into_owned(), true),
        RunInput::Structured(json) => (json.into_owned(), false),
    };
    OwnedStep {
        thought: step.thought.into_owned(),
        tool: step.tool.into_owned(),
        input,
        input_is_text,
        observation: step.observation.into_owned(),
        is_error: step.is_error,
        user_input: step.user_input.into_owned(),
    }
}

/// Parses labelled steps in all known formats.
fn labels(json: &str) -> Vec<LabelledStep> {
    let labels: Value = serde_json::from_str(json).unwrap_or_default();
    let lists = [&labels["labelled_steps"], &labels["errors"]];
    let listed = lists.into_iter().filter_map(Value::as_array).flatten();
    let mut found: Vec<LabelledStep> = listed.filter_map(label).collect();
    found.extend(
        index(&labels["mistake_step"])
            .map(|index| LabelledStep { index, category: "mistake".to_owned() }),
    );
    found
}

/// Parses a number or an object with `step_index`.
fn label(value: &Value) -> Option<LabelledStep> {
    let category = value["category"].as_str().unwrap_or("mistake").to_owned();
    let index = index(value).or_else(|| index(&value["step_index"]))?;
    Some(LabelledStep { index, category })
}

/// Parses a step index, which may be a string.
fn index(value: &Value) -> Option<usize> {
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
    usize::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_in_any_form() {
        for (json, expected) in [
            ("{}", ""),
            ("null", ""),
            ("[1]", ""),
            (r#"{"mistake_step": 4}"#, "4 mistake"),
            (r#"{"mistake_step": "4"}"#, "4 mistake"),
            (r#"{"mistake_step": -1}"#, ""),
            (
                r#"{"errors": [{"step_index": 2, "category": "Goal Deviation"}, {"category": "x"}]}"#,
                "2 Goal Deviation",
            ),
            (
                r#"{"labelled_steps": [3, {"step_index": 5, "category": "loop"}], "mistake_step": 0}"#,
                "3 mistake, 5 loop, 0 mistake",
            ),
        ] {
            let found: Vec<String> = labels(json)
                .iter()
                .map(|label| format!("{} {}", label.index, label.category))
                .collect();
            assert_eq!(found.join(", "), expected, "{json}");
        }
    }
}
