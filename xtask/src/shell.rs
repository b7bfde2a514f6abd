//! Where the repository is, and how other programs are run in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The root of the checkout. Cargo says where this crate is, both in `cargo xtask` and in `cargo test`.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&here).parent().context("xtask lies in the repository")?;
    Ok(root.to_owned())
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> Result<PathBuf> {
    let root = root()?;
    Ok(std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |dir| root.join(dir)))
}

/// A program, started in the root of the checkout.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Result<Command> {
    let mut command = Command::new(name);
    command.current_dir(root()?);
    Ok(command)
}

/// The cargo that runs us. It is not told that we are a package: build scripts that look would run again, and whatever
/// depends on them be built again, each time somebody builds without us.
pub(crate) fn cargo(args: &[&str]) -> Result<Command> {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))?;
    for (name, _) in std::env::vars_os() {
        let is_ours = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if is_ours.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.args(args);
    Ok(command)
}

/// Runs to the end with our own input and output; fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs to the end and gives what it printed; fails, with what it complained about, if it fails.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}\n{}", shown(command), output.status, complaint.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the program is there and content.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(name).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    format!("`{}`", words.join(" "))
}
