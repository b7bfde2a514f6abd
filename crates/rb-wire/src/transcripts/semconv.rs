//! Attribute names of OpenTelemetry and OpenInference for agent activity, both current and former.
//!
//! **OpenTelemetry** puts conversations into `gen_ai.input.messages` and `gen_ai.output.messages`, formerly into
//! `gen_ai.prompt` and `gen_ai.completion`; into events of the span; or, in the way of OpenLLMetry, into one
//! attribute for each piece (`gen_ai.prompt.0.content`). **OpenInference** does the last, under
//! `llm.input_messages.0.message.content`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::attributes::{Attribute, Attributes};
use super::find_messages::{self, Plain};
use super::lazy_json::Json;
use super::spans::{Kind, Span};
use super::step_builder::{Answer, Call, Event, Turn};
use crate::model::{RecordedUsage, RunInput};

/// Span event: name and attributes.
pub(super) type SpanEvent<'a> = (Cow<'a, str>, Attributes<'a>);

/// Returns `true` if a key belongs to one of the vocabularies.
pub(super) fn is_known(key: &str) -> bool {
    ["gen_ai.", "llm.", "openinference.", "traceloop."].iter().any(|prefix| key.starts_with(prefix))
}

/// Fills a span from its attributes and events.
pub(super) fn describe<'a>(
    span: &mut Span<'a>,
    attributes: &Attributes<'a>,
    events: &[SpanEvent<'a>],
) {
    span.kind = kind(attributes, &span.name);
    span.session = attributes.text(&[
        "gen_ai.conversation.id",
        "session.id",
        "traceloop.association.properties.session_id",
    ]);
    span.agent = attributes.text(&["gen_ai.agent.name", "agent.name", "agent_name"]);
    span.model = attributes.text(&[
        "gen_ai.response.model",
        "gen_ai.request.model",
        "llm.model_name",
        "llm.response.model",
    ]);
    span.usage = usage(attributes);
    span.cost_usd = attributes
        .number(&["gen_ai.usage.cost", "llm.cost.total", "operation.cost"])
        .or_else(|| {
            let part = |key: &str| attributes.number(&[key]);
            Some(part("gen_ai.usage.input_cost")? + part("gen_ai.usage.output_cost")?)
        });
    span.is_error |= attributes.first(&["error.type"]).is_some();
    match span.kind {
        Kind::Tool => tool(span, attributes),
        Kind::Model | Kind::Agent => conversation(span, attributes, events),
        Kind::Other => {}
    }
}

fn kind(attributes: &Attributes<'_>, name: &str) -> Kind {
    let word = attributes.text(&[
        "openinference.span.kind",
        "gen_ai.operation.name",
        "traceloop.span.kind",
        "langfuse.observation.type",
    ]);
    let word = word.unwrap_or_default().to_ascii_lowercase();
    let has = |prefix: &str| attributes.0.iter().any(|(key, _)| key.starts_with(prefix));
    match word.as_str() {
        "llm" | "chat" | "text_completion" | "generate_content" | "completion" | "call_llm"
        | "generation" => Kind::Model,
        "tool" | "execute_tool" => Kind::Tool,
        "agent" | "invoke_agent" => Kind::Agent,
        _ if has("gen_ai.tool.") && !has("gen_ai.usage.") => Kind::Tool,
        _ if name.starts_with("execute_tool ") => Kind::Tool,
        "" if [
            "gen_ai.request.model",
            "gen_ai.prompt",
            "gen_ai.input.messages",
            "llm.input_messages",
        ]
        .iter()
        .any(|key| has(key)) =>
        {
            Kind::Model
        }
        _ => Kind::Other,
    }
}

/// Reads the token counts; cached tokens are included in the input tokens.
fn usage(attributes: &Attributes<'_>) -> RecordedUsage {
    RecordedUsage {
        input_tokens: attributes.count(&[
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "llm.usage.prompt_tokens",
            "input_tokens",
        ]),
        output_tokens: attributes.count(&[
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "llm.usage.completion_tokens",
            "output_tokens",
        ]),
        cache_read_tokens: attributes.count(&[
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
            "cache_read_tokens",
        ]),
        cache_write_tokens: attributes.count(&[
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "llm.token_count.prompt_details.cache_write",
            "cache_creation_tokens",
        ]),
    }
}

fn tool<'a>(span: &mut Span<'a>, attributes: &Attributes<'a>) {
    if let Some(name) = attributes.text(&["gen_ai.tool.name", "tool.name", "traceloop.entity.name"])
    {
        span.name = name;
    }
    span.call_id = attributes.text(&["gen_ai.tool.call.id", "tool_call.id", "tool.id"]);
    let given = [
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.args",
        "tool.parameters",
        "input.value",
        "traceloop.entity.input",
    ];
    span.input = attributes.first(&given).map_or(RunInput::None, |given| match given {
        Attribute::Text(text) => RunInput::Text(text.clone()),
        Attribute::Json(json) => RunInput::Structured(json.clone()),
    });
    let came = [
        "gen_ai.tool.call.result",
        "gen_ai.tool.message",
        "gen_ai.output",
        "output.value",
        "traceloop.entity.output",
    ];
    span.output = attributes.text(&came).unwrap_or_default();
}

fn conversation<'a>(span: &mut Span<'a>, attributes: &Attributes<'a>, events: &[SpanEvent<'a>]) {
    let whole = |keys: &[&str], plain: Plain| {
        attributes
            .first(keys)
            .map(|value| find_messages::in_text(value.text(), plain))
            .unwrap_or_default()
    };
    let told = ["gen_ai.input.messages", "gen_ai.prompt", "gen_ai.content.prompt"];
    let said = [
        "gen_ai.output.messages",
        "gen_ai.completion",
        "gen_ai.output",
        "gen_ai.content.completion",
    ];
    span.told = whole(&told, Plain::User);
    span.said = whole(&said, Plain::Model);
    for (name, attributes) in events {
        event(name, attributes, span);
    }
    if span.told.is_empty() {
        span.told = flattened(attributes, &["llm.input_messages.", "gen_ai.prompt."], Plain::User);
    }
    if span.said.is_empty() {
        span.said =
            flattened(attributes, &["llm.output_messages.", "gen_ai.completion."], Plain::Model);
    }
    // The span value is the last fallback: it repeats the messages with additional fields.
    if span.told.is_empty() {
        span.told = whole(&["input.value", "traceloop.entity.input"], Plain::User);
    }
    if span.said.is_empty() {
        span.said = whole(&["output.value", "traceloop.entity.output"], Plain::Model);
    }
}

/// Reads a message or choice from a separate event.
fn event<'a>(name: &str, attributes: &Attributes<'a>, span: &mut Span<'a>) {
    let content = attributes.text(&["gen_ai.event.content"]);
    let body = || content.as_deref().map_or_else(|| attributes.to_json(), str::to_owned);
    let as_message = |role: &str| {
        let body = body();
        let inner =
            Json::first(&body).and_then(|json| json.get("message")).map(|it| it.raw().to_owned());
        let inner = inner.unwrap_or(body);
        let inner = inner
            .trim()
            .strip_prefix('{')
            .map_or_else(String::new, |rest| format!("{{\"role\": \"{role}\", {rest}"));
        find_messages::in_text(&inner, Plain::User)
    };
    match name {
        "gen_ai.user.message" => span.told.extend(as_message("user")),
        "gen_ai.assistant.message" => span.told.extend(as_message("assistant")),
        "gen_ai.tool.message" => span.told.extend(as_message("tool")),
        "gen_ai.choice" => span.said.extend(as_message("assistant")),
        "gen_ai.content.prompt"
        | "gen_ai.content.completion"
        | "gen_ai.client.inference.operation.details" => {
            let whole = |keys: &[&str], plain: Plain| {
                attributes
                    .first(keys)
                    .map(|value| find_messages::in_text(value.text(), plain))
                    .unwrap_or_default()
            };
            span.told.extend(whole(&["gen_ai.prompt", "gen_ai.input.messages"], Plain::User));
            span.said.extend(whole(&["gen_ai.completion", "gen_ai.output.messages"], Plain::Model));
        }
        _ => {}
    }
}

/// Message with one attribute per field.
#[derive(Default)]
struct Flat<'a> {
    role: Cow<'a, str>,
    texts: BTreeMap<usize, Cow<'a, str>>,
    content: Cow<'a, str>,
    calls: BTreeMap<usize, Call<'a>>,
    call_id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
}

fn flattened<'a>(attributes: &Attributes<'a>, prefixes: &[&str], plain: Plain) -> Vec<Event<'a>> {
    let mut all: BTreeMap<usize, Flat<'a>> = BTreeMap::new();
    for (key, value) in &attributes.0 {
        let Some(rest) = prefixes.iter().find_map(|prefix| key.strip_prefix(prefix)) else {
            continue;
        };
        let Some((at, path)) = rest.split_once('.') else { continue };
        let Ok(at) = at.parse::<usize>() else { continue };
        let text = match value {
            Attribute::Text(text) | Attribute::Json(text) => text.clone(),
        };
        // OpenInference adds a type name on every level of the path.
        let between = ["message", "message_content", "tool_call", "function"];
        let path: Vec<&str> = path.split('.').filter(|part| !between.contains(part)).collect();
        all.entry(at).or_default().put(&path, text);
    }
    all.into_values().flat_map(|flat| flat.events(plain)).collect()
}

impl<'a> Flat<'a> {
    fn put(&mut self, path: &[&str], text: Cow<'a, str>) {
        let number = |part: &str| part.parse::<usize>().unwrap_or_default();
        match path {
            ["role"] => self.role = text,
            ["content"] => self.content = text,
            ["contents", at, "text"] => drop(self.texts.insert(number(at), text)),
            ["tool_call_id"] => self.call_id = Some(text),
            ["name"] => self.name = Some(text),
            ["tool_calls", at, what] => {
                let call = self.calls.entry(number(at)).or_default();
                match *what {
                    "id" => call.id = Some(text),
                    "name" => call.tool = text,
                    "arguments" => call.input = RunInput::Text(text),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn events(self, plain: Plain) -> Vec<Event<'a>> {
        let mut text = self.content;
        for more in self.texts.into_values() {
            super::step_builder::append(&mut text, more);
        }
        match self.role.as_ref() {
            "system" | "developer" => Vec::new(),
            "tool" | "function" => {
                vec![Event::Answers(Answer {
                    id: self.call_id,
                    tool: self.name,
                    text,
                    is_error: false,
                })]
            }
            "user" | "human" => vec![Event::User(text)],
            "" if plain == Plain::User => vec![Event::User(text)],
            _ => {
                let calls = self.calls.into_values().map(Event::Calls);
                [Event::Begin(Turn::default()), Event::Says(text)]
                    .into_iter()
                    .chain(calls)
                    .collect()
            }
        }
    }
}
