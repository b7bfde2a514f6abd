//! Conversations in every dialect: an agent that repeats the same search, and the responses of a provider.

use rb_wire::providers::PROVIDERS;
use serde_json::{Value, json};

use super::upstream::{Act, Seen, answer};

/// Dialect of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

pub(super) const DIALECTS: [Dialect; 4] =
    [Dialect::Anthropic, Dialect::Chat, Dialect::Responses, Dialect::Gemini];

pub(super) const TASK: &str = "Find where the session timeout is set.";
const THOUGHT: &str = "I search for the session timeout.";
const QUERY: &str = "session timeout";
const RESULT: &str = "no match";

/// Text that every guidance contains.
pub(super) const SIGN: &str = "Run monitor of this workspace";

impl Dialect {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "/anthropic/v1/messages",
            Self::Chat => "/openai/v1/chat/completions",
            Self::Responses => "/openai/v1/responses",
            Self::Gemini => "/gemini/v1beta/models/m:streamGenerateContent?alt=sse",
        }
    }

    /// Returns the field that contains the conversation.
    pub(super) fn list(self) -> &'static str {
        match self {
            Self::Anthropic | Self::Chat => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        }
    }

    /// Returns the conversation after a number of turns with the same search.
    pub(super) fn history(self, turns: usize) -> Vec<Value> {
        let mut items = vec![match self {
            Self::Anthropic | Self::Chat | Self::Responses => {
                json!({ "role": "user", "content": TASK })
            }
            Self::Gemini => json!({ "role": "user", "parts": [{ "text": TASK }] }),
        }];
        for turn in 0..turns {
            items.extend(self.turn(turn));
        }
        items
    }

    /// Returns one turn: the same search with a different call id.
    pub(super) fn turn(self, turn: usize) -> Vec<Value> {
        let id = format!("call_{turn:06}");
        match self {
            Self::Anthropic => vec![
                json!({ "role": "assistant", "content": [
                    { "type": "text", "text": THOUGHT },
                    { "type": "tool_use", "id": id, "name": "search", "input": { "query": QUERY } },
                ] }),
                json!({ "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": id, "content": RESULT },
                ] }),
            ],
            Self::Chat => vec![
                json!({ "role": "assistant", "content": THOUGHT, "tool_calls": [
                    { "id": id, "type": "function", "function": { "name": "search", "arguments": format!("{{\"query\":\"{QUERY}\"}}") } },
                ] }),
                json!({ "role": "tool", "tool_call_id": id, "content": RESULT }),
            ],
            Self::Responses => vec![
                json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": THOUGHT }] }),
                json!({ "type": "function_call", "call_id": id, "name": "search", "arguments": format!("{{\"query\":\"{QUERY}\"}}") }),
                json!({ "type": "function_call_output", "call_id": id, "output": RESULT }),
            ],
            Self::Gemini => vec![
                json!({ "role": "model", "parts": [
                    { "text": THOUGHT },
                    { "functionCall": { "name": "search", "args": { "query": QUERY } } },
                ] }),
                json!({ "role": "user", "parts": [
                    { "functionResponse": { "id": id, "name": "search", "response": { "output": RESULT } } },
                ] }),
            ],
        }
    }

    /// Returns a request with that conversation. As in real clients, the cached fields come first and the
    /// conversation last.
    pub(super) fn request(self, model: &str, items: &[Value]) -> String {
        let tool = match self {
            Self::Anthropic => json!({ "name": "search", "input_schema": { "type": "object" } }),
            Self::Chat => json!({ "type": "function", "function": { "name": "search" } }),
            Self::Responses => json!({ "type": "function", "name": "search" }),
            Self::Gemini => json!({ "functionDeclarations": [{ "name": "search" }] }),
        };
        let items = Value::from(items);
        let list = self.list();
        format!(
            "{{\"model\":\"{model}\",\"max_tokens\":100,\"tools\":[{tool}],\"{list}\":{items}}}"
        )
    }

    /// Returns the provider's response.
    pub(super) fn body(self, model: &str) -> Value {
        match self {
            Self::Anthropic => json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": model,
                "content": [{ "type": "text", "text": THOUGHT }], "stop_reason": "end_turn",
                "usage": { "input_tokens": 1_000, "output_tokens": 100 },
            }),
            Self::Chat => json!({
                "id": "chatcmpl-1", "object": "chat.completion", "model": model,
                "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": THOUGHT } }],
                "usage": { "prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100 },
            }),
            Self::Responses => json!({
                "id": "resp_1", "object": "response", "status": "completed", "model": model,
                "output": [{ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": THOUGHT }] }],
                "usage": { "input_tokens": 1_000, "output_tokens": 100, "total_tokens": 1_100 },
            }),
            Self::Gemini => gemini(model, THOUGHT),
        }
    }

    /// Returns the same response as an event stream.
    pub(super) fn events(self, model: &str) -> String {
        let event = |kind: &str, data: &Value| format!("event: {kind}\ndata: {data}\n\n");
        match self {
            Self::Anthropic => [
                event("message_start", &json!({ "type": "message_start", "message": {
                    "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [],
                    "usage": { "input_tokens": 1_000, "output_tokens": 1 } } })),
                event("content_block_start", &json!({ "type": "content_block_start", "index": 0,
                    "content_block": { "type": "text", "text": "" } })),
                event("content_block_delta", &json!({ "type": "content_block_delta", "index": 0,
                    "delta": { "type": "text_delta", "text": "Grüße, 世界" } })),
                event("content_block_stop", &json!({ "type": "content_block_stop", "index": 0 })),
                event("message_delta", &json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
                    "usage": { "output_tokens": 100 } })),
                event("message_stop", &json!({ "type": "message_stop" })),
            ]
            .concat(),
            Self::Chat => {
                let piece = |value: Value| format!("data: {value}\n\n");
                [
                    piece(json!({ "id": "c", "object": "chat.completion.chunk", "model": model,
                        "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "Grüße, 世界" } }] })),
                    piece(json!({ "id": "c", "object": "chat.completion.chunk", "model": model,
                        "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] })),
                    piece(json!({ "id": "c", "object": "chat.completion.chunk", "model": model, "choices": [],
                        "usage": { "prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100 } })),
                    "data: [DONE]\n\n".to_owned(),
                ]
                .concat()
            }
            Self::Responses => {
                let said = json!({ "type": "message", "role": "assistant",
                    "content": [{ "type": "output_text", "text": "Grüße, 世界" }] });
                [
                    event("response.created", &json!({ "type": "response.created", "response": { "id": "r", "model": model } })),
                    event("response.output_text.delta", &json!({ "type": "response.output_text.delta",
                        "output_index": 0, "content_index": 0, "delta": "Grüße, 世界" })),
                    event("response.output_item.done", &json!({ "type": "response.output_item.done",
                        "output_index": 0, "item": said })),
                    event("response.completed", &json!({ "type": "response.completed", "response": {
                        "id": "r", "status": "completed", "model": model, "output": [said],
                        "usage": { "input_tokens": 1_000, "output_tokens": 100, "total_tokens": 1_100 } } })),
                ]
                .concat()
            }
            Self::Gemini => format!("data: {}\r\n\r\n", gemini(model, "Grüße, 世界")),
        }
    }
}

fn gemini(model: &str, text: &str) -> Value {
    json!({
        "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 1_000, "candidatesTokenCount": 100, "totalTokenCount": 1_100 },
        "modelVersion": model, "responseId": "r1",
    })
}

/// Answers every request with a complete response in its dialect.
pub(super) fn obliging(seen: &Seen) -> Vec<Act> {
    let model = seen.json()["model"].as_str().unwrap_or_default().to_owned();
    let dialect = DIALECTS.into_iter().find(|dialect| {
        let prefixes = PROVIDERS.iter().map(|provider| provider.path_prefix);
        let path = prefixes.fold(dialect.path(), |path, prefix| path.trim_start_matches(prefix));
        seen.head.starts_with(&format!("post {} ", path.to_lowercase()))
    });
    let body = dialect.unwrap_or(Dialect::Anthropic).body(&model);
    answer("200 OK", "application/json", body.to_string().as_bytes())
}
