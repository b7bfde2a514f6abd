//! `cargo lab-bench instructions`: instructions per gateway request and per step, counted by valgrind's callgrind.
//!
//! Each figure is the difference between a long and a short execution of the same program divided by the additional
//! requests or steps, so start-up and shutdown cancel out. The counts do not depend on what else the machine does.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tempfile::TempDir;

use crate::conversation::{Conversation, OwnedStep, Protocol, TERSE, steps};
use crate::load::Sender;
use crate::process::Server;
use crate::provider;

/// Requests of the short and of the long execution.
const REQUESTS: [usize; 2] = [20, 60];
/// Steps of the short and of the long execution.
const STEPS: [usize; 2] = [200, 600];

/// Prints one row per executable; the ratios are relative to the first.
pub(crate) async fn run(rbs: &[PathBuf]) -> Result<()> {
    let provider = provider::start().await?;
    println!("| rb | per gateway request | ratio | per step of `rb check` | ratio |");
    println!("|---|--:|--:|--:|--:|");
    let mut first = None;
    for rb in rbs {
        let request = per_unit(
            REQUESTS,
            [
                requests(rb, provider, REQUESTS[0]).await?,
                requests(rb, provider, REQUESTS[1]).await?,
            ],
        );
        let step = per_unit(STEPS, [check(rb, STEPS[0])?, check(rb, STEPS[1])?]);
        let (base_request, base_step) = *first.get_or_insert((request, step));
        println!(
            "| {} | {request:.0} | {:.3} | {step:.0} | {:.3} |",
            rb.display(),
            request / base_request,
            step / base_step
        );
    }
    Ok(())
}

/// Instructions per additional request or step.
fn per_unit([short, long]: [usize; 2], [few, many]: [f64; 2]) -> f64 {
    (many - few) / f64::from(u32::try_from(long - short).unwrap_or(1))
}

/// Instructions of `rb serve` that handles `count` requests of one growing conversation of about 100 KB, one at a time.
async fn requests(rb: &Path, provider: SocketAddr, count: usize) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let server = Server::rb(rb, provider, &callgrind(&folder))?;
    let sender = Sender::new(server.address, true);
    let conversation = Conversation::new(Protocol::Messages, 100_000, REQUESTS[1], false);
    for length in 1..=count {
        sender.send(&conversation, "instructions", length).await?;
    }
    server.stop()?;
    total(&folder)
}

/// Instructions of `rb check` on one run of `count` steps.
fn check(rb: &Path, count: usize) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let step = |step: &OwnedStep| {
        json!({
            "thought": step.thought, "action": step.tool, "action_input": step.input, "observation": step.observation,
        })
    };
    let run = json!({
        "run_id": "instructions",
        "task": "The session handler times out under load. Find out why and fix it.",
        "steps": steps(TERSE, count).iter().map(step).collect::<Vec<_>>(),
    });
    let file = folder.path().join("run.jsonl");
    fs::write(&file, format!("{run}\n"))?;
    let wrapper = callgrind(&folder);
    let mut command = Command::new(&wrapper[0]);
    command.args(&wrapper[1..]).arg(rb).arg("check").arg(&file).arg("--json");
    let output =
        command.stdin(Stdio::null()).output().context("cannot start valgrind; install it")?;
    // Exit code 1 of `rb check` means that a monitor fired.
    ensure!(
        output.status.code().is_some_and(|code| code < 2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    total(&folder)
}

fn callgrind(folder: &TempDir) -> Vec<String> {
    let out = format!("--callgrind-out-file={}", folder.path().join("callgrind.out").display());
    ["valgrind".to_owned(), "--tool=callgrind".to_owned(), out].into()
}

/// Reads the total instruction count of a finished execution.
fn total(folder: &TempDir) -> Result<f64> {
    let text = fs::read_to_string(folder.path().join("callgrind.out"))
        .context("callgrind wrote no counts")?;
    let totals = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    totals.and_then(|total| total.trim().parse().ok()).context("callgrind wrote no total")
}
