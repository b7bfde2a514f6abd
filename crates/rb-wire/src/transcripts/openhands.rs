//! Importer of OpenHands events, as a list, as lines, or as the `history` of an evaluation.
//!
//! **Shape.** An action is `{"id", "source", "action": "run", "args": {…, "thought"}, "tool_call_metadata"}`; an
//! observation is `{"cause", "observation": "run", "content", "extras"}` and refers to its action. The newer SDK
//! writes `{"kind": "ActionEvent", "tool_name", "tool_call_id", "action", "thought"}` and similar events.
//!
//! **An evaluation** contains one run per line: `{"instance_id", "instruction", "metadata", "history", "metrics",
//! "test_result" or "report"}`. Older ones store the history as pairs of an action and its observation.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages::{self, flat, truth};
use super::sniff::FilePreview;
use super::step_builder::{Answer, Call, Event, StepBuilder, Turn};
use super::time::time_ms;
use super::usage::tokens;
use super::{DiagnosticKind, Imported, Importer, Unit};
use crate::model::{Run, RunInput};

pub(super) const EVENTS: Importer = Importer {
    id: "openhands",
    summary: "OpenHands events: a list, or one a line.",
    unit: Unit::File,
    sniff: sniff_events,
    parse: parse_events,
};

pub(super) const EVALUATION: Importer = Importer {
    id: "openhands-eval",
    summary: "Output of OpenHands evaluations, one run a line.",
    unit: Unit::Document,
    sniff: sniff_evaluation,
    parse: parse_evaluation,
};

fn sniff_events(preview: &FilePreview<'_>) -> bool {
    preview.any(|record| {
        let is_event =
            ["action", "observation", "kind"].iter().any(|key| record.get(key).is_some());
        (is_event && record.is("source", &["agent", "user", "environment"]))
            || record
                .get("trajectory")
                .is_some_and(|list| list.items().any(|event| event.get("source").is_some()))
    })
}

fn sniff_evaluation(preview: &FilePreview<'_>) -> bool {
    preview.any(|record| {
        record.get("instance_id").is_some()
            && record.get("history").or(record.get("metadata")).is_some()
            && ["test_result", "instruction", "report", "metrics"]
                .iter()
                .any(|key| record.get(key).is_some())
    })
}

fn parse_events(input: &[u8]) -> Imported<'_> {
    import(input, |context| {
        let records = context.records();
        let Some(first) = records.first() else { return };
        let inner = records
            .iter()
            .flat_map(|record| record.get("trajectory").into_iter().flat_map(Json::items));
        let mut builder = StepBuilder::default();
        let mut run = Run { agent: Some("openhands".into()), ..Run::default() };
        for event in records.iter().copied().chain(inner) {
            happened(event, &mut run, &mut builder);
        }
        if builder.lost_answers > 0 {
            context.report(*first, DiagnosticKind::NoCallFor { count: builder.lost_answers });
        }
        context.runs.push(builder.into_run(run));
    })
}

fn parse_evaluation(input: &[u8]) -> Imported<'_> {
    import(input, evaluated)
}

fn evaluated(context: &mut ImportContext<'_>) {
    for record in context.records() {
        let [instance, instruction, metadata, history, metrics, test_result, report, error] =
            record.fields([
                "instance_id",
                "instruction",
                "metadata",
                "history",
                "metrics",
                "test_result",
                "report",
                "error",
            ]);
        let about = |path: &[&str]| {
            metadata.and_then(|metadata| metadata.at(path)).and_then(Json::some_text)
        };
        let mut run = Run {
            run_id: instance.and_then(Json::some_text),
            task: instruction.and_then(Json::some_text),
            agent: about(&["agent_class"]).or(Some("openhands".into())),
            model: about(&["llm_config", "model"]),
            dataset: about(&["dataset"]),
            ..Run::default()
        };
        let resolved = [report, test_result]
            .into_iter()
            .flatten()
            .find_map(|it| it.get("resolved").or_else(|| it.at(&["report", "resolved"]))?.truth());
        let failed = error.and_then(Json::some_text).map(|_| "error".into());
        run.outcome = resolved.map(|it| if it { "success" } else { "failure" }.into()).or(failed);
        let mut builder = StepBuilder::default();
        for event in history.into_iter().flat_map(Json::items) {
            let pair = event.items().filter(|inner| inner.is_object());
            pair.chain(Some(event).filter(|event| event.is_object()))
                .for_each(|event| happened(event, &mut run, &mut builder));
        }
        if let Some(metrics) = metrics {
            run.cost_usd = metrics.get("accumulated_cost").and_then(Json::number);
            run.usage = metrics.get("accumulated_token_usage").map(tokens).unwrap_or_default();
        }
        context.runs.push(builder.into_run(run));
    }
}

fn happened<'a>(event: Json<'a>, run: &mut Run<'a>, builder: &mut StepBuilder<'a>) {
    let [action, observation, kind, source, at] =
        event.fields(["action", "observation", "kind", "source", "timestamp"]);
    if !event.is_whole() {
        // A truncated event may lack its tool call id, which is written after the action.
        return;
    }
    let at_ms = at.and_then(time_ms);
    run.started_ms = run.started_ms.or(at_ms);
    run.ended_ms = at_ms.or(run.ended_ms);
    let is_user = source.is_some_and(|source| source.is("user"));
    if let Some(kind) = kind.and_then(Json::text) {
        return newer(event, &kind, at_ms, builder);
    }
    if let Some(action) = action.and_then(Json::text) {
        acted(event, action, is_user, at_ms, builder);
    } else if let Some(observation) = observation.and_then(Json::text) {
        observed(event, &observation, builder);
    }
}

fn acted<'a>(
    event: Json<'a>,
    action: Cow<'a, str>,
    is_user: bool,
    at_ms: Option<u64>,
    builder: &mut StepBuilder<'a>,
) {
    let [id, args, called] = event.fields(["id", "args", "tool_call_metadata"]);
    let arg = |key: &str| args.and_then(|args| args.get(key));
    let content = || arg("content").map(flat).unwrap_or_default();
    let mut begin = || {
        let response = called.and_then(|called| called.get("model_response"));
        let of_response = |key: &str| response.and_then(|response| response.get(key));
        builder.take(Event::Begin(Turn {
            id: of_response("id").and_then(Json::some_text),
            at_ms,
            model: of_response("model").and_then(Json::some_text),
            usage: of_response("usage").map(tokens).unwrap_or_default(),
            ..Turn::default()
        }));
    };
    match action.as_ref() {
        "message" if is_user => builder.take(Event::User(content())),
        "message" => {
            begin();
            builder.take(Event::Says(content()));
        }
        // Internal events of OpenHands.
        "system" | "change_agent_state" | "recall" | "null" | "pause" | "resume"
        | "condensation" => {}
        _ if is_user => {}
        _ => {
            begin();
            let thought = arg("thought").map(flat).filter(|thought| !thought.trim().is_empty());
            builder.take(Event::Says(thought.unwrap_or_default()));
            let name =
                called.and_then(|called| called.get("function_name")).and_then(Json::some_text);
            let input = args.map(|args| argument(&action, args)).unwrap_or_default();
            let id = id.and_then(Json::name);
            builder.take(Event::Calls(Call { id, tool: name.unwrap_or(action), input }));
        }
    }
}

/// Returns the tool argument without the fields that the program adds.
fn argument<'a>(action: &str, args: Json<'a>) -> RunInput<'a> {
    const NATIVE: [&str; 10] = [
        "thought",
        "hidden",
        "confirmation_state",
        "security_risk",
        "is_input",
        "blocking",
        "keep_prompt",
        "is_static",
        "cwd",
        "impl_source",
    ];
    let plain = match action {
        "run" => args.get("command"),
        "run_ipython" => args.get("code"),
        "browse" => args.get("url"),
        _ => None,
    };
    if let Some(text) = plain.and_then(Json::text) {
        return RunInput::Text(text);
    }
    let kept = args.entries().filter(|(key, value)| !NATIVE.contains(key) && !value.is_null());
    let kept: Vec<String> =
        kept.map(|(key, value)| format!("\"{key}\": {}", value.raw())).collect();
    RunInput::Structured(Cow::Owned(format!("{{{}}}", kept.join(", "))))
}

fn observed<'a>(event: Json<'a>, observation: &str, builder: &mut StepBuilder<'a>) {
    let [cause, content, success] = event.fields(["cause", "content", "success"]);
    if matches!(observation, "agent_state_changed" | "null" | "recall" | "condense") {
        return;
    }
    let code = event
        .at(&["extras", "metadata", "exit_code"])
        .or_else(|| event.at(&["extras", "exit_code"]));
    let is_error = observation == "error"
        || success.and_then(Json::truth) == Some(false)
        || code.and_then(Json::number).is_some_and(|code| code > 0.0);
    let text = content.map(flat).unwrap_or_default();
    let answer = Answer { id: cause.and_then(Json::name), tool: None, text, is_error };
    // Errors and notes may have no matching call.
    if answer.id.is_some() {
        builder.take(Event::Answers(answer));
    } else {
        builder.remark(answer.text);
    }
}

/// Reads an event of the newer SDK.
fn newer<'a>(event: Json<'a>, kind: &str, at_ms: Option<u64>, builder: &mut StepBuilder<'a>) {
    let [call_id, tool, response_id] =
        event.fields(["tool_call_id", "tool_name", "llm_response_id"]);
    let id = call_id.and_then(Json::name);
    match kind {
        "MessageEvent" => {
            let mut events = Vec::new();
            event
                .get("llm_message")
                .into_iter()
                .for_each(|message| messages::message(message, &mut events));
            builder.take_all(events);
        }
        "ActionEvent" => {
            let [thought, reasoning, action, call] =
                event.fields(["thought", "reasoning_content", "action", "tool_call"]);
            let response = response_id.and_then(Json::some_text);
            builder.take(Event::Begin(Turn { id: response, at_ms, ..Turn::default() }));
            builder.take(Event::Reasons(reasoning.and_then(Json::text).unwrap_or_default()));
            builder.take(Event::Says(thought.map(flat).unwrap_or_default()));
            let command = action.and_then(|action| action.get("command")).and_then(Json::text);
            let input = match command {
                Some(command) => RunInput::Text(command),
                None => call
                    .map(|call| messages::tool_call(call).input)
                    .or(action.map(messages::input))
                    .unwrap_or_default(),
            };
            builder.take(Event::Calls(Call {
                id,
                tool: tool.and_then(Json::some_text).unwrap_or_default(),
                input,
            }));
        }
        "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent" => {
            let [observation, error, rejection] =
                event.fields(["observation", "error", "rejection_reason"]);
            let content = observation.and_then(|it| it.get("content").or(it.get("output")));
            let [is_error, code] =
                observation.map(|it| it.fields(["is_error", "exit_code"])).unwrap_or_default();
            let text =
                content.or(error).or(rejection).or(observation).map(flat).unwrap_or_default();
            let is_error = truth(is_error)
                || error.is_some()
                || code.and_then(Json::number).is_some_and(|code| code > 0.0);
            builder.take(Event::Answers(Answer { id, tool: None, text, is_error }));
        }
        _ => {}
    }
}
