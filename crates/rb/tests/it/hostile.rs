//! Hostile text in transcripts: no command may print it unescaped to a terminal or into a page.

use std::fs;
use std::path::Path;

use crate::{line, printed, run};

/// Texts that are harmful if printed unescaped.
const HOSTILE: [(&str, &str); 8] = [
    ("a script", "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>"),
    ("a title", "\u{1b}]0;owned\u{7}"),
    ("a screen cleared", "\u{1b}[2J\u{1b}[H\u{9b}2J"),
    ("a link", "\u{1b}]8;;http://evil.example\u{1b}\\click\u{1b}]8;;\u{1b}\\"),
    ("a line overwritten", "good\rbad\u{8}\u{8}\u{8}"),
    ("right to left", "\u{202e}gpj.exe\u{2066}\u{2069}\u{200f}"),
    ("hidden", "zero\u{200b}width\u{feff}\u{e0041}"),
    ("an attribute", "\" onmouseover=\"alert(1)\" x='"),
];

/// Returns a run with this text in every field.
fn transcript(text: &str) -> String {
    let step = serde_json::json!({
        "thought": text, "action": text, "action_input": text, "observation": text, "user_input": text,
    });
    let calm = serde_json::json!({ "thought": "Let me run it.", "action": text, "action_input": "x", "observation": "1 failed" });
    let mut steps = vec![calm; 8];
    steps.push(step);
    line(text, text, &steps)
}

/// Returns both output streams of a command that exits with 0 or 1.
fn run_ok(args: &[&str]) -> String {
    let output = run(args, b"");
    assert!(output.status.code().is_some_and(|code| code < 2), "{args:?} {}", printed(&output));
    printed(&output)
}

fn check_terminal(what: &str, args: &[&str]) {
    let text = run_ok(args);
    let harm = text.chars().find(|c| rb_view::text::is_invisible(*c));
    assert_eq!(harm, None, "{what}: {args:?} prints {harm:?}");
    assert!(text.len() < 200_000, "{what}: {args:?} prints {} bytes", text.len());
}

fn check_page(what: &str, page: &str) {
    let harm = page.chars().find(|c| rb_view::text::is_invisible(*c));
    assert_eq!(harm, None, "{what}: {harm:?} is in the page");
    for forbidden in ["<script>", "<img", "onerror=alert(1)>", "\" onmouseover=\""] {
        assert!(!page.contains(forbidden), "{what}: {forbidden} is in the page");
    }
    assert!(page.len() < 400_000, "{what}: {} bytes", page.len());
}

fn check(what: &str, text: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (file, data) = (path("runs.jsonl"), path("data"));
    fs::write(&file, transcript(text)).expect("written");
    check_terminal(what, &["check", &file]);
    check_terminal(what, &["import", &file, "--data-dir", &data]);
    check_terminal(what, &["runs", "--data-dir", &data]);
    let listed = run_ok(&["runs", "--data-dir", &data, "--json"]);
    let run: serde_json::Value =
        listed.lines().next().map(|line| serde_json::from_str(line).expect("JSON")).expect("a run");
    let run_id = run["run_id"].as_str().expect("an id").to_owned();
    check_terminal(what, &["show", &run_id, "--data-dir", &data]);
    for (of, name) in [(file.as_str(), "file.html"), (run_id.as_str(), "run.html")] {
        check_terminal(what, &["report", of, "-o", &path(name), "--data-dir", &data]);
        check_page(what, &fs::read_to_string(Path::new(&path(name))).expect("a page"));
    }
    // JSON keeps the text.
    let json = run_json(&file);
    assert_eq!(json["run_id"].as_str().map(str::trim), Some(text.trim()), "{what}");
}

fn run_json(file: &str) -> serde_json::Value {
    let output = run(&["check", file, "--json"], b"");
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

#[test]
fn hostile_text_is_escaped_everywhere() {
    for (what, text) in HOSTILE {
        check(what, text);
    }
}

#[test]
fn a_line_of_ten_megabytes_is_truncated() {
    check("a long line", &"x".repeat(10_000_000));
    check("a long line of escapes", &"\u{1b}[31m".repeat(500_000));
}

#[test]
fn a_hostile_file_name_is_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("\u{1b}[2J\u{202e}.jsonl");
    fs::write(&path, "oops\n").expect("written");
    for command in ["check", "import", "report"] {
        let data = folder.path().join("data");
        let mut args = vec![command, path.to_str().expect("UTF-8")];
        if command != "check" {
            args.extend(["--data-dir", data.to_str().expect("UTF-8")]);
        }
        let text = printed(&run(&args, b""));
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{command}: {text:?}");
    }
}
