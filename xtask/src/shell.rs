//! Paths of the repository and child processes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The root of the checkout, from the variable that cargo sets for `cargo xtask` and `cargo test`.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set; run `cargo xtask`")?;
    let root = Path::new(&here).parent().context("xtask has no parent folder")?;
    Ok(root.to_owned())
}

/// The build folder of cargo.
pub(crate) fn target() -> Result<PathBuf> {
    let root = root()?;
    Ok(std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |dir| root.join(dir)))
}

/// A command with the root of the checkout as its working directory.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Result<Command> {
    let mut command = Command::new(name);
    command.current_dir(root()?);
    Ok(command)
}

/// The running cargo, without the package variables that it set for us: build scripts that track them would rebuild their
/// dependents whenever cargo is run directly.
pub(crate) fn cargo(args: &[&str]) -> Result<Command> {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))?;
    for (name, _) in std::env::vars_os() {
        let package = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if package.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.args(args);
    Ok(command)
}

/// Runs a command with inherited input and output; an unsuccessful exit is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start: {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs a command and returns its standard output; an unsuccessful exit is an error with its standard error.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start: {}", shown(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {}\n{}", shown(command), output.status, stderr.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns true if the program exists and exits successfully.
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
