//! `rb quality` on a small corpus with known counts.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::{printed, run};

fn step(thought: &str, tool: &str, input: &str, observation: &str) -> Value {
    json!({ "thought": thought, "action": tool, "action_input": input, "observation": observation })
}

/// An agent that does one thing after the other.
fn calm(n: usize) -> Vec<Value> {
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

/// The same, but it gets stuck on one command.
fn stuck(n: usize) -> Vec<Value> {
    let mut steps = calm(n);
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
            "task": format!("Mend part {} of {set}.", n % 12),
            "outcome": if failed { "failure" } else { "success" },
            "labels": if is_stuck { json!({ "labelled_steps": [{ "step_index": 4, "category": "loop" }] }) } else { Value::Null },
            "steps": if is_stuck { stuck(n) } else { calm(n) },
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

/// With the first generation, whose scores are fixed, so that it can be compared to the letter.
#[test]
fn people_see_a_short_table() {
    let folder = folder();
    let output = run(&["quality", path(folder.path()), "--suite", "heuristic"], b"");
    insta::assert_snapshot!("quality-table", printed(&output));
    let full = run(&["quality", path(folder.path()), "--suite", "heuristic", "--full"], b"");
    assert!(full.stdout.len() > 2 * output.stdout.len());
}

#[test]
fn programs_see_json() {
    let folder = folder();
    let output = run(&["quality", path(folder.path()), "--json", "--faults", "4"], b"");
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
    assert!(report["plants"].as_array().is_some_and(|plants| !plants.is_empty()));
    assert_eq!(report["verdicts"][0]["bound"], json!({ "at_most": 0.1 }));
    // The same seed, the same report; another seed, another draw.
    let again = run(&["quality", path(folder.path()), "--json", "--faults", "4"], b"");
    assert!(again.stdout == output.stdout);
    let other =
        run(&["quality", path(folder.path()), "--json", "--faults", "4", "--seed", "2"], b"");
    assert!(other.stdout != output.stdout);
}

#[test]
fn a_page_keeps_hostile_text_as_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let evil = "</pre><script>alert(1)</script><img src=x onerror=y>\u{202e}";
    let runs = corpus("evil").replace("Let me run the failing test again.", evil);
    let runs = runs.replace("\"failure\"", "\"success\"").replace("evil-", "<b>evil-");
    let (data, page) = (folder.path().join("<i>evil.jsonl"), folder.path().join("page.html"));
    fs::write(&data, runs).expect("a file");
    let args =
        ["quality", path(&data), "--suite", "heuristic", "--html", path(&page), "--show-held-out"];
    let output = run(&args, b"");
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let page = fs::read_to_string(page).expect("a page");
    for never in ["<script", "<img", "<b>evil", "<i>evil", "\u{202e}", "http://", "https://"] {
        assert!(!page.contains(never), "{never:?}");
    }
    for always in ["&lt;script&gt;", "&lt;b&gt;evil-", "&lt;i&gt;evil", "<svg class=\"strip\""] {
        assert!(page.contains(always), "{always:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_told() {
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
            let output = run(&["quality", "-", "--no-faults"], input.as_bytes());
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
fn the_exit_code_tells() {
    let folder = folder();
    let data = path(folder.path());
    for (flags, code) in [
        (&["--no-faults"][..], 0),
        // The first generation does not see an unverified finish.
        (&["--suite", "heuristic", "--check"], 1),
        (&["--suite", "heuristic", "--check=held-out"], 1),
        (&["--check=sometimes"], 2),
        (&["--no-faults", "--faults", "3"], 2),
        (&["--html", "no-such-folder/page.html", "--no-faults"], 2),
        (&["no-such-file.jsonl", "--no-faults"], 2),
    ] {
        let output = run(&[&["quality", data], flags].concat(), b"");
        assert_eq!(output.status.code(), Some(code), "{flags:?} {}", printed(&output));
    }
}

#[test]
fn faults_of_the_held_out_part_are_not_shown() {
    let folder = folder();
    let count = |flags: &[&str]| {
        let args = [&["quality", path(folder.path()), "--show-faults", "12"], flags].concat();
        let output = run(&args, b"");
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.starts_with("loops ("), "{text}");
        text.lines().filter(|line| line.contains(" at step ")).count()
    };
    let (dev, all) = (count(&[]), count(&["--show-held-out"]));
    assert!(0 < dev && dev < all, "{dev} {all}");
}

#[test]
fn two_files_of_one_name_are_two_sets() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["one", "two"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        fs::write(folder.path().join(name).join("runs.jsonl"), corpus(name)).expect("a file");
    }
    let output = run(&["quality", path(folder.path()), "--json", "--no-faults"], b"");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let sets = report["sets"].as_array().expect("sets").iter().filter(|set| set["split"] == "all");
    let names: Vec<&str> = sets.filter_map(|set| set["set"].as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&"runs"), "{names:?}");
}
