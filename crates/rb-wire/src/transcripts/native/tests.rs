//! Tests of valid, unusual and invalid lines.

use proptest::prelude::*;
use rb_engine::step::{Input, Step};

use super::*;
use crate::model::RunInput;

/// Formats the result of a line for a snapshot.
fn told(line: &[u8]) -> String {
    use std::fmt::Write as _;
    let (run, kinds) = parse_line(line);
    let mut told = String::new();
    for kind in kinds {
        writeln!(told, "! {kind}").expect("a string takes anything");
    }
    if let Some(run) = run {
        let id = run.run_id.as_deref();
        writeln!(told, "run {id:?} {:?} {:?}", run.outcome, run.labels).expect("as above");
        for RunStep { thought, tool, input, observation, is_error, .. } in run.steps {
            writeln!(told, "  {thought:?} {tool:?} {input:?} => {observation:?} {is_error}")
                .expect("as above");
        }
    }
    told
}

#[test]
fn a_whole_run() {
    insta::assert_snapshot!(told(r#"{"run_id": "r1", "dataset": "d", "task": "t", "outcome": "success", "labels": {"x": [1, 2]}, "steps": [
        {"step_index": 0, "thought": "look", "action": "read", "action_input": "a.rs", "observation": "fn a() {}\n", "is_error": false},
        {"thought": null, "action": "search", "action_input": {"q": 1}, "observation": null, "is_error": null}]}"#
        .replace('\n', " ").as_bytes()), @r#"
    run Some("r1") Some("success") Some("{\"x\": [1, 2]}")
      "look" "read" Text("a.rs") => "fn a() {}\n" false
      "" "search" Structured("{\"q\": 1}") => "" false
    "#);
}

#[test]
fn a_step_is_read_as_the_reference_reads_it() {
    let cases = [
        ("{}", Step::default()),
        (r#"{"action": "", "tool_calls": ["bash", "x"]}"#, tool("bash", Input::None)),
        (r#"{"action": 7, "tool_calls": [ "bash" ]}"#, tool("bash", Input::None)),
        (r#"{"action": "a", "tool_calls": ["b"]}"#, tool("a", Input::None)),
        (r#"{"tool_calls": [null, "b"]}"#, Step::default()),
        (r#"{"tool_calls": [1, "b"]}"#, Step::default()),
        (r#"{"tool_calls": [{"name": "b"}]}"#, Step::default()),
        (r#"{"tool_calls": []}"#, Step::default()),
        (r#"{"tool_calls": "bash"}"#, Step::default()),
        (r#"{"tool_calls": {"0": "b"}}"#, Step::default()),
        (r#"{"action": "a", "action_input": "x"}"#, tool("a", Input::Text("x"))),
        (r#"{"action": "a", "action_input": ""}"#, tool("a", Input::Text(""))),
        (r#"{"action": "a", "action_input": null}"#, tool("a", Input::None)),
        (r#"{"action": "a", "action_input": 1e999}"#, tool("a", Input::Structured("1e999"))),
        (r#"{"action": "a", "action_input": false}"#, tool("a", Input::Structured("false"))),
        (r#"{"action": "a", "action_input": [1, {}]}"#, tool("a", Input::Structured("[1, {}]"))),
        (r#"{"thought": ["x"], "observation": {"y": 1}}"#, Step::default()),
        (r#"{"thought": 1e999, "observation": true}"#, Step::default()),
        (r#"{"thought": "a", "thought": "b"}"#, Step::thought("b")),
        (r#"{"thought": "a", "thought": null}"#, Step::default()),
        (r#"{"is_error": "no"}"#, Step::default().with_error(true)),
        (r#"{"is_error": true, "is_error": 0}"#, Step::default()),
        (r#"{"is_error": null, "observation_is_error": [0]}"#, Step::default().with_error(true)),
        (r#"{"\ud800": 1, "observation": "o"}"#, Step::default().with_observation("o")),
        (r#"{"user_input": "hi"}"#, Step { user_input: "hi", ..Step::default() }),
    ];
    for (step, expected) in cases {
        let line = format!(r#"{{"steps": [{step}]}}"#);
        let (run, kinds) = parse_line(line.as_bytes());
        assert_eq!(kinds, [], "{step}");
        assert_eq!(run.expect(step).steps[0].step(), expected, "{step}");
    }
}

fn tool<'a>(tool: &'a str, input: Input<'a>) -> Step<'a> {
    Step::default().with_action(tool, input)
}

#[test]
fn bad_lines_say_what_is_wrong_and_what_to_do() {
    let lines: [&[u8]; 22] = [
        b"",
        b" \t\r",
        b"\xef\xbb\xbf{\"run_id\": 12.50, \"steps\": []}\r",
        b"hello",
        b"{",
        b"{\"steps\": []} {}",
        b"{\"steps\": [}",
        b"{\"steps\": [1e999]}",
        b"{\"run_id\": \"a\tb\", \"steps\": []}",
        b"[]",
        b"[{\"steps\": []}]",
        b"\"x\"",
        b"null",
        b"1",
        b"{}",
        b"{\"steps\": null}",
        b"{\"steps\": {\"0\": {}}}",
        b"{\"steps\": \"none\"}",
        b"{\"run_id\": null, \"outcome\": 1, \"labels\": null, \"steps\": [{}, null, [[1]], \"x\", 1, true, {\"thought\": \"t\"}]}",
        b"{\"steps\": [{\"thought\": \"a\xffb\", \"action\": \"\\ud800\"}]}",
        b"{\"run_id\": \"\\udfff\", \"labels\": {\"reward\": NaN}, \"steps\": [{\"is_error\": -Infinity}]}",
        b"{\"run_id\": true, \"steps\": [], \"steps\": [{\"thought\": \"last wins\"}]}",
    ];
    let told: Vec<String> = lines
        .iter()
        .map(|line| format!("{:?}\n{}", String::from_utf8_lossy(line), told(line)))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn nesting_of_any_depth_is_passed_over() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for (line, steps) in [
        (format!(r#"{{"x": {deep}, "steps": [{{"action": "a", "action_input": {deep}}}]}}"#), 1),
        (format!(r#"{{"labels": {deep}, "run_id": {deep}, "steps": [{{"thought": {deep}}}]}}"#), 1),
        (format!(r#"{{"steps": [{deep}, {{}}]}}"#), 2),
    ] {
        let (run, _) = parse_line(line.as_bytes());
        assert_eq!(run.expect("a run").steps.len(), steps);
    }
    let (run, kinds) = parse_line(&deep.as_bytes()[..1_000_000]);
    assert_eq!((run, kinds), (None, vec![DiagnosticKind::NotAnObject { found: "a list" }]));
}

#[test]
fn texts_without_escapes_are_borrowed() {
    let line = r#"{"run_id": "r", "steps": [{"thought": "plain", "observation": "a\nb"}]}"#;
    let (run, _) = parse_line(line.as_bytes());
    let run = run.expect("a run");
    assert!(matches!(run.run_id, Some(Cow::Borrowed("r"))));
    assert!(matches!(run.steps[0].thought, Cow::Borrowed("plain")));
    assert!(matches!(run.steps[0].observation, Cow::Owned(_)));
}

#[test]
fn several_lines_are_numbered() {
    let (runs, diagnostics) = parse(b"{\"steps\":[]}\n\noops\n{\"run_id\":2,\"steps\":[]}\n");
    assert_eq!(runs.len(), 2);
    assert_eq!(diagnostics.iter().map(|diagnostic| diagnostic.line).collect::<Vec<_>>(), [3]);
    assert!(diagnostics[0].is_loss());
}

#[test]
fn the_format_is_recognised_by_its_steps() {
    for (beginning, expected) in [
        ("{\"run_id\": 1, \"steps\": [", true),
        ("\n  {\"steps\": [", true),
        ("\u{feff}{\"steps\": []}", true),
        ("{\"type\": \"user\"}\n{\"steps\": []}", true),
        ("[{\"steps\": []}]", false),
        ("steps", false),
    ] {
        assert_eq!(sniff(&FilePreview::at(beginning.as_bytes())), expected, "{beginning}");
    }
}

/// Generates steps whose fields have values of any JSON type.
fn a_step() -> impl Strategy<Value = serde_json::Value> {
    let value = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::json!(null)),
        prop::collection::vec(any::<String>(), 0..3).prop_map(serde_json::Value::from),
        any::<(String, u8)>().prop_map(|(key, value)| serde_json::json!({ key: value })),
    ];
    prop::collection::vec(value, 6).prop_map(|values| {
        let keys = ["thought", "action", "action_input", "observation", "is_error", "tool_calls"];
        keys.into_iter().zip(values).map(|(key, value)| (key.to_owned(), value)).collect()
    })
}

proptest! {
    #[test]
    fn no_bytes_break_it(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_line(&line);
        let _ = super::super::sniff(&line);
    }

    /// Damages a valid line by changing some bytes.
    #[test]
    fn no_damage_breaks_it(step in a_step(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)) {
        let mut line = serde_json::json!({ "run_id": "r", "steps": [step] }).to_string().into_bytes();
        for (at, byte) in changes {
            let at = at.index(line.len());
            line[at] = byte;
        }
        let _ = parse(&line);
    }

    /// Checks that a serialised run is read back, in any escaping.
    #[test]
    fn what_is_written_is_read(step in a_step(), run_id in "\\PC+") {
        let line = serde_json::json!({ "run_id": run_id, "steps": [step] }).to_string();
        let ascii: String = line.chars().flat_map(|c| {
            let mut units = [0; 2];
            let escape = |unit: &u16| format!("\\u{unit:04x}");
            let text = if c.is_ascii() { c.to_string() } else { c.encode_utf16(&mut units).iter().map(escape).collect() };
            text.chars().collect::<Vec<_>>()
        }).collect();
        let text = |key: &str| step[key].as_str().unwrap_or_default();
        for line in [&line, &ascii] {
            let (run, kinds) = parse_line(line.as_bytes());
            prop_assert_eq!(kinds, vec![]);
            let run = run.expect("a run");
            prop_assert_eq!(run.run_id.as_deref(), Some(run_id.as_str()));
            prop_assert_eq!(&run.steps[0].thought, text("thought"));
            prop_assert_eq!(&run.steps[0].observation, text("observation"));
            if !text("action").is_empty() {
                prop_assert_eq!(&run.steps[0].tool, text("action"));
            }
            match &run.steps[0].input {
                RunInput::None => prop_assert!(step["action_input"].is_null()),
                RunInput::Text(input) => prop_assert_eq!(input, text("action_input")),
                RunInput::Structured(_) => prop_assert!(!step["action_input"].is_string()),
            }
            prop_assert_eq!(run.clone().into_owned(), run);
        }
    }
}
