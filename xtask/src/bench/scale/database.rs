//! A PostgreSQL of the benchmark's own, in a temporary folder, with the settings of the package.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::bench::process::free_address;
use crate::{shell, tools};

/// A server that runs until it is dropped.
pub(super) struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Postgres {
    pub(super) fn start() -> Result<Self> {
        tools::postgresql()?;
        let folder = std::env::temp_dir().join(format!("rb-bench-scale-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        if is_root()? {
            shell::run(shell::program("chown")?.arg("postgres").arg(&folder))?;
        }
        let this = Self { programs: programs()?, folder, port: free_address()?.port() };
        let data = this.folder.join("data");
        let auth = ["--auth=trust", "--username=rb", "--encoding=UTF8", "--locale=C.UTF-8"];
        shell::read(this.program("initdb")?.args(auth).arg("--pgdata").arg(&data))?;
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories='{}' -c max_connections=200",
            this.port,
            this.folder.display()
        );
        // What it writes goes into a file: it would keep a pipe open for as long as it runs.
        let mut start = this.program("pg_ctl")?;
        start.args(["start", "--wait", "--silent", "--timeout=120", "--pgdata"]).arg(&data);
        start.arg("--log").arg(this.folder.join("log")).args(["--options", &options]);
        shell::run(&mut start)?;
        Ok(this)
    }

    /// A new database; its address.
    pub(super) fn database(&self, name: &str) -> Result<String> {
        let port = self.port.to_string();
        let mut create = self.program("createdb")?;
        create.args(["--host=127.0.0.1", "--port", &port, "--username=rb", name]);
        shell::read(&mut create)?;
        Ok(format!("postgres://rb@127.0.0.1:{port}/{name}?sslmode=disable"))
    }

    /// It refuses to run as root, so as root it runs as the user that the package made.
    fn program(&self, name: &str) -> Result<Command> {
        let program = self.programs.join(name);
        let mut command = if is_root()? {
            let mut command = shell::program("runuser")?;
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            shell::program(program)?
        };
        command.current_dir(&self.folder);
        Ok(command)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.folder.join("data");
        if let Ok(mut stop) = self.program("pg_ctl") {
            stop.args(["stop", "--silent", "--mode=immediate", "--pgdata"]).arg(data);
            // Its data goes, so nothing of it is missed.
            drop(shell::read(&mut stop));
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn is_root() -> Result<bool> {
    Ok(shell::read(shell::program("id")?.arg("-u"))?.trim() == "0")
}

/// Where the newest PostgreSQL of this machine keeps its programs.
fn programs() -> Result<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version =
        |folder: &PathBuf| folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = debian.map(|entry| entry.path()).max_by_key(version).map(|it| it.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_it = |folder: &Path| folder.join("initdb").is_file();
    let mut folders = newest.into_iter().chain(std::env::split_paths(&path));
    folders.find(|folder| has_it(folder)).context("PostgreSQL is not installed")
}
