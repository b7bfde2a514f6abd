//! Programs from npm for the tests: one folder under `target/`, made once for what is asked for.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::python::apt;
use crate::shell;

/// A folder with programs from npm.
pub(crate) struct Programs {
    /// Names the folder.
    pub(crate) name: &'static str,
    /// A file with one package a line, from the root of the checkout.
    pub(crate) packages: &'static str,
}

/// Written last, so that a folder half made is made again.
const STAMP: &str = "installed.txt";

impl Programs {
    /// Installs what is missing, and gives the folder in which the programs lie.
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
                .with_context(|| format!("cannot renew {}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder)?;
        let packages = wanted.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut install = shell::program("npm")?;
        install.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
        shell::read(install.arg(&folder).args(packages)).with_context(|| {
            format!(
                "{} could not be installed. It comes from npm, so this needs the network once; run the command again \
                 when there is one",
                self.packages
            )
        })?;
        std::fs::write(folder.join(STAMP), wanted)?;
        Ok(programs)
    }
}

fn ensure_npm() -> Result<()> {
    let is_there =
        || shell::program("npm").is_ok_and(|mut npm| shell::succeeds(npm.arg("--version")));
    if is_there() {
        return Ok(());
    }
    apt(&["nodejs", "npm"])?;
    if !is_there() {
        bail!("npm is installed, but `npm --version` still fails");
    }
    Ok(())
}
