//! npm packages for the tests: one folder under `target/` per list of packages, installed once.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::python::apt;
use crate::shell;

/// A folder of npm packages.
pub(crate) struct Programs {
    /// Name of the folder.
    pub(crate) name: &'static str,
    /// File with one package per line, relative to the root.
    pub(crate) packages: &'static str,
}

/// Written last; a folder without it is incomplete and installed again.
const STAMP: &str = "installed.txt";

impl Programs {
    /// Installs the packages if needed and returns the folder of their executables.
    pub(crate) fn install(&self) -> Result<PathBuf> {
        let list = std::fs::read_to_string(shell::root()?.join(self.packages));
        let wanted = list.context(self.packages)?;
        let folder = shell::target()?.join(format!("node-{}", self.name));
        let programs = folder.join("node_modules").join(".bin");
        if std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == wanted) {
            return Ok(programs);
        }
        ensure_npm()?;
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot delete: {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder)?;
        let packages = wanted.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut install = shell::program("npm")?;
        install.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
        shell::read(install.arg(&folder).args(packages)).with_context(|| {
            format!("npm install failed: {}; the first run needs network access", self.packages)
        })?;
        std::fs::write(folder.join(STAMP), wanted)?;
        Ok(programs)
    }
}

fn ensure_npm() -> Result<()> {
    let works = || shell::program("npm").is_ok_and(|mut npm| shell::succeeds(npm.arg("--version")));
    if works() {
        return Ok(());
    }
    apt(&["nodejs", "npm"])?;
    if !works() {
        bail!("npm does not work: `npm --version` fails; install nodejs and npm");
    }
    Ok(())
}
