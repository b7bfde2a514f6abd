//! Automation of the repository: `cargo xtask <command>`. Never shipped.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// The release binary with profile-guided optimisation.
mod binary;
/// npm packages for the tests.
mod node;
/// Output and number formats.
mod out;
/// The Python package.
mod package;
/// Python virtual environments for the tests.
mod python;
/// Paths of the repository and child processes.
mod shell;
/// The stages of `cargo xtask test`.
mod test;
/// Project rules.
mod tidy;
/// External programs used by the tests.
mod tools;

const USAGE: &str = "\
cargo xtask <command>

  test [stage...]   everything that must pass before a change lands, or only the named stages:
                    tools fmt clippy tests python sdk schema nodes clients dashboard deploy tidy docs hygiene
  tidy              the project rules alone
  gen               write the generated pages of docs/; the stage `tests` compares them
  wheel             build the published Python package in target/python/wheels
  binary            build `rb` with profile-guided optimisation in target/trained
  pictures          draw the screenshots in docs/pictures
  bench python      overhead of the Python middleware per model call, beside the public package

Other benchmarks: `cargo lab-bench`.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            out::error(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<ExitCode> {
    match args {
        [] | ["help" | "--help" | "-h"] => out::line(USAGE),
        ["test", stages @ ..] => return test::run(stages),
        ["tidy"] => return test::run(&["tidy", "hygiene"]),
        ["gen"] => generate()?,
        ["wheel"] => out::line(&package::published()?.display().to_string()),
        ["binary"] => out::line(&binary::build()?.display().to_string()),
        ["pictures"] => tools::pictures()?,
        ["bench", "python"] => package::bench()?,
        other => {
            bail!("unknown command: `{}`; `cargo xtask help` lists the commands", other.join(" "))
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the generated pages. A test of the engine generates `docs/monitors.md`, so that xtask does not depend on it.
fn generate() -> Result<()> {
    let test = ["test", "--quiet", "--package", "rb-engine", "--test", "it", "monitors_page"];
    shell::run(shell::cargo(&test)?.env("RB_WRITE_PAGES", "1"))
}
