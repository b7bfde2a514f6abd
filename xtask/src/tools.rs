//! Finding and installing what the tests need: a Python with the public package in it.
//!
//! The heuristic suite is fixed bit for bit by that package, so the tests ask it, and the benchmark times it.
//! It is installed without its dependencies (the suite needs none) and never becomes part of the product.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{out, shell};

/// Pinned by hash.
const REQUIREMENT: &str = "xtask/reference.txt";

/// The Python that holds the reference, if it is installed.
pub(crate) fn reference() -> Option<PathBuf> {
    let (venv, wanted) = (venv().ok()?, wanted().ok()?);
    let python = python_in(&venv);
    let is_current = std::fs::read_to_string(stamp_in(&venv)).is_ok_and(|stamp| stamp == wanted);
    (is_current && shell::succeeds(shell::program(&python).ok()?.arg("--version")))
        .then_some(python)
}

/// Installs the reference unless it is there, and gives its Python.
pub(crate) fn install_reference() -> Result<PathBuf> {
    if let Some(python) = reference() {
        return Ok(python);
    }
    ensure_python()?;
    let venv = venv()?;
    if venv.exists() {
        std::fs::remove_dir_all(&venv)
            .with_context(|| format!("cannot renew {}", venv.display()))?;
    }
    make_venv(&venv)?;
    let python = python_in(&venv);
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let install = shell::read(shell::program(&python)?.args(pip).args([
        "--require-hashes",
        "--requirement",
        REQUIREMENT,
    ]));
    install.context(
        "the reference package could not be installed. It comes from PyPI, so this needs the network once; \
         run `cargo xtask test` again when there is one. To go on without it, name the other stages: \
         `cargo xtask test fmt clippy tests tidy gen docs hygiene`",
    )?;
    std::fs::write(stamp_in(&venv), wanted()?)?;
    Ok(python)
}

/// A Python that can make virtual environments. Debian splits that off, so it is installed where we may.
fn ensure_python() -> Result<()> {
    if can_make_venv() {
        return Ok(());
    }
    let is_root = shell::read(shell::program("id")?.arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !is_root || !shell::succeeds(shell::program("apt-get")?.arg("--version")) {
        bail!(
            "Python 3 with its `venv` module is missing; on Debian, \
             `sudo apt-get install python3 python3-venv` brings it"
        );
    }
    out::say("installing python3 and python3-venv");
    let apt = |args: &[&str]| -> Result<()> {
        let mut command = shell::program("apt-get")?;
        shell::read(command.env("DEBIAN_FRONTEND", "noninteractive").args(args)).map(drop)
    };
    apt(&["update", "--quiet"]).context("cannot read the list of packages")?;
    apt(&["install", "--quiet", "--yes", "--no-install-recommends", "python3", "python3-venv"])
        .context("cannot install Python")?;
    if !can_make_venv() {
        bail!("Python is installed, but `python3 -c 'import venv, ensurepip'` still fails");
    }
    Ok(())
}

fn can_make_venv() -> bool {
    let ask = |args: [&str; 2]| {
        shell::program("python3").is_ok_and(|mut p| shell::succeeds(p.args(args)))
    };
    ask(["-c", "import venv, ensurepip"]) || ask(["-c", "import virtualenv"])
}

fn make_venv(at: &Path) -> Result<()> {
    let with =
        |module| shell::read(shell::program("python3")?.args(["-m", module]).arg(at)).map(drop);
    with("venv")
        .or_else(|first| with("virtualenv").map_err(|_| first))
        .context("cannot make a virtual environment")
}

fn venv() -> Result<PathBuf> {
    Ok(shell::target()?.join("venv-reference"))
}

fn python_in(venv: &Path) -> PathBuf {
    venv.join("bin").join("python")
}

fn stamp_in(venv: &Path) -> PathBuf {
    venv.join("installed.txt")
}

fn wanted() -> Result<String> {
    std::fs::read_to_string(shell::root()?.join(REQUIREMENT)).context(REQUIREMENT)
}
