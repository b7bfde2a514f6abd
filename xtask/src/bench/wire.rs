//! `cargo xtask bench wire`: how fast requests and answers are looked at, beside plain parsing in the same run.
//!
//! **Known** is what every message of a live request costs that was there before: found, hashed and linked, not read.
//! **Live** reads the last turn besides, which is what is new in a request. **All** reads every message and makes every
//! step, as after a restart. **Steered** is live with a fragment planted and the body put together. Beside them stands
//! what `serde_json` takes to make a tree of the same body, as a proxy does that writes bodies anew.
//!
//! Bodies are made of the same steps as the benchmark of the engine. Every figure is the fastest of its rounds.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use rb_wire::dialects::{self, Dialect};
use rb_wire::inject;
use rb_wire::request::ParsedRequest;
use rb_wire::response_reader::ResponseReader;
use rb_wire::steps::{self, PendingTurn};
use serde_json::{Value, json};

use super::report::whole;
use super::trace::{Mix, OwnedStep, trace};
use crate::{out, shell};

const ROUNDS: usize = 30;
/// Steps of the conversations: about 4 KB, 100 KB and 1 MB.
const LENGTHS: [usize; 3] = [2, 45, 450];
const FRAGMENT: &str =
    "[REASONBLOCKS]\nThe run monitor of this workspace: steps 3, 5 and 7 made the same call.";

type Look = fn(&'static Dialect, &[u8]) -> Result<()>;

const COLUMNS: [(&str, Look); 5] = [
    ("known", |dialect, body| {
        black_box(ParsedRequest::parse(dialect, body)?);
        Ok(())
    }),
    ("live", |dialect, body| {
        let chat = ParsedRequest::parse(dialect, body)?;
        black_box(steps::extract(&chat, last_turn(&chat), &PendingTurn::default()).steps.len());
        Ok(())
    }),
    ("all", |dialect, body| {
        let chat = ParsedRequest::parse(dialect, body)?;
        black_box(steps::extract(&chat, 0, &PendingTurn::default()).steps.len());
        Ok(())
    }),
    ("steered", |dialect, body| {
        let chat = ParsedRequest::parse(dialect, body)?;
        black_box(steps::extract(&chat, last_turn(&chat), &PendingTurn::default()).steps.len());
        let tail = inject::inject_tail(&chat, &[], Some(FRAGMENT), dialect.channels);
        ensure!(tail.injection.is_some(), "there is a place for the fragment");
        black_box(tail.edits.apply());
        Ok(())
    }),
    ("serde_json", |_, body| {
        black_box(serde_json::from_slice::<Value>(body)?);
        Ok(())
    }),
];

/// A turn is at most three items: the thought, the call, the answer.
fn last_turn(chat: &ParsedRequest<'_>) -> usize {
    chat.messages.len().saturating_sub(3)
}

pub(crate) fn run() -> Result<()> {
    if cfg!(debug_assertions) {
        let args = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "wire"];
        return shell::run(&mut shell::cargo(&args)?);
    }
    let line = |cells: Vec<String>| out::say(&format!("| {} |", cells.join(" | ")));
    let names: Vec<&str> =
        ["dialect", "bytes"].into_iter().chain(COLUMNS.map(|(name, _)| name)).collect();
    line(names.iter().map(|name| (*name).to_owned()).collect());
    line(names.iter().map(|_| "--:".to_owned()).collect());
    for dialect in &dialects::DIALECTS {
        for length in LENGTHS {
            let body = serde_json::to_vec(&request(dialect, &trace(Mix::Terse, length)))?;
            let mut cells = vec![dialect.id.to_owned(), whole(body.len())];
            for (_, look) in COLUMNS {
                cells.push(rate(body.len(), fastest(|| look(dialect, &body))?));
            }
            line(cells);
        }
    }
    out::say("");
    let stream = stream(&trace(Mix::Talkative, 100));
    let Some(dialect) = dialects::by_id("anthropic") else { return Ok(()) };
    for chunk_bytes in [60, 1_400, 16_384] {
        let seconds = fastest(|| {
            let mut reader = ResponseReader::stream(dialect);
            stream.as_bytes().chunks(chunk_bytes).for_each(|chunk| reader.feed(chunk));
            ensure!(reader.finish().is_complete, "the stream has an end");
            Ok(())
        })?;
        let rate = rate(stream.len(), seconds);
        out::say(&format!(
            "an answer of {} bytes in chunks of {chunk_bytes}: {rate}",
            whole(stream.len())
        ));
    }
    Ok(())
}

fn fastest(look: impl Fn() -> Result<()>) -> Result<f64> {
    let mut fastest = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        look()?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    Ok(fastest)
}

/// Megabytes a second, and the time itself.
fn rate(bytes: usize, seconds: f64) -> String {
    let bytes: f64 = u32::try_from(bytes).unwrap_or(u32::MAX).into();
    format!("{:.0} MB/s ({:.1} µs)", bytes / seconds / 1e6, seconds * 1e6)
}

/// A request with these steps behind it. A step that only thinks is written as a call of no tool: a tool speaks last.
fn request(dialect: &Dialect, steps: &[OwnedStep]) -> Value {
    let task = json!({"role": "user", "content": "Fix the timeout of the session handler."});
    let mut list = vec![task];
    for (at, step) in steps.iter().enumerate() {
        let id = format!("call_{at}");
        match dialect.id {
            "anthropic" => list.extend(anthropic(step, &id)),
            "openai-chat" => list.extend(openai_chat(step, &id)),
            _ => list.extend(openai_responses(step, &id)),
        }
    }
    let field = if dialect.id == "openai-responses" { "input" } else { "messages" };
    json!({"model": "model-1", "stream": true, field: list})
}

fn anthropic(step: &OwnedStep, id: &str) -> [Value; 2] {
    let call =
        json!({"type": "tool_use", "id": id, "name": step.tool, "input": {"text": step.input}});
    let thinking =
        json!({"type": "thinking", "thinking": step.thought, "signature": "c2lnbmF0dXJl"});
    let answer = json!({"type": "tool_result", "tool_use_id": id, "content": step.observation});
    [
        json!({"role": "assistant", "content": [thinking, call]}),
        json!({"role": "user", "content": [answer]}),
    ]
}

fn openai_chat(step: &OwnedStep, id: &str) -> [Value; 2] {
    let function = json!({"name": step.tool, "arguments": json!({"text": step.input}).to_string()});
    let calls = json!([{"id": id, "type": "function", "function": function}]);
    [
        json!({"role": "assistant", "content": step.thought, "tool_calls": calls}),
        json!({"role": "tool", "tool_call_id": id, "content": step.observation}),
    ]
}

fn openai_responses(step: &OwnedStep, id: &str) -> [Value; 3] {
    let arguments = json!({"text": step.input}).to_string();
    [
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": step.thought}], "encrypted_content": "Z0FBQUFB"}),
        json!({"type": "function_call", "call_id": id, "name": step.tool, "arguments": arguments}),
        json!({"type": "function_call_output", "call_id": id, "output": step.observation}),
    ]
}

/// A streamed answer that says these thoughts, a few letters an event.
fn stream(steps: &[OwnedStep]) -> String {
    let mut stream = String::new();
    let mut event = |name: &str, data: Value| {
        let _ = write!(stream, "event: {name}\ndata: {data}\n\n");
    };
    event(
        "message_start",
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}),
    );
    for thought in steps.iter().map(|step| step.thought.as_bytes()) {
        for piece in thought.chunks(12) {
            let delta = json!({"type": "text_delta", "text": String::from_utf8_lossy(piece)});
            event(
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            );
        }
    }
    event("message_stop", json!({"type": "message_stop"}));
    stream
}
