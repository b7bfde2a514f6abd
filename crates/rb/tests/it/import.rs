//! What `rb import` makes of recorded runs.

use std::fs;
use std::path::Path;

use crate::server::Server;
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

/// What an import through a server says, and how it ended.
fn sent(server: &Server, args: &[&str], key: &str) -> (Option<i32>, String) {
    let url = format!("http://{}", server.address);
    let output = run(&[&["import", "--url", &url, "--key", key], args].concat(), b"");
    (output.status.code(), told(&output).replace(&url, "URL"))
}

#[test]
fn a_running_server_takes_every_format_as_the_store_does() {
    let (server, data) = (Server::start(&[]), tempfile::tempdir().expect("a folder"));
    let alone = run(&["import", FIXTURES, "--data-dir", data.path().to_str().expect("UTF-8")], b"");
    let alone = String::from_utf8(alone.stdout).expect("UTF-8");
    let counts = alone.lines().next().expect("a line").to_owned();
    let (_, first) = sent(&server, &[FIXTURES], "key");
    assert!(first.contains(&counts), "{first}\nbut alone:\n{alone}");
    assert!(first.contains("claude-code.jsonl: "), "progress by file: {first}");
    let (_, second) = sent(&server, &[FIXTURES], "key");
    assert!(second.contains("as before") && !second.contains(" new"), "{second}");
}

#[test]
fn what_a_server_does_not_take_is_told_and_the_rest_goes_on() {
    let server = Server::start(&[("MAX_BODY_BYTES", "2000")]);
    let data = tempfile::tempdir().expect("a folder");
    let noise = |seed: u64| format!("{:x}", seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let long: String = (0..2_000).map(noise).collect();
    for (name, thought) in [("a.jsonl", long.as_str()), ("b.jsonl", "short")] {
        let step = serde_json::json!({ "thought": thought });
        fs::write(data.path().join(name), line(name, "success", &[step])).expect("written");
    }
    let folder = data.path().to_str().expect("UTF-8");
    let (code, said) = sent(&server, &[folder], "key");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("a.jsonl: the server does not take it") && said.contains("2000"),
        "{said}"
    );
    assert!(said.contains("max_body_bytes") && said.contains("1 new"), "{said}");
    let (code, said) = sent(&server, &[folder], "wrong");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("cannot import through URL") && said.contains("401"), "{said}");
}
