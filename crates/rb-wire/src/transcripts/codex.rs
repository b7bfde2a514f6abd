//! Importer of Codex rollout files.
//!
//! **Shape.** One record per line: `{"timestamp", "type", "payload"}`. `session_meta` names the session,
//! `turn_context` the model; `response_item` is an item of OpenAI's Responses API; `event_msg` repeats items for
//! the terminal and is skipped except for user messages and `token_count`. Older files contain bare items, after a
//! line with `id`, `timestamp` and `instructions`.
//!
//! **Results** of the shell are JSON in a string, `{"output", "metadata": {"exit_code"}}`; only the text is kept,
//! and a non-zero exit code is an error. Newer versions put a text report before the output; it is removed because
//! its ids and times would make every result unique.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages;
use super::sniff::FilePreview;
use super::step_builder::{Answer, Event, StepBuilder, Turn};
use super::time::time_ms;
use super::usage::tokens;
use super::{DiagnosticKind, Imported, Importer, Unit};
use crate::dialects::tool_result::reported;
use crate::model::{RecordedUsage, Run};

pub(super) const IMPORTER: Importer =
    Importer { id: "codex", summary: "Codex rollout files.", unit: Unit::File, sniff, parse };

fn sniff(preview: &FilePreview<'_>) -> bool {
    let types = ["session_meta", "response_item", "event_msg", "turn_context", "compacted"];
    preview.any(|record| record.get("payload").is_some() && record.is("type", &types))
        || (preview.has(&["id", "timestamp", "instructions"]) && !preview.is_list())
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

/// State of one session during parsing.
#[derive(Default)]
struct Session<'a> {
    run: Run<'a>,
    builder: StepBuilder<'a>,
    model: Option<Cow<'a, str>>,
    /// Token usage reported before the turn that it belongs to.
    usage: RecordedUsage,
    /// User messages appear both as items with added context and as events; events take precedence.
    has_user_events: bool,
}

fn read(context: &mut ImportContext<'_>) {
    let records = context.records();
    let mut session = Session::default();
    session.run.agent = Some("codex".into());
    session.has_user_events = records
        .iter()
        .any(|record| record.at(&["payload", "type"]).is_some_and(|kind| kind.is("user_message")));
    for record in &records {
        let [kind, payload, at] = record.fields(["type", "payload", "timestamp"]);
        let at_ms = at.and_then(time_ms);
        session.run.started_ms = session.run.started_ms.or(at_ms);
        session.run.ended_ms = at_ms.or(session.run.ended_ms);
        match (kind.and_then(Json::text).as_deref(), payload) {
            (Some("session_meta"), Some(meta)) => session.named(meta),
            (Some("turn_context"), Some(context)) => {
                session.model =
                    context.get("model").and_then(Json::some_text).or(session.model.take());
            }
            (Some("response_item"), Some(item)) => session.item(item, at_ms),
            (Some("event_msg"), Some(event)) => session.event(event),
            (None, None) if record.get("instructions").is_some() || record.get("id").is_some() => {
                session.named(*record);
            }
            (Some(_), None) => session.item(*record, at_ms),
            (Some(_) | None, _) => {}
        }
    }
    if let Some(first) = records.first() {
        let lost = session.builder.lost_answers;
        if lost > 0 {
            context.report(*first, DiagnosticKind::NoCallFor { count: lost });
        }
        context.runs.push(session.builder.into_run(session.run));
    }
}

impl<'a> Session<'a> {
    fn named(&mut self, meta: Json<'a>) {
        let [id, parent, forked] = meta.fields(["id", "parent_thread_id", "forked_from_id"]);
        let id = id.and_then(Json::some_text);
        self.run.run_id = self.run.run_id.take().or(id.clone());
        self.run.session_id = self.run.session_id.take().or(id);
        self.run.parent_id =
            parent.or(forked).and_then(Json::some_text).or(self.run.parent_id.take());
    }

    fn event(&mut self, event: Json<'a>) {
        let [kind, message, info] = event.fields(["type", "message", "info"]);
        match kind.and_then(Json::text).as_deref() {
            Some("user_message") => {
                let text = message.and_then(Json::some_text);
                if let Some(text) = text {
                    self.builder.take(Event::User(text));
                }
            }
            Some("token_count") => {
                let Some(info) = info else { return };
                let [total, last] = info.fields(["total_token_usage", "last_token_usage"]);
                self.run.usage = total.map_or(self.run.usage, tokens);
                let last = last.map(tokens).unwrap_or_default();
                if self.builder.is_speaking() {
                    self.builder.spent(last, None);
                } else {
                    self.usage = last;
                }
            }
            Some(_) | None => {}
        }
    }

    fn item(&mut self, item: Json<'a>, at_ms: Option<u64>) {
        let [kind, role] = item.fields(["type", "role"]);
        let is_message = kind.is_some_and(|kind| kind.is("message"));
        let mut events = Vec::new();
        if is_message && role.is_some_and(|role| !role.is("assistant")) {
            if self.has_user_events || !role.is_some_and(|role| role.is("user")) {
                return;
            }
            messages::message(item, &mut events);
            events.retain(|event| !matches!(event, Event::User(text) if is_context(text)));
        } else {
            messages::item(item, &mut events);
        }
        for event in events {
            let begins = matches!(event, Event::Says(_) | Event::Reasons(_) | Event::Calls(_));
            if begins && !self.builder.is_speaking() {
                let usage = std::mem::take(&mut self.usage);
                let model = self.model.clone();
                self.builder.take(Event::Begin(Turn { at_ms, model, usage, ..Turn::default() }));
            }
            let event = if let Event::Answers(answer) = event {
                Event::Answers(shell_answer(answer))
            } else {
                event
            };
            self.builder.take(event);
        }
    }
}

/// Returns `true` for environment context that Codex adds to the conversation.
fn is_context(text: &str) -> bool {
    ["<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md"]
        .iter()
        .any(|mark| text.trim_start().starts_with(mark))
}

fn shell_answer(answer: Answer<'_>) -> Answer<'_> {
    if let Some(json) = Json::first(&answer.text).filter(|json| json.is_object()) {
        let code = json.at(&["metadata", "exit_code"]).and_then(Json::number);
        if let (Some(output), Some(code)) = (json.get("output").and_then(Json::text), code) {
            let text = Cow::Owned(output.into_owned());
            return Answer { text, is_error: code != 0.0, ..answer };
        }
    }
    // Newer versions put the output after a text report that differs in every call.
    if let Some((output, failed)) = reported(&answer.text) {
        return Answer { text: Cow::Owned(output), is_error: failed || answer.is_error, ..answer };
    }
    // A truncated report still contains the exit code.
    let code = answer.text.lines().take(4).find_map(|line| {
        line.strip_prefix("Exit code: ").or_else(|| line.strip_prefix("Process exited with code "))
    });
    let is_error = code.is_some_and(|code| code.trim() != "0") || answer.is_error;
    Answer { is_error, ..answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the observation of a step for each report of a command.
    fn check(reports: &[&str], shown: &str, is_error: bool) {
        for report in reports {
            let call = r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"make\"}","call_id":"c"}}"#;
            let output = serde_json::to_string(report).expect("a string");
            let answer = format!(
                r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c","output":{output}}}}}"#
            );
            let file = format!("{call}\n{answer}\n");
            let (runs, diagnostics) = parse(file.as_bytes());
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            let step = &runs[0].steps[0];
            assert_eq!((&*step.observation, step.is_error), (shown, is_error), "{report}");
        }
    }

    #[test]
    fn the_same_output_looks_the_same_whatever_its_report_says() {
        check(
            &[
                "Chunk ID: a3f87c\nWall time: 0.0512 seconds\nProcess exited with code 2\nOriginal token count: 3\nOutput:\nno rule\n",
                "Chunk ID: 09be11\nWall time: 1.2040 seconds\nProcess exited with code 2\nOriginal token count: 3\nOutput:\nno rule\n",
                "Exit code: 2\nWall time: 3 seconds\nTotal output lines: 1\nOutput:\nno rule\n",
                r#"{"output":"no rule\n","metadata":{"exit_code":2,"duration_seconds":0.1}}"#,
            ],
            "no rule\n",
            true,
        );
    }

    #[test]
    fn what_is_no_report_stays_as_it_is() {
        check(&["Output:\nmine"], "Output:\nmine", false);
        check(&["Exit code: 1\ncut"], "Exit code: 1\ncut", true);
    }
}
