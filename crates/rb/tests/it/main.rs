//! The binary, from outside: what goes in, what comes out, how it ends.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is tests, which clippy knows only of functions marked as such"
)]

/// What `rb check` says, to people and to programs.
mod check;
/// What `rb demo` shows.
mod demo;
/// What others wrote, shown harmlessly.
mod hostile;
/// What `rb import` makes of recorded runs.
mod import;
/// Long runs, long files, closed pipes.
mod limits;
/// What `rb quality` says.
mod quality;
/// The same answers as the package that fixed the heuristic suite.
mod reference;
/// What `rb report`, `rb runs` and `rb show` make of runs.
mod report;
/// What `rb run` does with a child.
mod run;
/// A real server.
mod server;
/// Runs made up by chance.
mod traces;
/// What `rb watch` tells.
mod watch;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// The command, with nothing of the environment that changes what it prints.
pub(crate) fn rb(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rb"));
    command.args(args).env_remove("NO_COLOR").env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE");
    command
}

/// Runs it to its end with this standard input.
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

/// Exit code, standard output and standard error in one text, for snapshots.
pub(crate) fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    format!(
        "{}--- stderr\n{}--- exit {}\n",
        text(&output.stdout),
        text(&output.stderr),
        output.status.code().expect("no signal")
    )
}

/// A line with this run id and these steps.
pub(crate) fn line(run_id: &str, outcome: &str, steps: &[serde_json::Value]) -> String {
    let run = serde_json::json!({ "run_id": run_id, "outcome": outcome, "steps": steps });
    format!("{run}\n")
}
