//! Conversations as agents hold them: each request is the one before and one more turn, under the name of its run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::bench::load::Requests;
use crate::bench::trace::{Mix, OwnedStep, trace};

/// A conversation of about one size, ready to be sent at any length.
pub(super) struct Talk {
    /// From the first byte to the first message, which is long enough to make up the size.
    start: String,
    /// A call and its answer each, with the comma before them.
    turns: Vec<String>,
}

/// Gives every run a name of its own.
static RUNS: AtomicU64 = AtomicU64::new(0);

impl Talk {
    /// A conversation whose requests are `bytes` long on average, and grow by one of `turns` turns each time.
    pub(super) fn new(bytes: usize, turns: usize, model: &str, is_stream: bool) -> Self {
        let steps = trace(Mix::Terse, turns);
        let turns: Vec<String> =
            steps.iter().enumerate().map(|(at, step)| turn(at, step)).collect();
        let grown: usize = turns.iter().map(String::len).sum();
        let head = json!({ "name": "bash", "description": "Runs a command.", "input_schema": { "type": "object" } });
        let task = filler(bytes.saturating_sub(grown / 2));
        let task = json!({ "role": "user", "content": task });
        let start = format!(
            r#"{{"model":"{model}","stream":{is_stream},"max_tokens":1024,"tools":[{head}],"messages":[{task}"#
        );
        Self { start, turns }
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

/// Text that an agent is given at the beginning, such as a file.
fn filler(bytes: usize) -> String {
    let mut text = String::from("Make the tests pass.\n");
    for step in trace(Mix::Terse, bytes / 1_000 + 1) {
        text.push_str(&step.observation);
    }
    let end = (0..=bytes.max(20).min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or_default());
    text
}

fn turn(at: usize, step: &OwnedStep) -> String {
    let id = format!("toolu_{at}");
    let tool = if step.tool.is_empty() { "think" } else { step.tool };
    let call =
        json!({ "type": "tool_use", "id": id, "name": tool, "input": { "text": step.input } });
    let said = json!({ "type": "text", "text": step.thought });
    let result = json!({ "type": "tool_result", "tool_use_id": id, "content": step.observation });
    let messages: [Value; 2] = [
        json!({ "role": "assistant", "content": [said, call] }),
        json!({ "role": "user", "content": [result] }),
    ];
    format!(",{},{}", messages[0], messages[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_grow_by_a_turn_and_have_the_size_asked_for() {
        for (bytes, turns) in [(4_000, 3), (100_000, 20), (1_000_000, 20)] {
            let talk = Talk::new(bytes, turns, "m", false);
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
            assert_eq!(last["messages"].as_array().unwrap().len(), 1 + 2 * turns);
        }
    }
}
