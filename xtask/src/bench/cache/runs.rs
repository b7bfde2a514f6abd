//! Runs as Anthropic conversations: recorded ones, or made-up ones that loop.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::bench::trace::{Mix, OwnedStep, trace};

/// A step of a run, with the two messages that it becomes.
pub(super) struct Turn {
    pub(super) thought: String,
    pub(super) tool: String,
    pub(super) input: String,
    pub(super) observation: String,
    pub(super) is_error: bool,
}

pub(super) struct Recorded {
    pub(super) task: String,
    pub(super) turns: Vec<Turn>,
}

/// What coding agents send before the first message: about 2,000 tokens of tools and system prompt.
pub(super) fn opening() -> (Value, String) {
    let mut system = String::from("You are an agent that works on a repository.\n");
    for step in trace(Mix::Talkative, 5) {
        system.push_str(&step.thought);
    }
    let tools = json!([{
        "name": "bash", "description": "Runs a command.",
        "input_schema": { "type": "object", "properties": { "command": { "type": "string" } } },
    }]);
    (tools, system)
}

/// The request before the next turn, with the markers of a client that caches: behind the system prompt and behind the last
/// message.
pub(super) fn request(run: &Recorded, turns: usize, opening: &(Value, String)) -> Value {
    let marker = json!({ "type": "ephemeral" });
    let mut messages =
        vec![json!({ "role": "user", "content": [{ "type": "text", "text": run.task }] })];
    for (at, turn) in run.turns[..turns].iter().enumerate() {
        messages.extend(turn.messages(at));
    }
    if let Some(last) =
        messages.last_mut().and_then(|last| last["content"].as_array_mut()?.last_mut())
    {
        last["cache_control"] = marker.clone();
    }
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 4096, "tools": opening.0,
        "system": [{ "type": "text", "text": opening.1, "cache_control": marker }],
        "messages": messages,
    })
}

impl Turn {
    fn messages(&self, at: usize) -> [Value; 2] {
        let said = json!({ "type": "text", "text": self.thought });
        if self.tool.is_empty() {
            let heard =
                if self.observation.is_empty() { "Go on." } else { self.observation.as_str() };
            return [
                json!({ "role": "assistant", "content": [said] }),
                json!({ "role": "user", "content": [{ "type": "text", "text": heard }] }),
            ];
        }
        let id = format!("toolu_{at}");
        let call = json!({ "type": "tool_use", "id": id, "name": self.tool, "input": { "input": self.input } });
        let said = if self.thought.is_empty() { vec![call] } else { vec![said, call] };
        let result = json!({
            "type": "tool_result", "tool_use_id": id, "content": self.observation, "is_error": self.is_error,
        });
        [
            json!({ "role": "assistant", "content": said }),
            json!({ "role": "user", "content": [result] }),
        ]
    }
}

/// The runs of a file, or of all files of a folder: a run a line.
pub(super) fn recorded(at: &Path) -> Result<Vec<Recorded>> {
    let mut files = vec![at.to_owned()];
    if at.is_dir() {
        files = std::fs::read_dir(at)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
        files.sort();
    }
    let mut runs = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        for (line, run) in text.lines().enumerate() {
            let run: Value = serde_json::from_str(run)
                .with_context(|| format!("{}, line {}: no JSON", file.display(), line + 1))?;
            runs.push(read(&run));
        }
    }
    Ok(runs)
}

fn read(run: &Value) -> Recorded {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    };
    let turns = run["steps"].as_array().into_iter().flatten().map(|step| Turn {
        thought: text(&step["thought"]),
        tool: text(&step["action"]),
        input: text(&step["action_input"]),
        observation: text(&step["observation"]),
        is_error: step["is_error"].as_bool().unwrap_or_default(),
    });
    Recorded { task: text(&run["task"]), turns: turns.collect() }
}

/// Runs that go well for a while and then do the same again and again, in one or two steps.
pub(super) fn looping() -> Vec<Recorded> {
    let shapes = [
        (Mix::Terse, 10, 1),
        (Mix::Terse, 25, 2),
        (Mix::Talkative, 15, 1),
        (Mix::Talkative, 30, 2),
    ];
    shapes
        .into_iter()
        .map(|(mix, good, cycle)| {
            let steps = trace(mix, good);
            let again = steps[good - cycle..].iter().cycle().take(20);
            let turns = steps.iter().chain(again).map(turn).collect();
            Recorded { task: "Make the tests pass.".to_owned(), turns }
        })
        .collect()
}

fn turn(step: &OwnedStep) -> Turn {
    Turn {
        thought: step.thought.clone(),
        tool: step.tool.to_owned(),
        input: step.input.clone(),
        observation: step.observation.clone(),
        is_error: false,
    }
}
