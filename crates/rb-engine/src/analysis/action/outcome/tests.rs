//! Outcomes of observations.

use super::*;

fn of(kind: Kind, answer: &str) -> Outcome {
    Outcome::of(
        &Step::default().with_observation(answer),
        kind,
        Source::default(),
        &mut String::new(),
    )
}

#[test]
fn failures_are_distinguished_from_mentions() {
    for (kind, answer, want) in [
        // Exit codes.
        (Kind::Run, "<returncode>1</returncode>\n<output>\nx\n</output>", Some(Why::ExitCode)),
        (Kind::Run, "<returncode>0</returncode>\n<output>\nx\n</output>", None),
        (Kind::Run, "x\n\nExit code: 2", Some(Why::ExitCode)),
        (Kind::Search, "<returncode>1</returncode>\n<output>\n</output>", None),
        (
            Kind::Search,
            "<returncode>2</returncode>\n<output>\ngrep: x: No such file or directory\n</output>",
            Some(Why::ExitCode),
        ),
        // Content with errors in it.
        (
            Kind::Read,
            "def f():\n    raise ValueError('x')\n\nclass MyError(Exception):\n    pass",
            None,
        ),
        (
            Kind::Read,
            "ValueError: this log\nhas many lines\nTraceback (most recent call last):\n x\nKeyError: 1\nend",
            None,
        ),
        (Kind::Search, "a.py:3:    error: str\nb.py:9: raise KeyError", None),
        (
            Kind::Read,
            "<returncode>0</returncode>\n<output>\nError: is the first word of this file\n</output>",
            None,
        ),
        (Kind::Run, "Compiled with 0 errors.", None),
        (Kind::Run, "No errors found", None),
        (Kind::Test, "5 passed, 0 failed", None),
        // Failed reads.
        (Kind::Read, "cat: a.py: No such file or directory", Some(Why::Text)),
        (Kind::Read, "Error: file not found", Some(Why::Text)),
        (Kind::Read, "<tool_use_error>File does not exist.</tool_use_error>", Some(Why::Text)),
        (Kind::Search, "Could not find [The Letter]. Similar: ['A', 'B']", Some(Why::Text)),
        // Programs.
        (
            Kind::Run,
            "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'",
            Some(Why::Text),
        ),
        (
            Kind::Run,
            "<returncode>0</returncode>\n<output>\nTraceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\n</output>",
            Some(Why::Text),
        ),
        (
            Kind::Run,
            "<returncode>0</returncode>\n<output>\nTraceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\ncaught\nand\nwent\non\nfine\n</output>",
            None,
        ),
        (Kind::Run, "bash: foo: command not found", Some(Why::Text)),
        (Kind::Run, "error[E0308]: mismatched types\n --> src/a.rs:3:5", Some(Why::Text)),
        (
            Kind::Run,
            "<returncode>0</returncode>\n<output>\nError: printed by the program\n</output>",
            None,
        ),
        (Kind::Edit, "String to replace not found in file.", Some(Why::Text)),
        (Kind::Edit, "The file a.py has been edited.", None),
    ] {
        assert_eq!(of(kind, answer).why, want, "{kind:?} {answer:?}");
    }
}

#[test]
fn outcomes_of_tests_structures_and_hosts() {
    for (kind, answer, want) in [
        // Test runs.
        (Kind::Test, "=== 3 failed, 2 passed in 0.12s ===", Some(Why::Tests)),
        (
            Kind::Test,
            "<returncode>0</returncode>\n<output>\n=== 1 failed in 0.1s ===\n</output>",
            Some(Why::Tests),
        ),
        (Kind::Test, "Ran 3 tests in 0.1s\n\nFAILED (failures=1)", Some(Why::Tests)),
        (Kind::Test, "FAIL: test_a\nAssertionError: 1 != 2", Some(Why::Text)),
        // Structured outputs.
        (Kind::Change, "{\"error\": \"no seats\"}", Some(Why::Structure)),
        (Kind::Read, "{\"error\": null, \"data\": 1}", None),
        (Kind::Read, "{\"status_code\": 404, \"body\": \"\"}", Some(Why::Structure)),
        (Kind::Read, "{\"success\": false}", Some(Why::Structure)),
        (Kind::Read, "{\"name\": \"error\", \"price\": 404}", None),
        (Kind::Change, "Error: payment method not found", Some(Why::Text)),
        // Other hosts.
        (
            Kind::Edit,
            "ERROR:\nNo replacement was performed, old_str `x` did not appear",
            Some(Why::Text),
        ),
        (Kind::Run, "Error: locator.click: Timeout 30000ms exceeded.", Some(Why::Text)),
        (Kind::Run, "Tool `frob` does not exist", Some(Why::Text)),
        (Kind::Run, "Process exited with code 2\nOutput:\nusage: x", Some(Why::ExitCode)),
        (
            Kind::Run,
            "hi\n[The command completed with exit code 0.]\n[Current working directory: /r]",
            None,
        ),
        (
            Kind::Run,
            "The last command <command>x</command> timed out and has been killed.",
            Some(Why::Text),
        ),
        (Kind::Read, "     1\tfn main() {\n     2\t    panic!(\"error: x\");\n     3\t}", None),
        (Kind::Search, "Found 3 files\nsrc/error.rs\nsrc/failure.rs\ntests/errors.rs", None),
        (Kind::Run, "warning: unused variable\n    Finished `dev` profile in 0.3s", None),
        (Kind::Run, "src/a.rs:3:5: error: expected `;`\nmore", Some(Why::Text)),
        (Kind::Run, "go: downloading x v1.2.3\n./a.go:3:5: undefined: x", Some(Why::Text)),
        (Kind::Run, "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1", Some(Why::Text)),
        (Kind::Run, "Uncaught TypeError: x is not a function\n    at a.js:3", Some(Why::Text)),
        // Messages.
        (Kind::Message, "Error: I see an error on my side, please help", None),
        (Kind::Message, "exitcode: 1 (execution failed)\nCode output: x", Some(Why::ExitCode)),
        (Kind::Run, "", None),
    ] {
        assert_eq!(of(kind, answer).why, want, "{kind:?} {answer:?}");
    }
}

#[test]
fn structured_shell_outputs_are_unwrapped() {
    for (answer, code, why, signature) in [
        (
            r#"{"output": "Traceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\n", "metadata": {"exit_code": 1}}"#,
            Some(1),
            Some(Why::ExitCode),
            "KeyError: 'x'",
        ),
        (r#"{"stdout": "3 passed in 0.1s", "stderr": "", "exit_code": 0}"#, Some(0), None, ""),
        (
            r#"{"stdout": "=== 1 failed, 3 passed in 0.1s ===", "returncode": 0}"#,
            Some(0),
            Some(Why::Tests),
            "=== 1 failed, 3 passed in 0.1s ===",
        ),
        (r#"{"a": 1}"#, None, None, ""),
    ] {
        let step = Step::default().with_observation(answer);
        let source = Source { is_printed: true, compares: false };
        let outcome = Outcome::of(&step, Kind::Test, source, &mut String::new());
        let found = (outcome.exit_code, outcome.why, outcome.signature_text.as_str());
        assert_eq!(found, (code, why, signature), "{answer}");
    }
}

#[test]
fn a_reported_difference_is_not_a_failure() {
    let step =
        Step::default().with_observation("--- a\n+++ b\n-x\n+y\n\nExit code: 1").with_error(true);
    let of = |compares| {
        let source = Source { is_printed: true, compares };
        Outcome::of(&step, Kind::Read, source, &mut String::new()).failed
    };
    assert!(!of(true) && of(false));
}

#[test]
fn host_errors_count_except_for_empty_searches() {
    let step = Step::default().with_observation("fine").with_error(true);
    assert_eq!(
        Outcome::of(&step, Kind::Run, Source::default(), &mut String::new()).why,
        Some(Why::Host)
    );
    let step = Step::default().with_observation("").with_error(true);
    assert!(!Outcome::of(&step, Kind::Search, Source::default(), &mut String::new()).failed);
}

#[test]
fn the_essential_line_is_found() {
    for (kind, answer, want) in [
        (
            Kind::Run,
            "Traceback (most recent call last):\n  File \"a.py\", line 7\nKeyError: 'x'\n",
            "KeyError: 'x'",
        ),
        (
            Kind::Run,
            "Traceback (most recent call last):\nKeyError: 'x'\n\nDuring handling\n\nTraceback (most recent call last):\nValueError: bad",
            "ValueError: bad",
        ),
        (
            Kind::Run,
            "error[E0308]: mismatched types\n...\nerror: could not compile `a`",
            "error[E0308]: mismatched types",
        ),
        (
            Kind::Test,
            "    assert f(1)\nE       assert 1 == 2\nFAILED a.py::b\n=== 1 failed in 0.1s ===",
            "assert 1 == 2",
        ),
        (
            Kind::Change,
            "{\"error\": {\"code\": 4, \"message\": \"no seats left\"}}",
            "no seats left",
        ),
        (
            Kind::Read,
            "cat: a.py: No such file or directory",
            "cat: a.py: No such file or directory",
        ),
        (Kind::Run, "something odd\nExit code: 3", "something odd"),
    ] {
        assert_eq!(of(kind, answer).signature_text, want, "{answer:?}");
    }
}

#[test]
fn the_same_error_has_the_same_signature() {
    let signature =
        |answer: &str| (of(Kind::Run, answer).signature, of(Kind::Run, answer).signature_class);
    let a = signature("  File \"a.py\", line 7\nValueError: bad id 17 at 0x7f00aa11");
    let b = signature("  File \"b.py\", line 9\nValueError: bad id 23 at 0x7f00bb22");
    assert!(a.0.is_some() && a == b);
    let c = signature("ModuleNotFoundError: No module named 'foo'");
    let d = signature("ModuleNotFoundError: No module named 'bar'");
    assert!(c.0 != d.0 && c.1 == d.1);
}

#[test]
fn the_result_key_ignores_volatile_text() {
    let key = |answer: &str| of(Kind::Run, answer).result_key;
    assert_eq!(key("2 passed in 0.12s"), key("2 passed  in 0.34s\n"));
    assert_ne!(key("2 passed in 0.12s"), key("3 passed in 0.12s"));
    let long = "x ".repeat(60_000);
    assert_ne!(key(&format!("{long}a")), key(&format!("{long}b")));
}

#[test]
fn empty_outputs_are_recognised() {
    for (answer, want) in [
        ("", true),
        (" \n", true),
        ("<returncode>0</returncode>\n<output>\n</output>", true),
        ("(no output)", true),
        ("No matches found", true),
        ("No Results", true),
        ("No man is an island, entire of itself; every man is a piece", false),
        ("exitcode: 0 (execution succeeded)\nCode output:", true),
        ("x", false),
    ] {
        assert_eq!(of(Kind::Run, answer).is_empty, want, "{answer:?}");
    }
}

#[test]
fn success_requires_positive_evidence() {
    assert!(of(Kind::Run, "<returncode>0</returncode>").succeeded);
    assert!(of(Kind::Test, "4 passed in 0.1s").succeeded);
    assert!(!of(Kind::Run, "hello").succeeded);
    assert!(!of(Kind::Test, "=== no tests ran in 0.01s ===").succeeded);
}
