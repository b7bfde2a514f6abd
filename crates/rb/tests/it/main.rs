//! Tests of the binary: input, output and exit code.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "clippy does not recognise helpers of tests as test code"
)]

/// Output of `rb check`.
mod check;
/// Output of `rb demo`.
mod demo;
/// One trace through every integration.
mod equality;
/// Escaping of hostile text.
mod hostile;
/// `rb import` into a store and through a server.
mod import;
/// Long runs, long files, closed pipes.
mod limits;
/// Output of `rb quality`.
mod quality;
/// Comparison with the reference package of the heuristic suite.
mod reference;
/// `rb report`, `rb runs` and `rb show`.
mod report;
/// `rb run` with a scripted provider.
mod run;
/// Server process for the tests.
mod server;
/// Random runs.
mod traces;
/// `rb watch` without a terminal.
mod watch;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// Returns the command without environment variables that change its output.
pub(crate) fn rb(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rb"));
    command.args(args).env_remove("NO_COLOR").env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE");
    command
}

/// Runs the command to its end with this standard input.
pub(crate) fn run(args: &[&str], stdin: &[u8]) -> Output {
    let mut child = rb(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rb starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let stdin = stdin.to_owned();
    let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().expect("rb ends");
    writer.join().expect("everything was written");
    output
}

/// Returns standard output, standard error and exit code as one text for snapshots.
pub(crate) fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    format!(
        "{}--- stderr\n{}--- exit {}\n",
        text(&output.stdout),
        text(&output.stderr),
        output.status.code().expect("no signal")
    )
}

/// Returns a line of the native format.
pub(crate) fn line(run_id: &str, outcome: &str, steps: &[serde_json::Value]) -> String {
    let run = serde_json::json!({ "run_id": run_id, "outcome": outcome, "steps": steps });
    format!("{run}\n")
}
