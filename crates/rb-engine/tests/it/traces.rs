//! Random traces for property tests: short texts of words that matter to the monitors.

use proptest::prelude::*;
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::step::{Input, Step};

/// An engine with the heuristic suite only.
pub(crate) fn heuristic() -> Engine {
    let config = EngineConfig::with_policy(Policy::only(SuiteChoice::Heuristic));
    config.check().expect("good rules")
}

/// A step that owns its texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owned {
    pub(crate) thought: String,
    pub(crate) tool: Option<String>,
    pub(crate) input: Option<String>,
    pub(crate) observation: String,
    pub(crate) is_error: bool,
}

impl Owned {
    pub(crate) fn step(&self) -> Step<'_> {
        let input = self.input.as_deref().map_or(Input::None, Input::Text);
        Step::thought(&self.thought)
            .with_action(self.tool.as_deref().unwrap_or(""), input)
            .with_observation(&self.observation)
            .with_error(self.is_error)
    }
}

#[rustfmt::skip]
const TOOLS: [&str; 9] = [
    "bash", "read", "edit", "Write", "apply_patch", "run_tests", "pytest", "search", "STR_REPLACE",
];
#[rustfmt::skip]
const WORDS: [&str; 44] = [
    "maybe", "perhaps", "wait", "await", "I think", "could", "actually", "hmm", "reconsider", "I was wrong",
    "never mind", "nevermind", "the bug is not", "disregard that", "fix is", "error", "failed", "FAILED ",
    "not found", "assertion", "AssertionError", "failures=1", "test", "invalid", "issue", "a.py", "src/b.rs",
    "C:\\x\\c.txt", "/tmp/x1/y", "/tmp/x2/z", "0xdeadbeef", "0xfeedface", "pid=12", "pid 7",
    "2024-01-02 03:04:05", "1234567890", "123e4567-e89b-12d3-a456-426614174000", "plain", "words", "é½²", "İ",
    "ſ", "\u{1c}", "字",
];

fn text(words: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..words)
        .prop_map(|words| words.join(" "))
}

pub(crate) fn step() -> impl Strategy<Value = Owned> {
    (
        text(8),
        prop::option::weighted(0.8, prop::sample::select(TOOLS.to_vec())),
        prop::option::of(text(6)),
        text(7),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(thought, tool, input, observation, is_error)| Owned {
            thought,
            tool: tool.map(str::to_owned),
            input,
            observation,
            is_error,
        })
}

pub(crate) fn trace(steps: usize) -> impl Strategy<Value = Vec<Owned>> {
    prop::collection::vec(step(), 0..steps)
}
