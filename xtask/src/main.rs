//! Automation of the repository: `cargo xtask <command>`. Never shipped.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Measurements; never tests.
mod bench;
/// The program after a training run.
mod binary;
/// What was measured of each monitor, in sentences.
mod figures;
/// Pages that are written from the code.
mod generate;
/// Programs from npm for the tests.
mod node;
/// What is printed, and how long it took.
mod out;
/// The Python package.
mod package;
/// Virtual environments for the tests.
mod python;
/// Where the repository is, and how other programs are run in it.
mod shell;
/// Everything that must pass before a change lands.
mod test;
/// The house rules.
mod tidy;
/// The programs of others that the tests ask.
mod tools;

const USAGE: &str = "\
cargo xtask <command>

  test [stage...]   everything that must pass before a change lands, or only the named stages:
                    tools fmt clippy tests python sdk schema nodes clients dashboard deploy tidy gen docs hygiene
  tidy              the house rules alone
  gen [--check]     write the generated pages, or say which of them are stale
  wheel             build the Python package as it is published, in target/python/wheels
  binary            build `rb` after a training run, in target/trained: a sixth less processor time a request
  pictures          draw the pictures of the pages in docs/pictures anew
  bench cache [DATA]
                    what steering costs the providers' prompt caches, over recorded or made-up runs
  bench check [FILE...]
                    how fast `rb check` goes through transcripts, beside `jq`; a made-up gigabyte without files
  bench engine      time per step, here and in the public Python package
  bench server [WORDS]
                    requests per second, here and in a minimal Python server; only the rows with these words
  bench gateway [WORDS]
                    what the gateway adds to a call, beside nginx and LiteLLM; only the rows with these words, and
                    then without LiteLLM: `100 KB, Messages`, `half load`, `gaps`, `memory`
  bench pages [STEPS]
                    server time of the pages with a million stored steps, or as many as you say
  bench scale [steps|patterns] [--up-to SIZE]
                    SQLite, PostgreSQL with one node and with two; ten million steps and a million patterns, or
                    as many as you say (`100k`, `1m`)
  bench wire        how fast requests and answers are looked at
  bench python      what our middleware adds to a model call, and what the public one adds
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            out::complain(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<ExitCode> {
    match args {
        [] | ["help" | "--help" | "-h"] => {
            out::say(USAGE);
            Ok(ExitCode::SUCCESS)
        }
        ["test", stages @ ..] => test::run(stages),
        ["tidy"] => test::run(&["tidy", "hygiene"]),
        ["gen"] => generate::write().map(|()| ExitCode::SUCCESS),
        ["gen", "--check"] => test::run(&["gen"]),
        ["bench", "cache"] => bench::cache::run(None).map(|()| ExitCode::SUCCESS),
        ["bench", "cache", data] => bench::cache::run(Some(data)).map(|()| ExitCode::SUCCESS),
        ["bench", "check", files @ ..] => bench::check::run(files).map(|()| ExitCode::SUCCESS),
        ["bench", "engine"] => bench::engine::run().map(|()| ExitCode::SUCCESS),
        ["bench", "gateway"] => bench::gateway::run("").map(|()| ExitCode::SUCCESS),
        ["bench", "gateway", words] => bench::gateway::run(words).map(|()| ExitCode::SUCCESS),
        ["wheel"] => {
            let wheel = package::published()?;
            out::say(&wheel.display().to_string());
            Ok(ExitCode::SUCCESS)
        }
        ["binary"] => binary::run().map(|()| ExitCode::SUCCESS),
        ["pictures"] => tools::pictures().map(|()| ExitCode::SUCCESS),
        ["bench", "pages"] => bench::pages::run(None).map(|()| ExitCode::SUCCESS),
        ["bench", "pages", steps] => bench::pages::run(Some(steps)).map(|()| ExitCode::SUCCESS),
        ["bench", "scale", wanted @ ..] => bench::scale::run(wanted).map(|()| ExitCode::SUCCESS),
        ["bench", "server"] => bench::server::run("").map(|()| ExitCode::SUCCESS),
        ["bench", "server", words] => bench::server::run(words).map(|()| ExitCode::SUCCESS),
        ["bench", "wire"] => bench::wire::run().map(|()| ExitCode::SUCCESS),
        ["bench", "python"] => package::bench().map(|()| ExitCode::SUCCESS),
        other => bail!("`{}` is no command; `cargo xtask help` lists them", other.join(" ")),
    }
}
