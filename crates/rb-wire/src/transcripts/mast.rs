//! MAST: traces of systems of several agents, marked with how they failed.
//!
//! **Shape.** A list of `{"mas_name", "llm_name", "benchmark_name", "trace_id", "trace": {"key", "index",
//! "trajectory"}, "mast_annotation": {"1.1": 0, …}}`; the set labelled by people has `annotations` and may have
//! the trace as a plain text.
//!
//! **The trajectory** is a log as each system writes it. Messages that stand in it as Python's dictionaries
//! are taken apart; otherwise a step begins at each line that names who speaks, or the whole is one step.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::labels::labels;
use super::lazy_json::Json;
use super::python_repr::{self, Said};
use super::who_and_when::spoken_step;
use super::{Importer, Unit};
use crate::model::{Run, RunStep};

pub(super) const IMPORTER: Importer = Importer {
    id: "mast",
    summary: "MAST: traces of several agents with the modes of failure marked.",
    unit: Unit::Document,
    sniff: |preview| preview.has(&["mast_annotation"]) || preview.has(&["mas_name", "trace"]),
    parse: |input| import(input, read),
};

fn read(context: &mut ImportContext<'_>) {
    for record in context.records() {
        let [agents, model, benchmark, id, trace, marks, notes] = record.fields([
            "mas_name",
            "llm_name",
            "benchmark_name",
            "trace_id",
            "trace",
            "mast_annotation",
            "annotations",
        ]);
        let Some(trace) = trace else { continue };
        let log = trace.get("trajectory").unwrap_or(trace);
        let key = trace.get("key").and_then(Json::some_text);
        let id = id.and_then(Json::name);
        let name = [agents.and_then(Json::name), id.or(key)];
        let name: Vec<Cow<'_, str>> = name.into_iter().flatten().collect();
        context.runs.push(Run {
            run_id: (!name.is_empty()).then(|| Cow::Owned(name.join("/"))),
            dataset: benchmark.and_then(Json::some_text),
            agent: agents.and_then(Json::some_text),
            model: model.and_then(Json::some_text),
            outcome: marks.and_then(failed),
            labels: labels(&[("mast_annotation", marks), ("annotations", notes)]),
            steps: log.text().map(|log| steps(&log)).unwrap_or_default(),
            ..Run::default()
        });
    }
}

/// Any mark is a failure. None is not yet a success: the marks do not say that the task was done.
fn failed(marks: Json<'_>) -> Option<Cow<'static, str>> {
    let is_marked = marks.entries().any(|(_, mark)| mark.raw() == "1" || mark.raw() == "true");
    is_marked.then_some("failure".into())
}

fn steps(log: &str) -> Vec<RunStep<'static>> {
    let mut said = python_repr::messages(log);
    if said.is_empty() {
        said = by_speaker(log);
    }
    let step = |said: Said| spoken_step(said.text.into(), said.name.as_deref());
    said.into_iter().filter(|said| !said.text.trim().is_empty()).map(step).collect()
}

/// Cuts a log where a line names who speaks: `**Name**`, `Name:`, `[Name]` or `--- Name ---` at its beginning.
fn by_speaker(log: &str) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for line in log.lines() {
        match speaker(line) {
            Some((name, rest)) => {
                all.push(Said { name: Some(name.to_owned()), text: rest.to_owned() });
            }
            None => match all.last_mut() {
                Some(said) => {
                    said.text.push('\n');
                    said.text.push_str(line);
                }
                None => all.push(Said { name: None, text: line.to_owned() }),
            },
        }
    }
    all
}

fn speaker(line: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str| {
        let letters =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_- ".contains(&byte));
        (2..40).contains(&name.len())
            && letters
            && name.starts_with(|c: char| c.is_ascii_uppercase())
    };
    let between = |open: &str, close: &str| line.strip_prefix(open)?.split_once(close);
    let found =
        between("**", "**").or_else(|| between("[", "]")).or_else(|| between("--- ", " ---"));
    let (name, rest) =
        found.or_else(|| line.split_once(':').filter(|(name, _)| !name.contains(' ')))?;
    is_name(name).then_some((name, rest.trim_start_matches([':', ' '])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_a_speaker_begin_a_step() {
        for (line, expected) in [
            ("Programmer: I write it.", Some(("Programmer", "I write it."))),
            ("**Code Reviewer**: no", Some(("Code Reviewer", "no"))),
            ("[Planner] go", Some(("Planner", "go"))),
            ("--- Tester ---", Some(("Tester", ""))),
            ("note: this", None),
            ("The answer is: 7", None),
            ("[2025-01-01 10:00] x", None),
            ("", None),
        ] {
            assert_eq!(speaker(line), expected, "{line}");
        }
    }
}
