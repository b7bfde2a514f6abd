//! `rb quality` on a corpus small enough to count by hand.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::{printed, run};

fn step(thought: &str, tool: &str, input: &str, observation: &str) -> Value {
    json!({ "thought": thought, "action": tool, "action_input": input, "observation": observation })
}

/// Agent without failures.
fn steady(n: usize) -> Vec<Value> {
    let file = format!("src/part{n}.rs");
    let mut steps = vec![
        step("First I read the file.", "read", &file, "fn part() -> u32 { 1 }"),
        step("Then who calls it.", "grep", "part(", &format!("src/main.rs:{n}: part()")),
        step("The constant is too small.", "edit", &format!("{file}: 1 -> 2"), "ok"),
        step("Now the tests.", "bash", "cargo test", "test result: ok. 12 passed"),
        step("And the formatting.", "bash", "cargo fmt --check", ""),
        step("All tests pass, so this is done.", "", "", ""),
    ];
    if n.is_multiple_of(2) {
        steps.insert(1, step("What is around it?", "bash", "ls src", &format!("a.rs b{n}.rs")));
    }
    steps
}

/// The same agent, stuck on one command.
fn stuck(n: usize) -> Vec<Value> {
    let mut steps = steady(n);
    let again = step(
        "Let me run the failing test again.",
        "bash",
        "cargo test parse",
        "error: expected `;`",
    );
    steps.splice(3..5, vec![again; 5]);
    steps
}

/// Twelve successes and twelve failures of twelve tasks; ten failures are stuck from step 3, as labelled.
fn corpus(set: &str) -> String {
    let run = |n: usize| {
        let failed = n >= 12;
        let is_stuck = failed && n < 22;
        let run = json!({
            "run_id": format!("{set}-{n}"),
            "task": format!("Repair part {} of {set}.", n % 12),
            "outcome": if failed { "failure" } else { "success" },
            "labels": if is_stuck { json!({ "labelled_steps": [{ "step_index": 4, "category": "loop" }] }) } else { Value::Null },
            "steps": if is_stuck { stuck(n) } else { steady(n) },
        });
        format!("{run}\n")
    };
    (0..24).map(run).collect()
}

/// A folder with two sets.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for set in ["alpha", "beta"] {
        fs::write(folder.path().join(format!("{set}.jsonl")), corpus(set)).expect("a file");
    }
    folder
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn help_is_helpful() {
    insta::assert_snapshot!("quality-help", printed(&run(&["quality", "--help"], b"")));
}

/// Uses the heuristic suite, whose scores are fixed by the public package.
#[test]
fn the_default_output_is_a_table() {
    let folder = folder();
    let output = run(&["quality", path(folder.path()), "--suite", "heuristic"], b"");
    insta::assert_snapshot!("quality-table", printed(&output));
}

#[test]
fn json_has_every_split() {
    let folder = folder();
    let output = run(&["quality", path(folder.path()), "--json"], b"");
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let keys: Vec<&String> = report.as_object().expect("an object").keys().collect();
    insta::assert_debug_snapshot!(keys);
    assert_eq!(report["headline"], "semantic");
    let set = &report["sets"][0];
    assert_eq!((&set["set"], &set["split"]), (&json!("alpha"), &json!("all")));
    assert_eq!(
        (&set["successes"], &set["failures"], &set["tasks"]),
        (&json!(12), &json!(12), &json!(12))
    );
    let judges: Vec<&Value> =
        set["judges"].as_array().expect("judges").iter().map(|judge| &judge["judge"]).collect();
    assert_eq!(judges, ["semantic", "heuristic", "step count"]);
    let judge = &set["judges"][0];
    assert_eq!(judge["fires_on_successes"]["of"], 12);
    assert_eq!(judge["agreement"]["hits"]["of"], 10);
    assert!(judge["composite"][0]["matched"]["low"].is_number());
    // The seed determines the report.
    let again = run(&["quality", path(folder.path()), "--json"], b"");
    assert!(again.stdout == output.stdout);
    let other = run(&["quality", path(folder.path()), "--json", "--seed", "2"], b"");
    assert!(other.stdout != output.stdout);
}

#[test]
fn errors_name_the_reason() {
    let unlabelled =
        corpus("a").replace("\"outcome\"", "\"end\"").replace("\"labels\"", "\"notes\"");
    let resolved = corpus("a").replace("\"success\"", "\"resolved\"");
    let short = "{\"outcome\": \"success\", \"steps\": [{\"thought\": \"Done.\"}]}\n";
    let cases = [
        ("nothing", String::new()),
        ("runs without steps", "{\"outcome\": \"success\", \"steps\": []}\n".repeat(2)),
        ("short runs", short.repeat(3)),
        ("no outcomes", unlabelled),
        ("bad lines only", "oops\n[1]\n".to_owned()),
        ("other outcomes", resolved),
        ("a bad line among good ones", format!("oops\n{}", corpus("a"))),
    ];
    let printed: Vec<String> = cases
        .iter()
        .map(|(name, input)| {
            let output = run(&["quality", "-"], input.as_bytes());
            let shown = String::from_utf8_lossy(&output.stderr).into_owned();
            let report = if output.stdout.is_empty() { "no report" } else { "a report" };
            format!(
                "# {name}\n{shown}exit {:?}, {report}\n",
                output.status.code().expect("no signal")
            )
        })
        .collect();
    insta::assert_snapshot!("quality-troubles", printed.join("\n"));
}

#[test]
fn two_files_of_one_name_are_two_sets() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["one", "two"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        fs::write(folder.path().join(name).join("runs.jsonl"), corpus(name)).expect("a file");
    }
    let output = run(&["quality", path(folder.path()), "--json"], b"");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let sets = report["sets"].as_array().expect("sets").iter().filter(|set| set["split"] == "all");
    let names: Vec<&str> = sets.filter_map(|set| set["set"].as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&"runs"), "{names:?}");
}
