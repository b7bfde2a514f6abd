//! Virtual environments for the tests: one folder each under `target/`, made once for what is asked for.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{out, shell};

/// A virtual environment and what is installed in it.
pub(crate) struct Environment {
    /// Names its folder.
    pub(crate) name: &'static str,
    /// A file of requirements, from the root of the checkout.
    pub(crate) requirements: &'static str,
    /// What pip is told besides.
    pub(crate) pip: &'static [&'static str],
}

impl Environment {
    /// Its Python, if everything is installed as asked.
    pub(crate) fn python(&self) -> Option<PathBuf> {
        let (folder, wanted) = (self.folder().ok()?, self.wanted().ok()?);
        let python = folder.join("bin").join("python");
        let is_current =
            std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == wanted);
        (is_current && shell::succeeds(shell::program(&python).ok()?.arg("--version")))
            .then_some(python)
    }

    /// Installs what is missing, and gives its Python.
    pub(crate) fn install(&self) -> Result<PathBuf> {
        if let Some(python) = self.python() {
            return Ok(python);
        }
        ensure_python()?;
        let folder = self.folder()?;
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot renew {}", folder.display()))?;
        }
        make(&folder)?;
        let python = folder.join("bin").join("python");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let mut install = shell::program(&python)?;
        install.args(pip).args(self.pip).args(["--requirement", self.requirements]);
        shell::read(&mut install).with_context(|| {
            format!(
                "{} could not be installed. It comes from PyPI, so this needs the network once; \
                 run the command again when there is one",
                self.requirements
            )
        })?;
        std::fs::write(folder.join(STAMP), self.wanted()?)?;
        Ok(python)
    }

    /// A module of it, ready to be run.
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

/// Written last, so that an environment half made is made again.
const STAMP: &str = "installed.txt";

/// A Python that can make virtual environments. Debian splits that off, so it is installed where we may.
fn ensure_python() -> Result<()> {
    if can_make_venv() {
        return Ok(());
    }
    apt(&["python3", "python3-venv"])?;
    if !can_make_venv() {
        bail!("Python is installed, but `python3 -c 'import venv, ensurepip'` still fails");
    }
    Ok(())
}

/// Installs Debian's packages, where that is possible.
pub(crate) fn apt(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    let is_root = shell::read(shell::program("id")?.arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !is_root || !shell::succeeds(shell::program("apt-get")?.arg("--version")) {
        bail!("{names} are missing; on Debian, `sudo apt-get install {names}` brings them");
    }
    out::say(&format!("installing {names}"));
    let apt = |args: &[&str]| -> Result<()> {
        let mut command = shell::program("apt-get")?;
        shell::read(command.env("DEBIAN_FRONTEND", "noninteractive").args(args)).map(drop)
    };
    apt(&["update", "--quiet"]).context("cannot read the list of packages")?;
    apt(&[&["install", "--quiet", "--yes", "--no-install-recommends"], packages].concat())
        .with_context(|| format!("cannot install {names}"))
}

fn can_make_venv() -> bool {
    let ask = |args: [&str; 2]| {
        shell::program("python3").is_ok_and(|mut p| shell::succeeds(p.args(args)))
    };
    ask(["-c", "import venv, ensurepip"]) || ask(["-c", "import virtualenv"])
}

fn make(at: &Path) -> Result<()> {
    let with =
        |module| shell::read(shell::program("python3")?.args(["-m", module]).arg(at)).map(drop);
    with("venv")
        .or_else(|first| with("virtualenv").map_err(|_| first))
        .context("cannot make a virtual environment")
}
