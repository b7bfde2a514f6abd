//! Importer of Who&When: failures of multi-agent systems, labelled with the responsible agent and step.
//!
//! **Shape.** One object, `{"question", "history": [{"content", "role", "name"}], "mistake_agent", "mistake_step",
//! "mistake_reason", "is_correct" or "is_corrected", …}`. Labels count messages, so every message is a step: code
//! in fences is its action, and terminal output is an observation.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::labels::labels;
use super::lazy_json::Json;
use super::messages::flat;
use super::{Importer, Unit};
use crate::code_fences::fenced;
use crate::model::{Run, RunInput, RunStep};

pub(super) const IMPORTER: Importer = Importer {
    id: "who-and-when",
    summary: "Who&When: conversations of several agents with the mistake marked.",
    unit: Unit::Document,
    sniff: |preview| {
        preview.has(&["history", "mistake_step"]) || preview.has(&["history", "question"])
    },
    parse: |input| import(input, read),
};

fn read(context: &mut ImportContext<'_>) {
    for record in context.records() {
        let [history, question, id, correct, corrected, agent, step, reason] = record.fields([
            "history",
            "question",
            "question_ID",
            "is_correct",
            "is_corrected",
            "mistake_agent",
            "mistake_step",
            "mistake_reason",
        ]);
        let is_correct = correct.or(corrected).and_then(Json::truth);
        let steps =
            history.into_iter().flat_map(Json::items).filter(|it| it.is_object() && it.is_whole());
        context.runs.push(Run {
            run_id: id.and_then(Json::name),
            dataset: Some("who-and-when".into()),
            task: question.and_then(Json::some_text),
            outcome: is_correct.map(|it| if it { "success" } else { "failure" }.into()),
            labels: labels(&[
                ("mistake_step", step),
                ("mistake_agent", agent),
                ("mistake_reason", reason),
            ]),
            steps: steps.map(message_step).collect(),
            ..Run::default()
        });
    }
}

/// Converts a message of a multi-agent conversation to a step.
fn message_step(message: Json<'_>) -> RunStep<'_> {
    let [content, name, role] = message.fields(["content", "name", "role"]);
    let text = content.map(flat).unwrap_or_default();
    let speaker = name.and_then(Json::some_text).or_else(|| role.and_then(Json::some_text));
    spoken_step(text, speaker.as_deref())
}

/// Builds the step of a message: a user message, terminal output, or agent text with optional code.
pub(super) fn spoken_step<'a>(text: Cow<'a, str>, speaker: Option<&str>) -> RunStep<'a> {
    let who = speaker.unwrap_or_default();
    if who == "human" || who == "user" {
        return RunStep { user_input: text, ..RunStep::default() };
    }
    let agent = speaker.map(|speaker| Cow::Owned(speaker.to_owned()));
    if is_terminal(who, &text) {
        let code = text.trim_start().strip_prefix("exitcode: ");
        let is_error = code.is_some_and(|code| !code.starts_with('0'));
        return RunStep { observation: text, is_error, agent, ..RunStep::default() };
    }
    let Some(found) = fenced(&text) else {
        return RunStep { thought: text, agent, ..RunStep::default() };
    };
    let language = if found.language.is_empty() { "code" } else { found.language };
    RunStep {
        thought: Cow::Owned(found.before.to_owned()),
        tool: Cow::Owned(language.to_owned()),
        input: RunInput::Text(Cow::Owned(found.code.to_owned())),
        agent,
        ..RunStep::default()
    }
}

fn is_terminal(who: &str, text: &str) -> bool {
    who.eq_ignore_ascii_case("computer_terminal")
        || who.eq_ignore_ascii_case("terminal")
        || text.trim_start().starts_with("exitcode: ")
}
