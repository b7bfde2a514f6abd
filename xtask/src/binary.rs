//! `cargo xtask binary`: builds `rb` with profile-guided optimisation. A first build counts how often code is executed under
//! the gateway load of `cargo lab-bench train`; the second build arranges the code accordingly.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{out, shell};

/// Builds the binary and returns its path. The profile is reused while the code is unchanged.
pub(crate) fn build() -> Result<PathBuf> {
    let folder = shell::target()?.join("trained");
    let (counts, profile) = (folder.join("counts"), folder.join("profile"));
    install_llvm_tools()?;
    out::line("building the instrumented `rb`");
    let instrumented =
        compile(&folder.join("first"), &format!("-Cprofile-generate={}", counts.display()))?;
    if is_older(&profile, &instrumented)? {
        out::line("running the training load: about a minute");
        let _ = fs::remove_dir_all(&counts); // missing in the first build
        let train = ["run", "--release", "--quiet", "--package", "lab-bench", "--", "train"];
        shell::run(shell::cargo(&train)?.arg(&instrumented))?;
        let _ = fs::remove_dir_all(folder.join("second")); // cargo does not track the profile
        merge(&counts, &profile)?;
    }
    out::line("building the optimised `rb`");
    compile(&folder.join("second"), &format!("-Cprofile-use={}", profile.display()))
}

/// Installs `llvm-profdata`, which merges profiles.
pub(crate) fn install_llvm_tools() -> Result<()> {
    shell::run(shell::program("rustup")?.args(["component", "add", "llvm-tools"]))
}

/// Builds `rb` with an additional compiler flag. With an explicit target the flag does not apply to build scripts.
fn compile(folder: &Path, flag: &str) -> Result<PathBuf> {
    let about = shell::read(rustc()?.arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("`rustc -vV` prints no host")?;
    let mut build = shell::cargo(&["build", "--profile", "dist", "--package", "rb"])?;
    build.args(["--target", host, "--target-dir"]).arg(folder).env("RUSTFLAGS", flag);
    shell::run(&mut build)?;
    Ok(folder.join(host).join("dist").join("rb"))
}

fn rustc() -> Result<Command> {
    shell::program(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

fn merge(counts: &Path, profile: &Path) -> Result<()> {
    let libraries = shell::read(rustc()?.args(["--print", "target-libdir"]))?;
    let tools = Path::new(libraries.trim()).with_file_name("bin");
    let mut merge = shell::program(tools.join("llvm-profdata"))?;
    shell::run(merge.arg("merge").arg("--output").arg(profile).arg(counts))
}

/// Returns true if `file` is missing or was written before `than`.
fn is_older(file: &Path, than: &Path) -> Result<bool> {
    let Ok(metadata) = fs::metadata(file) else { return Ok(true) };
    Ok(metadata.modified()? < fs::metadata(than)?.modified()?)
}
