//! Python virtual environments for the tests: one folder under `target/` per requirements file, installed once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{out, shell};

/// A virtual environment and its packages.
pub(crate) struct Environment {
    /// Name of the folder.
    pub(crate) name: &'static str,
    /// Requirements file, relative to the root.
    pub(crate) requirements: &'static str,
    /// Further arguments of pip.
    pub(crate) pip: &'static [&'static str],
}

impl Environment {
    /// Returns its Python if the current requirements are installed.
    pub(crate) fn python(&self) -> Option<PathBuf> {
        let (folder, wanted) = (self.folder().ok()?, self.wanted().ok()?);
        let python = folder.join("bin").join("python");
        let is_current =
            std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == wanted);
        (is_current && shell::succeeds(shell::program(&python).ok()?.arg("--version")))
            .then_some(python)
    }

    /// Installs the packages if needed and returns its Python.
    pub(crate) fn install(&self) -> Result<PathBuf> {
        if let Some(python) = self.python() {
            return Ok(python);
        }
        ensure_python()?;
        let folder = self.folder()?;
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot delete: {}", folder.display()))?;
        }
        create(&folder)?;
        let python = folder.join("bin").join("python");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let mut install = shell::program(&python)?;
        install.args(pip).args(self.pip).args(["--requirement", self.requirements]);
        shell::read(&mut install).with_context(|| {
            format!("pip install failed: {}; the first run needs network access", self.requirements)
        })?;
        std::fs::write(folder.join(STAMP), self.wanted()?)?;
        Ok(python)
    }

    /// Returns a command that runs one of its modules.
    pub(crate) fn module(&self, module: &str) -> Result<Command> {
        let mut command = shell::program(self.install()?)?;
        command.args(["-m", module]);
        Ok(command)
    }

    fn folder(&self) -> Result<PathBuf> {
        Ok(shell::target()?.join(format!("venv-{}", self.name)))
    }

    fn wanted(&self) -> Result<String> {
        std::fs::read_to_string(shell::root()?.join(self.requirements)).context(self.requirements)
    }
}

/// Written last; an environment without it is incomplete and created again.
const STAMP: &str = "installed.txt";

/// Ensures that Python can create virtual environments; Debian packages that separately.
fn ensure_python() -> Result<()> {
    if can_make_venv() {
        return Ok(());
    }
    apt(&["python3", "python3-venv"])?;
    if !can_make_venv() {
        bail!("Python cannot create virtual environments; install the modules venv and ensurepip");
    }
    Ok(())
}

/// Installs Debian packages; needs root.
pub(crate) fn apt(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    let is_root = shell::read(shell::program("id")?.arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !is_root || !shell::succeeds(shell::program("apt-get")?.arg("--version")) {
        bail!("packages are missing: {names}; on Debian run `sudo apt-get install {names}`");
    }
    out::line(&format!("installing {names}"));
    let apt = |args: &[&str]| -> Result<()> {
        let mut command = shell::program("apt-get")?;
        shell::read(command.env("DEBIAN_FRONTEND", "noninteractive").args(args)).map(drop)
    };
    apt(&["update", "--quiet"]).context("apt-get update failed")?;
    apt(&[&["install", "--quiet", "--yes", "--no-install-recommends"], packages].concat())
        .with_context(|| format!("apt-get install failed: {names}"))
}

fn can_make_venv() -> bool {
    let succeeds = |args: [&str; 2]| {
        shell::program("python3").is_ok_and(|mut p| shell::succeeds(p.args(args)))
    };
    succeeds(["-c", "import venv, ensurepip"]) || succeeds(["-c", "import virtualenv"])
}

fn create(at: &Path) -> Result<()> {
    let with =
        |module| shell::read(shell::program("python3")?.args(["-m", module]).arg(at)).map(drop);
    with("venv")
        .or_else(|first| with("virtualenv").map_err(|_| first))
        .context("cannot create a virtual environment")
}
