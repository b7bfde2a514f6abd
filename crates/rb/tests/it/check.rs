//! Output of `rb check` as text and as JSON.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::{line, printed, rb, run};

fn step(thought: &str, tool: &str, input: &str, observation: &str) -> Value {
    json!({ "thought": thought, "action": tool, "action_input": input, "observation": observation, "is_error": false })
}

/// Steps of an agent that edits, gets the same test failure and retracts its claims.
fn stuck() -> Vec<Value> {
    let mut steps = vec![json!({ "thought": "Let me look at the failing test first." })];
    for round in 0..3 {
        steps.push(step("", "edit", &format!("src/parse.rs: x = {round}"), "ok"));
        steps.push(step(
            "Maybe that could work.",
            "run_tests",
            "all",
            "1 test failed: assertion `left == right`",
        ));
    }
    steps.push(step("I was wrong, the lexer does it.", "read", "src/lex.rs", "fn lex() {}"));
    steps
}

fn calm() -> Vec<Value> {
    vec![step("Read it.", "read", "a.rs", "fn a() {}"), step("Run it.", "bash", "cargo run", "ok")]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn runs_are_shown_as_sparklines() {
    let input = line("stuck", "failure", &stuck()) + &line("calm", "success", &calm());
    insta::assert_snapshot!(printed(&run(&["check", "-", "--suite", "both"], input.as_bytes())));
}

#[test]
fn the_readme_shows_the_output_for_the_sample() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let readme = fs::read_to_string(format!("{root}/README.md")).expect("a README");
    let output = run(&["check", &format!("{root}/docs/sample.jsonl")], b"");
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    let first_run = printed.split("\n\n").next().expect("a run");
    assert!(readme.contains(first_run), "put this into the README:\n{first_run}");
}

#[test]
fn colour_can_be_forced() {
    let input = line("stuck", "failure", &stuck());
    let output = run(&["check", "-", "--color", "always", "--suite", "both"], input.as_bytes());
    insta::assert_snapshot!(printed(&output).replace('\u{1b}', "ESC"));
}

#[test]
fn runs_are_written_as_json() {
    let steps = [&stuck()[..3], &[json!({ "thought": " " }), json!({})]].concat();
    let input = line("r", "failure", &steps) + "{\"steps\": []}\n";
    insta::assert_snapshot!(printed(&run(
        &["check", "-", "--json", "--suite", "both"],
        input.as_bytes()
    )));
}

#[test]
fn help_texts() {
    insta::assert_snapshot!("help", printed(&run(&["--help"], b"")));
    insta::assert_snapshot!("help-check", printed(&run(&["check", "--help"], b"")));
}

#[test]
fn exit_codes() {
    let (stuck, calm) = (line("s", "failure", &stuck()), line("c", "success", &calm()));
    for (input, code) in [
        (calm.clone(), 0),
        ("{\"steps\": []}".to_owned(), 0),
        (stuck.clone(), 1),
        (format!("{calm}{stuck}"), 1),
        (format!("{calm}oops\n{stuck}"), 2),
        (format!("{{\"steps\": [{{\"thought\": \"{}\"}}]}}", "\\ud800"), 0), // repaired, not lost
        (String::new(), 2),
        ("\n \n".to_owned(), 2),
    ] {
        for format in [&[][..], &["--json"]] {
            let output =
                run(&[&["check", "-", "--suite", "both"], format].concat(), input.as_bytes());
            assert_eq!(output.status.code(), Some(code), "{input} {}", printed(&output));
        }
    }
}

#[test]
fn heuristic_monitors_are_signals_unless_their_suite_is_asked_for() {
    let input = line("stuck", "failure", &stuck());
    let cases: [(&[&str], &str, i32); 3] = [
        (&[], "quiet; signals: edit_revert, test_repeat, hedge", 0),
        (&["--suite", "heuristic"], "fired: edit_revert, test_repeat, hedge", 1),
        (&["--suite", "both"], "fired: edit_revert, test_repeat, hedge", 1),
    ];
    for (suite, words, code) in cases {
        let output = run(&[&["check", "-"], suite].concat(), input.as_bytes());
        assert!(printed(&output).contains(words), "{suite:?}: {}", printed(&output));
        assert_eq!(output.status.code(), Some(code), "{suite:?}");
        let output = run(&[&["check", "-", "--json"], suite].concat(), input.as_bytes());
        let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let ids = |list: &Value| -> Vec<Value> {
            list.as_array().into_iter().flatten().map(|fire| fire["monitor"].clone()).collect()
        };
        let monitors = ["edit_revert", "test_repeat", "hedge"].map(|id| json!(id)).to_vec();
        let (fired, signals) = if code == 1 { (monitors, vec![]) } else { (vec![], monitors) };
        assert_eq!((ids(&run["fires"]), ids(&run["signals"])), (fired, signals), "{suite:?}");
    }
}

#[test]
fn bad_lines_are_reported_and_the_rest_is_checked() {
    let mut input = b"oops\n\n[1]\n{\"run_id\": 7}\n{\"run_id\": \"x\", \"steps\": 7}\n{\"run_id\": \"half\", \"steps\": [1, {}, {\"thought\": \"fine\"}]}\n".to_vec();
    input.extend(b"{\"run_id\": \"bytes \xff\", \"outcome\": 1, \"steps\": [{\"thought\": \"\xf0\x28 NaN\", \"x\": NaN}]}\n");
    input.extend(b"{\"steps\": [{\"action\": null, \"observation\": 3, \"is_error\": {}}]}");
    insta::assert_snapshot!(printed(&run(&["check", "-"], &input)));
    let flood = "oops\n".repeat(1000);
    insta::assert_snapshot!("flood", printed(&run(&["check", "-"], flood.as_bytes())));
}

#[test]
fn flags_are_checked() {
    let input = line("calm", "success", &calm());
    let cases: [&[&str]; 9] = [
        &["--suite", "semantic"],
        &["--suite", "all"],
        &["--profile", "qua"],
        &["--weight", "streak"],
        &["--weight", "streak=many"],
        &["--weight", "sterak=0.5"],
        &["--weight", "streak=NaN", "--weight", "hedge=7", "--weight", "diversity=-inf"],
        &["--suite", "heuristic", "--profile", "qa", "--weight", "call_count=0.5", "--only-fired"],
        &["no-such-file.jsonl", "no-such-folder/"],
    ];
    let printed: Vec<String> = cases
        .iter()
        .map(|flags| {
            let args = [&["check", "-"], *flags].concat();
            format!("$ rb {}\n{}", args.join(" "), printed(&run(&args, input.as_bytes())))
        })
        .collect();
    insta::assert_snapshot!(printed.join("\n"));
}

#[test]
fn directories_are_read_in_order_and_gzip_is_detected_by_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
    fs::create_dir(folder.path().join("b")).expect("a folder");
    write("c.jsonl", line("c", "success", &calm()).as_bytes());
    write("a.jsonl.gz", &gzip(line("a", "success", &calm()).as_bytes()));
    write("b/2.ndjson", line("b2", "success", &calm()).as_bytes());
    // Two gzip members in one file without the extension.
    write(
        "b/1.jsonl",
        &[
            gzip(line("b1", "success", &calm()).as_bytes()),
            gzip(line("b1+", "failure", &stuck()).as_bytes()),
        ]
        .concat(),
    );
    write("README.md", b"not a transcript");
    let path = folder.path().to_str().expect("UTF-8");
    let output = run(&["check", path, "--suite", "both"], b"");
    let printed = printed(&output).replace(path, "FOLDER");
    let heads: Vec<&str> =
        printed.lines().filter(|line| line.starts_with(['○', '●', 'F'])).collect();
    insta::assert_snapshot!(heads.join("\n"), @r"
    FOLDER/a.jsonl.gz
    ○ a  success  2 steps  peak 0.01 at step 1  quiet
    FOLDER/b/1.jsonl
    ○ b1  success  2 steps  peak 0.01 at step 1  quiet
    ● b1+  failure  8 steps  peak 0.45 at step 7  fired: edit_revert, test_repeat, hedge
    FOLDER/b/2.ndjson
    ○ b2  success  2 steps  peak 0.01 at step 1  quiet
    FOLDER/c.jsonl
    ○ c  success  2 steps  peak 0.01 at step 1  quiet
    ");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        run(&["check", "-"], &gzip(line("z", "", &calm()).as_bytes())).status.code(),
        Some(0)
    );
}

#[test]
fn formats_are_detected_by_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
    let chat = json!({ "messages": [
        { "role": "user", "content": "Go." },
        { "role": "assistant", "content": "I go." },
    ] });
    let session = json!({ "sessionId": "s", "projectHash": "0", "startTime": "2026-01-01T00:00:00Z",
        "messages": [{ "type": "gemini", "content": "Done." }] });
    write("a.json", serde_json::to_string_pretty(&chat).expect("JSON").as_bytes());
    write("b.jsonl", format!("{chat}\n{chat}\n").as_bytes());
    write("c.log", session.to_string().as_bytes());
    write("d.traj.gz", &gzip(&session.to_string().into_bytes()[..110]));
    write("e.json", format!("[[{0}], [{0}]]", chat["messages"][1]).as_bytes());
    write("package.json", b"{\"name\": \"not a transcript\"}");
    write("settings.json", b"{\n  \"theme\": 1\n}");
    let path = folder.path().to_str().expect("UTF-8");
    insta::assert_snapshot!(printed(&run(&["check", path], b"")).replace(path, "FOLDER"));
    let named = folder.path().join("settings.json");
    let output = run(&["check", named.to_str().expect("UTF-8")], b"");
    insta::assert_snapshot!("named", printed(&output).replace(path, "FOLDER"));
}

#[test]
fn a_truncated_archive_loses_only_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = crate::traces::Random::new(1);
    let runs: String = (0..400)
        .map(|at| {
            line(&format!("r{at}"), "success", &[json!({ "thought": random.next().to_string() })])
        })
        .collect();
    let whole = gzip(runs.as_bytes());
    fs::write(folder.path().join("cut.jsonl.gz"), &whole[..whole.len() / 2]).expect("a file");
    fs::write(folder.path().join("empty.jsonl"), "").expect("a file");
    let output = run(&["check", folder.path().to_str().expect("UTF-8"), "--json"], b"");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("cannot read") && stderr.contains("cut.jsonl.gz"), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
    let read = String::from_utf8_lossy(&output.stdout).lines().count();
    assert!((100..300).contains(&read), "{read} runs");
}

#[test]
fn an_empty_directory_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    insta::assert_snapshot!(printed(&run(&["check", path], b"")).replace(path, "FOLDER"), @r"
    --- stderr
    error: no transcripts in FOLDER (*.jsonl, *.ndjson, *.json, *.traj, *.log, also with .gz); name files with other extensions explicitly
    --- exit 2
    ");
}

#[test]
fn hostile_text_is_escaped() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}txt\u{200b}\u{9b}31m\r\n";
    let steps: Vec<Value> = (0..4)
        .map(|_| step(evil, "edit", &format!("{evil}.rs"), &format!("test failed {evil}")))
        .chain((0..4).map(|_| step("", evil, evil, "")))
        .collect();
    let input = line(evil, evil, &steps);
    let output = run(&["check", "-"], input.as_bytes());
    let printed = printed(&output);
    let harmful = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
    assert!(!printed.contains(harmful), "{printed:?}");
    assert!(printed.contains("\\u{1b}]0;owned"), "{printed}");
    // JSON keeps the text.
    let output = run(&["check", "-", "--json"], input.as_bytes());
    let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(run["run_id"], evil);
}

#[test]
fn colour_depends_on_the_environment() {
    let input = tempfile::NamedTempFile::new().expect("a file");
    fs::write(input.path(), line("stuck", "failure", &stuck())).expect("a file");
    let path = input.path().to_str().expect("UTF-8");
    for (flag, variable, colored) in [
        ("auto", ("CLICOLOR_FORCE", "1"), true),
        ("auto", ("X", ""), false), // a pipe, not a terminal
        ("never", ("CLICOLOR_FORCE", "1"), false),
        ("always", ("NO_COLOR", "1"), true),
    ] {
        let mut command = rb(&["check", path, "--color", flag]);
        let output = command.env(variable.0, variable.1).output().expect("rb runs");
        assert_eq!(output.stdout.contains(&0x1b), colored, "{flag} {variable:?}");
    }
}

#[test]
fn many_runs_keep_their_order() {
    let runs: String = (0..3000)
        .map(|at| {
            let steps: Vec<Value> = (0..at * 7 % 50)
                .map(|n| step("Go on.", "read", &n.to_string(), &"x".repeat(100)))
                .collect();
            line(&format!("r{at}"), "", &steps)
        })
        .collect();
    let output = run(&["check", "-", "--json"], runs.as_bytes());
    let ids: Vec<String> = String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("JSON")["run_id"]
                .as_str()
                .expect("an id")
                .to_owned()
        })
        .collect();
    assert_eq!(ids, (0..3000).map(|at| format!("r{at}")).collect::<Vec<_>>());
}
