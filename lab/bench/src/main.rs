//! Benchmarks: `cargo lab-bench <command>`. They print figures and assert nothing, because machines are noisy; the
//! instruction counts of `instructions` are the only repeatable ones.
#![expect(clippy::print_stdout, reason = "prints the figures")]

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Generated coding-agent runs, as engine steps and as provider requests.
mod conversation;
/// Gateway throughput and latency beside nginx.
mod gateway;
/// Instructions per gateway request and per step, counted by callgrind.
mod instructions;
/// A closed-loop HTTP load generator.
mod load;
/// Child processes under test.
mod process;
/// A provider stub on loopback.
mod provider;
/// Time and memory per engine step.
mod steps;
/// Durable steps and pages of runs.
mod store;

const USAGE: &str = "\
cargo lab-bench <command>

  steps                  time per engine step at positions 20, 200 and 2,000 of a run; with RB_REFERENCE_PYTHON (a
                         Python that has the public package) also its `evaluate_all`
  gateway [RB]           requests per second, latency and CPU time per request of `rb serve`, beside nginx
  instructions [RB]...   instructions per gateway request and per step of `rb check`, by valgrind's callgrind
  store [URL]            durable steps per second and pages of runs in a new SQLite file, or in this empty database
  train RB               the training load for profile-guided optimisation of `rb`

RB is an `rb` executable; the default is the release build of this checkout.
";

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] | ["help" | "--help" | "-h"] => print!("{USAGE}"),
        ["steps"] => steps::run()?,
        ["gateway"] => gateway::run(&process::build_rb()?).await?,
        ["gateway", rb] => gateway::run(Path::new(rb)).await?,
        ["instructions"] => instructions::run(&[process::build_rb()?]).await?,
        ["instructions", rbs @ ..] => {
            instructions::run(&rbs.iter().map(PathBuf::from).collect::<Vec<_>>()).await?;
        }
        ["store"] => store::run(None).await?,
        ["store", url] => store::run(Some(url)).await?,
        ["train", rb] => gateway::train(Path::new(rb)).await?,
        other => bail!(
            "unknown command: `{}`; `cargo lab-bench help` lists the commands",
            other.join(" ")
        ),
    }
    Ok(())
}
