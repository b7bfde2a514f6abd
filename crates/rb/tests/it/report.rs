//! `rb report`, `rb runs` and `rb show`.

use std::fs;

use crate::{line, printed, run};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sample.jsonl");

/// Returns the text of a page, one line per tag.
fn words(page: &str) -> String {
    let body = page.split("</style>").nth(1).expect("a style");
    let mut words = String::new();
    for piece in body.split('<') {
        let text = piece.split_once('>').map_or(piece, |(_, text)| text).trim();
        if !text.is_empty() {
            words.push_str(text);
            words.push('\n');
        }
    }
    words
}

#[test]
fn the_page_of_the_sample() {
    let output = run(&["report", SAMPLE, "-o", "-"], b"");
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success());
    // The path differs between machines.
    insta::assert_snapshot!(words(&page.replace(SAMPLE, "docs/sample.jsonl")));
}

#[test]
fn hostile_text_is_escaped() {
    let evil = "</pre><script>alert(1)</script>\u{1b}[2J\u{202e}";
    let long = "x".repeat(10_000_000);
    let steps = [
        serde_json::json!({ "thought": evil, "action": evil, "action_input": evil, "observation": long }),
        serde_json::json!({ "thought": long, "observation": evil }),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("runs.jsonl");
    fs::write(&input, line(evil, evil, &steps) + &line("calm", "success", &[])).expect("written");
    let page = folder.path().join("out.html");
    let output = run(
        &["report", folder.path().to_str().expect("UTF-8"), "-o", page.to_str().expect("UTF-8")],
        b"",
    );
    assert!(output.status.success(), "{}", printed(&output));
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.len() < 300_000, "{} bytes", page.len());
    for forbidden in ["<script", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(forbidden), "{forbidden:?}");
    }
    assert!(page.contains("2 runs"));
}

#[test]
fn missing_runs_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("UTF-8");
    for (args, words) in [
        (vec!["report", "no-such-run", "--data-dir", folder], "no such file, directory or run"),
        (vec!["show", "no-such-run", "--data-dir", folder], "no such run: no-such-run"),
        (vec!["runs", "--data-dir", folder], "no matching run"),
    ] {
        let output = run(&args, b"");
        assert!(printed(&output).contains(words), "{}", printed(&output));
    }
}
