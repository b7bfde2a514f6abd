//! The public Python package in a process of its own, which is asked whenever it is its turn.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::trace::OwnedStep;
use crate::{shell, tools};

const REFERENCE: &str = include_str!("reference.py");

/// The package, with the steps of one run.
pub(super) struct Python {
    child: Child,
    /// Gone when nothing more is asked.
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// What one call of the package showed.
pub(super) struct Answer {
    /// The version of Python.
    pub(super) version: String,
    pub(super) seconds: f64,
    pub(super) scores: Vec<f64>,
    pub(super) total: f64,
}

impl Python {
    pub(super) fn start(steps: &[OwnedStep]) -> Result<Self> {
        let python = tools::REFERENCE.install()?;
        let mut child = shell::program(python)?
            .args(["-c", REFERENCE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start Python")?;
        let mut ask = child.stdin.take().context("an input")?;
        let answers = BufReader::new(child.stdout.take().context("an output")?);
        let steps: Value = steps
            .iter()
            .map(|step| {
                json!({
                    "thought": step.thought, "action": step.tool,
                    "action_input": step.input, "observation": step.observation,
                })
            })
            .collect();
        writeln!(ask, "{steps}")?;
        Ok(Self { child, ask: Some(ask), answers })
    }

    /// One call on the first `length` steps.
    pub(super) fn evaluate(&mut self, length: usize) -> Result<Answer> {
        writeln!(self.ask.as_ref().context("an input")?, "{length}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).context("Python gave no answer")?;
        let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name}"));
        let scores = answer["scores"].as_array().into_iter().flatten();
        Ok(Answer {
            version: answer["python"].as_str().unwrap_or_default().to_owned(),
            seconds: number("seconds")?,
            scores: scores.filter_map(Value::as_f64).collect(),
            total: number("total")?,
        })
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        self.ask = None; // with the end of its input it ends by itself
        if let Err(error) = self.child.wait() {
            crate::out::complain(&format!("Python did not end well: {error}"));
        }
    }
}
