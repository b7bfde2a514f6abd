//! Generated coding-agent runs, identical on every machine: about 2 KB of text per step.
//!
//! Every `PERIOD` steps use the same tools in the same order, so that any window of that length is comparable with any
//! other. Thoughts contain no retractions, which would end the work of the `hedge` monitor.

use fastrand::Rng;
use serde_json::{Value, json};

/// One step.
pub(crate) struct OwnedStep {
    pub(crate) thought: String,
    pub(crate) tool: &'static str,
    pub(crate) input: String,
    pub(crate) observation: String,
}

/// Bytes of thought and of observation per step.
#[derive(Clone, Copy)]
pub(crate) struct Sizes(usize, usize);

/// An agent that thinks aloud.
pub(crate) const TALKATIVE: Sizes = Sizes(1_350, 520);
/// The average over all steps of a recorded coding agent.
pub(crate) const TERSE: Sizes = Sizes(700, 1_150);

/// Number of steps after which the sequence of tools repeats.
pub(crate) const PERIOD: usize = 20;

/// The tools of one period: Read, Search, Edit, Test, sHell and thinking (`-`).
const TOOLS: &[u8; PERIOD] = b"RSRRETREHTSRETHREET-";

const OPENINGS: [&str; 8] = [
    "The change in",
    "Before going on, I look at",
    "The test for",
    "According to the output,",
    "The definition of",
    "Maybe",
    "I now understand why",
    "Searching for",
];
const MIDDLES: [&str; 8] = [
    "the request handler keeps the old value of",
    "the cache is filled before",
    "the parser never reaches",
    "two threads could both hold",
    "the error is raised after",
    "the fixture builds its own",
    "the loop ends one line before",
    "the base class already defines",
];
const ENDINGS: [&str; 8] = [
    "so the order of the two calls has to change.",
    "which explains the second failure.",
    "because the lock is released too early.",
    "and nothing else depends on that.",
    "which might be the reason for the timeout.",
    "and the documentation agrees.",
    "which is what the issue asks for.",
    "and the other branch returns early.",
];
const NAMES: [&str; 16] = [
    "session", "token", "parser", "buffer", "window", "router", "handler", "schema", "index",
    "cursor", "batch", "retry", "limit", "digest", "worker", "signal",
];
const VERBS: [&str; 8] =
    ["load", "merge", "apply", "flush", "check", "split", "collect", "resolve"];

/// Generates the first `count` steps of the run.
pub(crate) fn steps(Sizes(thought, observation): Sizes, count: usize) -> Vec<OwnedStep> {
    let mut text = Text(Rng::with_seed(0x2545_f491_4f6c_dd1d));
    let tools = TOOLS.iter().cycle().take(count);
    tools.map(|tool| text.step(*tool, thought, observation)).collect()
}

/// A source of texts.
struct Text(Rng);

impl Text {
    fn step(&mut self, tool: u8, thought: usize, bytes: usize) -> OwnedStep {
        /// Bytes of the text of an edit; the observation is shorter by as many.
        const EDIT_BYTES: usize = 620;
        let thought_text = self.prose(if tool == b'-' { thought + bytes } else { thought });
        let file = self.file();
        let (tool, input, observation) = match tool {
            b'R' => ("read_file", format!("{{\"path\": \"{file}\"}}"), self.code(bytes)),
            b'S' => {
                let input = format!("{{\"pattern\": \"{}\", \"path\": \"src\"}}", self.name());
                ("grep", input, self.search_hits(bytes))
            }
            b'E' => {
                let input = format!("{file}\n{}", self.code(EDIT_BYTES));
                let rest = self.prose(bytes.saturating_sub(EDIT_BYTES));
                ("str_replace_editor", input, format!("The file {file} has been edited. {rest}"))
            }
            b'T' => ("run_tests", format!("pytest -q {file}"), self.test_output(bytes)),
            b'H' => ("bash", format!("git diff --stat && sed -n '1,80p' {file}"), self.code(bytes)),
            _ => ("", String::new(), String::new()),
        };
        OwnedStep { thought: thought_text, tool, input, observation }
    }

    fn prose(&mut self, bytes: usize) -> String {
        self.fill(bytes, |text| {
            let (opening, middle, ending) =
                (text.pick(&OPENINGS), text.pick(&MIDDLES), text.pick(&ENDINGS));
            let (name, other, file) = (text.name(), text.pick(&NAMES), text.file());
            format!("{opening} `{name}` in {file} shows that {middle} `self.{other}`, {ending} ")
        })
    }

    fn code(&mut self, bytes: usize) -> String {
        self.fill(bytes, |text| {
            let (what, other, verb) = (text.pick(&NAMES), text.pick(&NAMES), text.pick(&VERBS));
            let number = text.0.u32(..4_000);
            match text.0.u8(..4) {
                0 => format!("def {verb}_{what}({other}, limit={number}):\n"),
                1 => format!("    {what} = self.{other}.{verb}({other}_id, timeout={number})\n"),
                2 => format!(
                    "    if {what} is None or len({what}) > {number}:\n        return {other}\n"
                ),
                _ => format!("        raise ValueError(f\"invalid {what}: {{{other}!r}}\")\n"),
            }
        })
    }

    fn search_hits(&mut self, bytes: usize) -> String {
        self.fill(bytes, |text| {
            let (file, line, name) = (text.file(), text.0.u32(..900), text.name());
            format!("{file}:{line}:    {name} = {}  # not found\n", text.name())
        })
    }

    fn test_output(&mut self, bytes: usize) -> String {
        let failed = self.0.u8(..3) > 0;
        let lines = self.fill(bytes - 100, |text| {
            let outcome = if failed && text.0.u8(..8) == 0 { "FAILED" } else { "PASSED" };
            format!("{}::test_{} {outcome}\n", text.file(), text.name())
        });
        let end = if failed {
            let address = self.0.u32(..1 << 30);
            format!("E   AssertionError: assert 3 == {} at 0x7f3a{address:08x}", self.0.u8(..90))
        } else {
            "all passed".to_owned()
        };
        format!("=== test session starts ===\n{lines}{end}\n")
    }

    /// Repeats `part` until the text has at least `bytes`.
    fn fill(&mut self, bytes: usize, part: impl Fn(&mut Self) -> String) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            text.push_str(&part(self));
        }
        text
    }

    fn name(&mut self) -> String {
        format!("{}_{}", self.pick(&VERBS), self.pick(&NAMES))
    }

    fn file(&mut self) -> String {
        format!("src/{}/{}.py", self.pick(&NAMES), self.pick(&NAMES))
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.0.usize(..from.len())]
    }
}

/// The wire format of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Chat Completions.
    Completions,
}

impl Protocol {
    /// The path at the provider; the gateway adds its prefix.
    pub(crate) fn path(self, prefixed: bool) -> &'static str {
        match (self, prefixed) {
            (Self::Messages, false) => "/v1/messages",
            (Self::Messages, true) => "/anthropic/v1/messages",
            (Self::Completions, false) => "/v1/chat/completions",
            (Self::Completions, true) => "/openai/v1/chat/completions",
        }
    }

    /// The body up to the first turn.
    fn opening(self, is_stream: bool, prompt: &str) -> String {
        let limits =
            format!(r#""model":"claude-sonnet-4-5","stream":{is_stream},"max_tokens":1024"#);
        let (name, about, schema) = ("bash", "Runs a command.", json!({ "type": "object" }));
        let task = json!({ "role": "user", "content": "Make the tests pass." });
        match self {
            Self::Messages => {
                let tool = json!({ "name": name, "description": about, "input_schema": schema });
                format!(
                    r#"{{{limits},"system":{},"tools":[{tool}],"messages":[{task}"#,
                    json!(prompt)
                )
            }
            Self::Completions => {
                let function = json!({ "name": name, "description": about, "parameters": schema });
                let tool = json!({ "type": "function", "function": function });
                let system = json!({ "role": "system", "content": prompt });
                format!(r#"{{{limits},"tools":[{tool}],"messages":[{system},{task}"#)
            }
        }
    }

    /// A tool call and its result, with a leading comma.
    fn turn(self, at: usize, step: &OwnedStep) -> String {
        let (id, input) = (format!("toolu_{at}"), json!({ "text": step.input }));
        let tool = if step.tool.is_empty() { "think" } else { step.tool };
        let messages: [Value; 2] = match self {
            Self::Messages => {
                let call = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
                let text = json!({ "type": "text", "text": step.thought });
                let result = json!({ "type": "tool_result", "tool_use_id": id, "content": step.observation });
                [
                    json!({ "role": "assistant", "content": [text, call] }),
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

/// A conversation that grows by one turn per request.
pub(crate) struct Conversation {
    pub(crate) protocol: Protocol,
    opening: String,
    turns: Vec<String>,
}

impl Conversation {
    /// Builds a conversation of `turns` turns whose requests have `bytes` on average.
    pub(crate) fn new(protocol: Protocol, bytes: usize, turns: usize, is_stream: bool) -> Self {
        let steps = steps(TERSE, turns);
        let turns: Vec<String> =
            steps.iter().enumerate().map(|(at, step)| protocol.turn(at, step)).collect();
        let grown: usize = turns.iter().map(String::len).sum();
        let mut prompt = String::from("You repair programs.\n");
        prompt.push_str(&Text(Rng::with_seed(7)).code(bytes.saturating_sub(grown / 2)));
        Self { protocol, opening: protocol.opening(is_stream, &prompt), turns }
    }

    /// Number of turns.
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }

    /// The body of the request that ends with turn number `length`.
    pub(crate) fn body(&self, length: usize) -> String {
        format!("{}{}]}}", self.opening, self.turns[..length].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_period_has_two_kilobytes_per_step_and_the_same_tools() {
        for (sizes, thought_share) in [(TALKATIVE, 60..=76), (TERSE, 32..=46)] {
            for period in steps(sizes, 200).chunks(PERIOD) {
                let sum = |part: fn(&OwnedStep) -> usize| period.iter().map(part).sum::<usize>();
                let all =
                    sum(|step| step.thought.len() + step.input.len() + step.observation.len());
                assert!((1_900..=2_250).contains(&(all / PERIOD)), "{}", all / PERIOD);
                let share = sum(|step| step.thought.len()) * 100 / all;
                assert!(thought_share.contains(&share), "{share}");
                assert_eq!(
                    period.iter().filter(|step| step.tool == "str_replace_editor").count(),
                    5
                );
            }
        }
    }

    #[test]
    fn requests_grow_by_one_turn_and_have_the_requested_size() {
        for protocol in [Protocol::Messages, Protocol::Completions] {
            for (bytes, turns) in [(4_000, 3), (100_000, 75), (1_000_000, 20)] {
                let conversation = Conversation::new(protocol, bytes, turns, false);
                let bodies: Vec<String> =
                    (1..=turns).map(|length| conversation.body(length)).collect();
                let mean = bodies.iter().map(String::len).sum::<usize>() / turns;
                assert!((bytes * 3 / 4..bytes * 3 / 2).contains(&mean), "{bytes}: {mean}");
                for pair in bodies.windows(2) {
                    assert!(pair[1].starts_with(pair[0].trim_end_matches("]}")));
                }
                let last: Value = serde_json::from_str(&bodies[turns - 1]).unwrap();
                let system = usize::from(protocol == Protocol::Completions);
                assert_eq!(last["messages"].as_array().unwrap().len(), 1 + system + 2 * turns);
            }
        }
    }
}
