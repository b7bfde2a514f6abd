//! `rb import` into a store and through a server.

use std::fs;
use std::path::Path;

use crate::server::Server;
use crate::{line, printed, run};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rb-wire/tests/fixtures");

/// Returns the standard output of a command on this data directory.
fn stdout(data: &Path, args: &[&str]) -> String {
    let data = ["--data-dir", data.to_str().expect("UTF-8")];
    let output = run(&[args, &data].concat(), b"");
    assert!(output.status.success(), "{}", printed(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_format_is_imported_once() {
    let data = tempfile::tempdir().expect("a folder");
    // Some fixtures are damaged on purpose; their diagnostics are tested elsewhere.
    let take = || {
        let data = data.path().to_str().expect("UTF-8");
        let output = run(&["import", FIXTURES, "--data-dir", data], b"");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let (first, second) = (take(), take());
    let runs = |text: &str| text.split(',').next().expect("a count").to_owned();
    assert_eq!(runs(&first), runs(&second));
    assert!(first.contains(" new") && !first.contains("unchanged"), "{first}");
    assert!(second.contains("unchanged") && !second.contains(" new"), "{second}");
    assert!(!second.contains("updated"), "{second}");
    let listed = stdout(data.path(), &["runs", "-n", "1000"]);
    assert_eq!(format!("{} runs", listed.lines().count() - 1), runs(&first), "{listed}");
    let listed = stdout(data.path(), &["runs", "-n", "1000", "--json"]);
    for importer in &rb_wire::transcripts::IMPORTERS {
        let framework = format!("\"framework\":\"{}\"", importer.id);
        assert!(listed.contains(&framework), "nothing of {}", importer.id);
    }
}

#[test]
fn a_session_that_has_grown_gets_its_new_steps() {
    let data = tempfile::tempdir().expect("a folder");
    let whole = fs::read_to_string(format!("{FIXTURES}/claude-code.jsonl")).expect("a fixture");
    let file = data.path().join("0f3b6a52.jsonl");
    let path = file.to_str().expect("UTF-8");
    let half: String = whole.split_inclusive('\n').take(6).collect();
    fs::write(&file, half).expect("written");
    let first = stdout(data.path(), &["import", path]);
    assert!(first.contains("1 new"), "{first}");
    fs::write(&file, &whole).expect("written");
    let second = stdout(data.path(), &["import", path]);
    assert!(second.contains("updated"), "{second}");
    let third = stdout(data.path(), &["import", path]);
    assert!(third.contains("unchanged") && !third.contains("updated"), "{third}");
    let shown = stdout(data.path(), &["show", "s-1"]);
    assert!(shown.contains("Grep"), "{shown}");
}

#[test]
fn errors_are_reported_with_their_location() {
    let data = tempfile::tempdir().expect("a folder");
    let file = data.path().join("runs.jsonl");
    let step = serde_json::json!({ "thought": "x" });
    let text = format!("{}oops\n{}", line("a", "success", &[step]), line("empty", "failure", &[]));
    fs::write(&file, text).expect("written");
    let (path, folder) = (file.to_str().expect("UTF-8"), data.path().to_str().expect("UTF-8"));
    let output = run(&["import", path, "--data-dir", folder], b"");
    let said = printed(&output).replace(folder, "DATA");
    insta::assert_snapshot!(said);
    let output = run(&["import", "/nowhere", "--data-dir", folder], b"");
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
}

/// Returns the exit code and the output of an import through a server.
fn sent(server: &Server, args: &[&str], key: &str) -> (Option<i32>, String) {
    let url = format!("http://{}", server.address);
    let output = run(&[&["import", "--url", &url, "--key", key], args].concat(), b"");
    (output.status.code(), printed(&output).replace(&url, "URL"))
}

#[test]
fn a_server_imports_every_format_like_the_store() {
    let (server, data) = (Server::start(&[]), tempfile::tempdir().expect("a folder"));
    let alone = run(&["import", FIXTURES, "--data-dir", data.path().to_str().expect("UTF-8")], b"");
    let alone = String::from_utf8(alone.stdout).expect("UTF-8");
    let counts = alone.lines().next().expect("a line").to_owned();
    let (_, first) = sent(&server, &[FIXTURES], "key");
    assert!(first.contains(&counts), "{first}\nbut alone:\n{alone}");
    assert!(first.contains("claude-code.jsonl: "), "progress by file: {first}");
    let (_, second) = sent(&server, &[FIXTURES], "key");
    assert!(second.contains("unchanged") && !second.contains(" new"), "{second}");
}

#[test]
fn rejected_files_are_reported_and_the_rest_is_imported() {
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
    assert!(said.contains("a.jsonl: the server rejected it") && said.contains("2000"), "{said}");
    assert!(said.contains("max_body_bytes") && said.contains("1 new"), "{said}");
    let (code, said) = sent(&server, &[folder], "wrong");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("cannot import through URL") && said.contains("401"), "{said}");
}
