//! Conversations as agents hold them: each request is the one before and one more turn, under the name of its run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::bench::load::Requests;
use crate::bench::trace::{Mix, OwnedStep, trace};

/// The protocol of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Chat Completions.
    Completions,
}

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Messages => "Messages",
            Self::Completions => "Completions",
        }
    }

    /// The path at the provider and at plain proxies.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Completions => "/v1/chat/completions",
        }
    }

    /// The same at our gateway.
    pub(super) fn path_of_ours(self) -> &'static str {
        match self {
            Self::Messages => "/anthropic/v1/messages",
            Self::Completions => "/openai/v1/chat/completions",
        }
    }

    /// From the first byte to the first turn.
    fn start(self, model: &str, is_stream: bool, prompt: &str) -> String {
        let schema = json!({ "type": "object" });
        let about = "Runs a command.";
        let task = json!({ "role": "user", "content": "Make the tests pass." });
        let limits = format!(r#""model":"{model}","stream":{is_stream},"max_tokens":1024"#);
        match self {
            Self::Messages => {
                let tool = json!({ "name": "bash", "description": about, "input_schema": schema });
                let prompt = json!(prompt);
                format!(r#"{{{limits},"system":{prompt},"tools":[{tool}],"messages":[{task}"#)
            }
            Self::Completions => {
                let tool = json!({ "type": "function", "function": { "name": "bash", "description": about, "parameters": schema } });
                let prompt = json!({ "role": "system", "content": prompt });
                format!(r#"{{{limits},"tools":[{tool}],"messages":[{prompt},{task}"#)
            }
        }
    }

    /// A call and its answer.
    fn turn(self, at: usize, step: &OwnedStep) -> String {
        let id = format!("toolu_{at}");
        let tool = if step.tool.is_empty() { "think" } else { step.tool };
        let input = json!({ "text": step.input });
        let messages: [Value; 2] = match self {
            Self::Messages => {
                let call = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
                let said = json!({ "type": "text", "text": step.thought });
                let result = json!({ "type": "tool_result", "tool_use_id": id, "content": step.observation });
                [
                    json!({ "role": "assistant", "content": [said, call] }),
                    json!({ "role": "user", "content": [result] }),
                ]
            }
            Self::Completions => {
                let function = json!({ "name": tool, "arguments": input.to_string() });
                let call = json!({ "id": id, "type": "function", "function": function });
                [
                    json!({ "role": "assistant", "content": step.thought, "tool_calls": [call] }),
                    json!({ "role": "tool", "tool_call_id": id, "content": step.observation }),
                ]
            }
        };
        format!(",{},{}", messages[0], messages[1])
    }
}

/// A conversation of about one size, ready to be sent at any length.
pub(super) struct Talk {
    /// From the first byte to the first turn, with a system prompt that is long enough to make up the size.
    start: String,
    /// A call and its answer each, with the comma before them.
    turns: Vec<String>,
}

/// Gives every run a name of its own.
static RUNS: AtomicU64 = AtomicU64::new(0);

impl Talk {
    /// A conversation whose requests are `bytes` long on average, and grow by one of `turns` turns each time.
    pub(super) fn new(
        protocol: Protocol,
        (bytes, turns): (usize, usize),
        model: &str,
        is_stream: bool,
    ) -> Self {
        let steps = trace(Mix::Terse, turns);
        let turns: Vec<String> =
            steps.iter().enumerate().map(|(at, step)| protocol.turn(at, step)).collect();
        let grown: usize = turns.iter().map(String::len).sum();
        let prompt = prompt(bytes.saturating_sub(grown / 2));
        Self { start: protocol.start(model, is_stream, &prompt), turns }
    }

    /// Requests that grow, and begin anew with another run when the conversation is at its end.
    pub(super) fn growing(self: &Arc<Self>, path: &'static str) -> Requests {
        let this = Arc::clone(self);
        let (mut run, mut length) = (0, this.turns.len());
        Box::new(move || {
            if length == this.turns.len() {
                (run, length) = (RUNS.fetch_add(1, Ordering::Relaxed), 0);
            }
            length += 1;
            Some(this.request(path, run, length))
        })
    }

    /// The same request again and again.
    pub(super) fn identical(self: &Arc<Self>, path: &'static str) -> Requests {
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let request = self.request(path, run, self.turns.len() / 2);
        Box::new(move || Some(request.clone()))
    }

    /// The request that ends with the given turn.
    pub(super) fn request(&self, path: &str, run: u64, length: usize) -> Vec<u8> {
        let turns = &self.turns[..length];
        let body: usize = turns.iter().map(String::len).sum::<usize>() + self.start.len() + 2;
        let mut request = Vec::with_capacity(body + 300);
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-reasonblocks-key: operator\r\nx-api-key: operator\r\n\
             authorization: Bearer operator\r\nanthropic-version: 2023-06-01\r\nx-reasonblocks-run-id: bench-{run}\r\n\
             content-type: application/json\r\ncontent-length: {body}\r\n\r\n"
        );
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(self.start.as_bytes());
        for turn in turns {
            request.extend_from_slice(turn.as_bytes());
        }
        request.extend_from_slice(b"]}");
        request
    }
}

/// What an agent is told before anything else.
fn prompt(bytes: usize) -> String {
    let mut text = String::from("You repair programs.\n");
    for step in trace(Mix::Terse, bytes / 1_000 + 1) {
        text.push_str(&step.observation);
    }
    let end = (0..=bytes.max(20).min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_grow_by_a_turn_and_have_the_size_asked_for() {
        for protocol in [Protocol::Messages, Protocol::Completions] {
            for (bytes, turns) in [(4_000, 3), (100_000, 75), (1_000_000, 20)] {
                let talk = Talk::new(protocol, (bytes, turns), "m", false);
                let bodies: Vec<String> = (1..=turns)
                    .map(|length| {
                        let request = String::from_utf8(talk.request("/", 1, length)).unwrap();
                        request.split_once("\r\n\r\n").unwrap().1.to_owned()
                    })
                    .collect();
                let mean = bodies.iter().map(String::len).sum::<usize>() / turns;
                assert!((bytes * 3 / 4..bytes * 3 / 2).contains(&mean), "{bytes}: {mean}");
                for pair in bodies.windows(2) {
                    assert!(pair[1].starts_with(pair[0].trim_end_matches("]}")));
                }
                let last: Value = serde_json::from_str(bodies.last().unwrap()).unwrap();
                let prompts = usize::from(protocol == Protocol::Completions);
                assert_eq!(last["messages"].as_array().unwrap().len(), 1 + prompts + 2 * turns);
            }
        }
    }
}
