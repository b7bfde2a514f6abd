//! Long runs, long files, closed pipes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{line, rb, run};

#[test]
fn a_run_of_a_hundred_thousand_steps() {
    let tools = ["read", "edit", "bash"];
    let steps: Vec<Value> = (0..100_000)
        .map(|at| json!({ "thought": format!("Maybe step {at}."), "action": tools[at % 3], "action_input": format!("src/f{at}.rs"), "observation": "error: no" }))
        .collect();
    let input = line("long", "failure", &steps);
    let output = run(&["check", "-", "--suite", "both"], input.as_bytes());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.starts_with("● long  failure  100,000 steps"), "{text}");
    assert!(text.contains("1429 steps per column"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 200), "{text}");
    let output = run(&["check", "-", "--json"], input.as_bytes());
    let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(run["steps"].as_array().map(Vec::len), Some(100_000));
}

/// Feeds this many bytes of runs and returns the peak memory of the child in KiB.
#[cfg(target_os = "linux")]
fn peak_memory_kib(bytes: usize, flags: &[&str]) -> u64 {
    let mut child = rb(&[&["check", "-"], flags].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rb starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let steps: Vec<Value> = (0..30)
        .map(|at| json!({ "thought": "Let me see.\n", "action": "bash", "action_input": format!("ls {at}"), "observation": "a\n".repeat(500) }))
        .collect();
    let run = line("r", "success", &steps);
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut peak = 0;
    for _ in 0..bytes / run.len() {
        stdin.write_all(run.as_bytes()).expect("rb reads");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a status");
    for line in status.lines() {
        if let Some(kib) = line.strip_prefix("VmHWM:") {
            peak = kib.trim().trim_end_matches(" kB").parse().expect("a number");
        }
    }
    drop(stdin);
    assert_eq!(child.wait().expect("rb ends").code(), Some(1));
    reader.join().expect("everything was read").expect("no error");
    peak
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_input() {
    for (mib, flags) in [(200, &[][..]), (80, &["--json"])] {
        let peak = peak_memory_kib(mib << 20, flags);
        assert!((1..128 * 1024).contains(&peak), "{peak} KiB {flags:?}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let runs = line("r", "success", &[json!({ "thought": "Go on." })]).repeat(60_000);
    for flags in [&["check", "-"][..], &["check", "-", "--json"]] {
        let mut child = rb(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("rb starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let bytes = runs.clone();
        let writer = std::thread::spawn(move || drop(stdin.write_all(bytes.as_bytes())));
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        stdout.read_line(&mut first).expect("a line");
        drop(stdout);
        writer.join().expect("the pipe is closed");
        let mut stderr = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
        let status = child.wait().expect("rb ends");
        assert_eq!((stderr.as_str(), status.code()), ("", Some(0)), "{flags:?}");
    }
}
