//! `rb` after a training run: built so that it counts where it spends its time, put under the load of the benchmarks,
//! and built again with what runs together laid out together.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::bench::process::{Server, fresh_folder};
use crate::bench::{gateway, server};
use crate::{out, shell};

/// Builds it and says where it is.
pub(crate) fn run() -> Result<()> {
    if cfg!(debug_assertions) {
        let args = ["run", "--quiet", "--release", "--package", "xtask", "--", "binary"];
        return shell::run(&mut shell::cargo(&args)?);
    }
    out::say(&trained()?.display().to_string());
    Ok(())
}

/// Builds it. A training run that was made with the same code is used again.
fn trained() -> Result<PathBuf> {
    let folder = shell::target()?.join("trained");
    let (counts, profile) = (folder.join("counts"), folder.join("profile"));
    // It holds `llvm-profdata`, which brings the counts together.
    shell::run(shell::program("rustup")?.args(["component", "add", "llvm-tools"]))?;
    out::say("building `rb` so that it counts");
    let counting =
        build(&folder.join("first"), &format!("-Cprofile-generate={}", counts.display()))?;
    if is_older(&profile, &counting)? {
        out::say("training: a minute");
        let _ = fs::remove_dir_all(&counts); // of an earlier run, if there was one
        train(&counting)?;
        let _ = fs::remove_dir_all(folder.join("second")); // cargo does not see that the profile is another one
        bring_together(&counts, &profile)?;
    }
    out::say("building `rb` with what was counted");
    build(&folder.join("second"), &format!("-Cprofile-use={}", profile.display()))
}

/// Builds for release with a flag. The machine is named, so that the flag does not hold for what only runs in the build.
fn build(folder: &Path, flag: &str) -> Result<PathBuf> {
    let machine = machine()?;
    let args = ["build", "--profile", "dist", "--quiet", "--package", "rb", "--target", &machine];
    let mut build = shell::cargo(&args)?;
    shell::run(build.arg("--target-dir").arg(folder).env("RUSTFLAGS", flag))?;
    Ok(folder.join(machine).join("dist").join("rb"))
}

fn rustc() -> Result<Command> {
    shell::program(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// As the compiler calls the machine it runs on.
fn machine() -> Result<String> {
    let about = shell::read(rustc()?.arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say on which machine it runs")
}

/// What agents do: conversations through the gateway, and the calls of the SDKs.
fn train(rb: &Path) -> Result<()> {
    let provider = gateway::provider()?;
    let data = fresh_folder("trained-data")?;
    let server = Server::of(rb, data, &gateway::before(provider))?;
    gateway::train(&server)?;
    server::train(&server)?;
    server.end() // only one that ends by itself writes down what it counted
}

fn bring_together(counts: &Path, profile: &Path) -> Result<()> {
    let libraries = shell::read(rustc()?.args(["--print", "target-libdir"]))?;
    let tools = Path::new(libraries.trim()).with_file_name("bin");
    let mut merge = shell::program(tools.join("llvm-profdata"))?;
    shell::run(merge.arg("merge").arg("--output").arg(profile).arg(counts))
}

/// Whether a file is not there or was written before another one.
fn is_older(file: &Path, than: &Path) -> Result<bool> {
    let Ok(about) = fs::metadata(file) else { return Ok(true) };
    Ok(about.modified()? < fs::metadata(than)?.modified()?)
}
