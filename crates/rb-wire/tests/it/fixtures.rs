//! Small sample file of every format: checks the detection and the imported runs.

use rb_wire::transcripts::{IMPORTERS, Imported, Importer, sniff};

use crate::render::render;

/// File of the folder `fixtures` with its format.
pub(crate) struct Fixture {
    pub(crate) name: &'static str,
    pub(crate) importer: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! fixtures {
    ($($importer:literal: $($name:literal),+;)+) => {
        pub(crate) const FIXTURES: &[Fixture] = &[$($(Fixture {
            name: $name,
            importer: $importer,
            bytes: include_bytes!(concat!("../fixtures/", $name)),
        }),+),+];
    };
}

fixtures! {
    "agent-error-bench": "agent-error-bench.json", "agent-error-bench-labels.json";
    "anthropic-messages": "anthropic-messages.json";
    "atif": "atif.json";
    "claude-code": "claude-code.jsonl", "claude-code-agent.jsonl";
    "claude-stream": "claude-stream.jsonl";
    "codex": "codex.jsonl", "codex-old.jsonl";
    "gemini-cli": "gemini-cli.json", "gemini-cli-lines.jsonl";
    "langfuse": "langfuse.json";
    "langsmith": "langsmith.jsonl", "langsmith-batch.json";
    "mast": "mast.json";
    "message-lines": "message-lines.jsonl";
    "mini-swe-agent": "mini-swe-agent.traj.json", "mini-swe-agent-tools.traj.json";
    "openai-chat": "openai-chat.jsonl";
    "openai-responses": "openai-responses.json";
    "openhands": "openhands.json", "openhands-kit.jsonl";
    "openhands-eval": "openhands-eval.jsonl";
    "openinference": "openinference.json", "trail-labels.json";
    "otel-genai": "otel-genai.json";
    "otlp": "otlp.jsonl";
    "runs": "runs.jsonl";
    "swe-agent": "swe-agent-v0.traj", "swe-agent-v1.traj";
    "tau-bench": "tau-bench.json";
    "tau2-bench": "tau2-bench.json";
    "who-and-when": "who-and-when.json";
}

/// Returns the importer with this id.
pub(crate) fn importer(id: &str) -> &'static Importer {
    IMPORTERS.iter().find(|importer| importer.id == id).expect(id)
}

#[test]
fn every_fixture_is_recognised_by_its_content() {
    for fixture in FIXTURES {
        let found = sniff(fixture.bytes).map(|importer| importer.id);
        assert_eq!(found, Some(fixture.importer), "{}", fixture.name);
    }
}

#[test]
fn every_format_has_a_fixture() {
    for importer in &IMPORTERS {
        assert!(FIXTURES.iter().any(|fixture| fixture.importer == importer.id), "{}", importer.id);
    }
}

#[test]
fn every_format_has_a_fuzz_target() {
    let manifest = include_str!("../../../../fuzz/Cargo.toml");
    for importer in &IMPORTERS {
        assert!(manifest.contains(&format!("name = \"{}\"\n", importer.id)), "{}", importer.id);
    }
}

#[test]
fn every_fixture_is_read() {
    for fixture in FIXTURES {
        let found: Imported<'_> = (importer(fixture.importer).parse)(fixture.bytes);
        insta::with_settings!({ snapshot_suffix => fixture.name }, {
            insta::assert_snapshot!("fixture", render(&found, 200));
        });
    }
}

#[test]
fn byte_order_marks_and_line_ends_of_windows_change_nothing() {
    for fixture in FIXTURES {
        let text = std::str::from_utf8(fixture.bytes).expect("UTF-8").replace('\n', "\r\n");
        let text = format!("\u{feff}{text}");
        assert_eq!(
            sniff(text.as_bytes()).map(|it| it.id),
            Some(fixture.importer),
            "{}",
            fixture.name
        );
        let parse = importer(fixture.importer).parse;
        let steps =
            |bytes| parse(bytes).0.into_iter().map(|run| run.steps.len()).collect::<Vec<_>>();
        assert_eq!(steps(text.as_bytes()), steps(fixture.bytes), "{}", fixture.name);
    }
}
