//! What `rb check` says, to people and to programs.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::{line, rb, run, told};

fn step(thought: &str, tool: &str, input: &str, observation: &str) -> Value {
    json!({ "thought": thought, "action": tool, "action_input": input, "observation": observation, "is_error": false })
}

/// An agent that edits, tests, fails in the same way and takes things back.
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
fn people_see_a_strip() {
    let input = line("stuck", "failure", &stuck()) + &line("calm", "success", &calm());
    insta::assert_snapshot!(told(&run(&["check", "-"], input.as_bytes())));
}

/// The page that people read first shows what the command prints.
#[test]
fn the_readme_shows_the_sample_as_it_is_printed() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let readme = fs::read_to_string(format!("{root}/README.md")).expect("a README");
    let output = run(&["check", &format!("{root}/docs/sample.jsonl")], b"");
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    let first_run = printed.split("\n\n").next().expect("a run");
    assert!(readme.contains(first_run), "put this into the README:\n{first_run}");
}

#[test]
fn people_see_colour_when_they_ask_for_it() {
    let input = line("stuck", "failure", &stuck());
    let output = run(&["check", "-", "--color", "always"], input.as_bytes());
    insta::assert_snapshot!(told(&output).replace('\u{1b}', "ESC"));
}

#[test]
fn programs_see_json() {
    let steps = [&stuck()[..3], &[json!({ "thought": " " }), json!({})]].concat();
    let input = line("r", "failure", &steps) + "{\"steps\": []}\n";
    insta::assert_snapshot!(told(&run(&["check", "-", "--json"], input.as_bytes())));
}

#[test]
fn help_is_helpful() {
    insta::assert_snapshot!("help", told(&run(&["--help"], b"")));
    insta::assert_snapshot!("help-check", told(&run(&["check", "--help"], b"")));
}

#[test]
fn the_exit_code_tells() {
    let (stuck, calm) = (line("s", "failure", &stuck()), line("c", "success", &calm()));
    for (input, code) in [
        (calm.clone(), 0),
        ("{\"steps\": []}".to_owned(), 0),
        (stuck.clone(), 1),
        (format!("{calm}{stuck}"), 1),
        (format!("{calm}oops\n{stuck}"), 2),
        (format!("{{\"steps\": [{{\"thought\": \"{}\"}}]}}", "\\ud800"), 0), // mended, not lost
        (String::new(), 2),
        ("\n \n".to_owned(), 2),
    ] {
        for format in [&["check", "-"][..], &["check", "-", "--json"]] {
            let output = run(format, input.as_bytes());
            assert_eq!(output.status.code(), Some(code), "{input} {}", told(&output));
        }
    }
}

#[test]
fn bad_lines_are_told_and_the_rest_goes_on() {
    let mut input = b"oops\n\n[1]\n{\"run_id\": 7}\n{\"run_id\": \"x\", \"steps\": 7}\n{\"run_id\": \"half\", \"steps\": [1, {}, {\"thought\": \"fine\"}]}\n".to_vec();
    input.extend(b"{\"run_id\": \"bytes \xff\", \"outcome\": 1, \"steps\": [{\"thought\": \"\xf0\x28 NaN\", \"x\": NaN}]}\n");
    input.extend(b"{\"steps\": [{\"action\": null, \"observation\": 3, \"is_error\": {}}]}");
    insta::assert_snapshot!(told(&run(&["check", "-"], &input)));
    let flood = "oops\n".repeat(1000);
    insta::assert_snapshot!("flood", told(&run(&["check", "-"], flood.as_bytes())));
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
    let told: Vec<String> = cases
        .iter()
        .map(|flags| {
            let args = [&["check", "-"], *flags].concat();
            format!("$ rb {}\n{}", args.join(" "), told(&run(&args, input.as_bytes())))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn folders_are_read_in_order_and_gzip_by_its_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
    fs::create_dir(folder.path().join("b")).expect("a folder");
    write("c.jsonl", line("c", "success", &calm()).as_bytes());
    write("a.jsonl.gz", &gzip(line("a", "success", &calm()).as_bytes()));
    write("b/2.ndjson", line("b2", "success", &calm()).as_bytes());
    // Two members in one file, and a name that does not say so.
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
    let output = run(&["check", path], b"");
    let told = told(&output).replace(path, "FOLDER");
    let heads: Vec<&str> = told.lines().filter(|line| line.starts_with(['○', '●', 'F'])).collect();
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
fn formats_are_found_by_their_content() {
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
    insta::assert_snapshot!(told(&run(&["check", path], b"")).replace(path, "FOLDER"));
    let named = folder.path().join("settings.json");
    let output = run(&["check", named.to_str().expect("UTF-8")], b"");
    insta::assert_snapshot!("named", told(&output).replace(path, "FOLDER"));
}

#[test]
fn a_broken_archive_costs_its_end_only() {
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
fn an_empty_folder_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    insta::assert_snapshot!(told(&run(&["check", path], b"")).replace(path, "FOLDER"), @r"
    --- stderr
    error: FOLDER holds no transcripts (*.jsonl, *.ndjson, *.json, *.traj, *.log, also with .gz); name the files themselves if theirs end differently
    --- exit 2
    ");
}

#[test]
fn hostile_text_is_shown_harmlessly() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}txt\u{200b}\u{9b}31m\r\n";
    let steps: Vec<Value> = (0..4)
        .map(|_| step(evil, "edit", &format!("{evil}.rs"), &format!("test failed {evil}")))
        .chain((0..4).map(|_| step("", evil, evil, "")))
        .collect();
    let input = line(evil, evil, &steps);
    let output = run(&["check", "-"], input.as_bytes());
    let told = told(&output);
    let harmful = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
    assert!(!told.contains(harmful), "{told:?}");
    assert!(told.contains("\\u{1b}]0;owned"), "{told}");
    // As JSON the text is kept, escaped.
    let output = run(&["check", "-", "--json"], input.as_bytes());
    let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(run["run_id"], evil);
}

#[test]
fn colour_heeds_the_environment() {
    let input = tempfile::NamedTempFile::new().expect("a file");
    fs::write(input.path(), line("stuck", "failure", &stuck())).expect("a file");
    let path = input.path().to_str().expect("UTF-8");
    for (flag, variable, colored) in [
        ("auto", ("CLICOLOR_FORCE", "1"), true),
        ("auto", ("X", ""), false), // a pipe is no terminal
        ("never", ("CLICOLOR_FORCE", "1"), false),
        ("always", ("NO_COLOR", "1"), true),
    ] {
        let mut command = rb(&["check", path, "--color", flag]);
        let output = command.env(variable.0, variable.1).output().expect("rb runs");
        assert_eq!(output.stdout.contains(&0x1b), colored, "{flag} {variable:?}");
    }
}

#[test]
fn many_runs_come_out_in_the_order_they_went_in() {
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
