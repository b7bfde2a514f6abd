//! Importer of MAST: traces of multi-agent systems with annotated failure modes.
//!
//! **Shape.** A list of `{"mas_name", "llm_name", "benchmark_name", "trace_id", "trace": {"key", "index",
//! "trajectory"}, "mast_annotation": {"1.1": 0, …}}`; the human-labelled set has `annotations` and may contain the
//! trace as plain text.
//!
//! **The trajectory** is a log in the format of its system. Messages in Python dictionary notation are parsed;
//! otherwise each line that names a speaker begins a step, or the whole log is one step.

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

/// Any annotated failure mode is a failure. An absence of them is not a success, because annotations do not cover
/// task completion.
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

/// Splits a log at lines that name a speaker: `**Name**`, `Name:`, `[Name]` or `--- Name ---` at the start.
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
