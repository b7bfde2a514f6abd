//! What `rb import` makes of recorded runs.

use std::fs;
use std::path::Path;

use crate::{line, run, told};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rb-wire/tests/fixtures");

/// Standard output of a command on these data.
fn said(data: &Path, args: &[&str]) -> String {
    let data = ["--data-dir", data.to_str().expect("UTF-8")];
    let output = run(&[args, &data].concat(), b"");
    assert!(output.status.success(), "{}", told(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_format_goes_into_the_store_once() {
    let data = tempfile::tempdir().expect("a folder");
    // Some of the miniatures are broken on purpose: what they complain about is checked elsewhere.
    let take = || {
        let data = data.path().to_str().expect("UTF-8");
        let output = run(&["import", FIXTURES, "--data-dir", data], b"");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let (first, second) = (take(), take());
    let runs = |said: &str| said.split(',').next().expect("a count").to_owned();
    assert_eq!(runs(&first), runs(&second));
    assert!(first.contains(" new") && !first.contains("as before"), "{first}");
    assert!(second.contains("as before") && !second.contains(" new"), "{second}");
    assert!(!second.contains("updated"), "{second}");
    let listed = said(data.path(), &["runs", "-n", "1000"]);
    assert_eq!(format!("{} runs", listed.lines().count()), runs(&first), "{listed}");
    let listed = said(data.path(), &["runs", "-n", "1000", "--json"]);
    for importer in &rb_wire::transcripts::IMPORTERS {
        let framework = format!("\"framework\":\"{}\"", importer.id);
        assert!(listed.contains(&framework), "nothing of {}", importer.id);
    }
}

#[test]
fn a_session_that_grows_gets_its_new_steps() {
    let data = tempfile::tempdir().expect("a folder");
    let whole = fs::read_to_string(format!("{FIXTURES}/claude-code.jsonl")).expect("a fixture");
    let file = data.path().join("0f3b6a52.jsonl");
    let path = file.to_str().expect("UTF-8");
    let half: String = whole.split_inclusive('\n').take(6).collect();
    fs::write(&file, half).expect("written");
    let first = said(data.path(), &["import", path]);
    assert!(first.contains("1 new"), "{first}");
    fs::write(&file, &whole).expect("written");
    let second = said(data.path(), &["import", path]);
    assert!(second.contains("updated"), "{second}");
    let third = said(data.path(), &["import", path]);
    assert!(third.contains("as before") && !third.contains("updated"), "{third}");
    let shown = said(data.path(), &["show", "s-1"]);
    assert!(shown.contains("Grep"), "{shown}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let data = tempfile::tempdir().expect("a folder");
    let file = data.path().join("runs.jsonl");
    let step = serde_json::json!({ "thought": "x" });
    let text = format!("{}oops\n{}", line("a", "success", &[step]), line("empty", "failure", &[]));
    fs::write(&file, text).expect("written");
    let (path, folder) = (file.to_str().expect("UTF-8"), data.path().to_str().expect("UTF-8"));
    let output = run(&["import", path, "--data-dir", folder], b"");
    let said = told(&output).replace(folder, "DATA");
    insta::assert_snapshot!(said);
    let output = run(&["import", "/nowhere", "--data-dir", folder], b"");
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
}
