//! Servers as processes: started, waited for, and ended with the benchmark.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::load::Connection;
use crate::shell;

const STARTS_WITHIN: Duration = Duration::from_secs(90);
/// The load is one key; the limit is not what is measured.
const NO_LIMIT: &str = "1000000000";

/// The unit of times in `/proc`, on every Linux there is.
const TICKS_A_SECOND: f64 = 100.0;

/// A server that runs until it is dropped.
pub(crate) struct Server {
    process: Child,
    pub(super) address: SocketAddr,
    /// Its data, deleted at the end.
    data: Option<PathBuf>,
}

impl Server {
    /// `rb serve`, built for release, on a database of its own, with what is set besides.
    pub(super) fn ours(set: &[(&str, String)]) -> Result<Self> {
        Self::on(fresh_folder("bench-server-data")?, set)
    }

    /// The same on data that is there.
    pub(super) fn on(data: PathBuf, set: &[(&str, String)]) -> Result<Self> {
        Self::of(&rb()?, data, set)
    }

    /// The same of a program that is there.
    pub(crate) fn of(rb: &Path, data: PathBuf, set: &[(&str, String)]) -> Result<Self> {
        let address = free_address()?;
        let mut command = shell::program(rb)?;
        command.args(["serve", "--listen", &address.to_string(), "--data-dir"]).arg(&data);
        command
            .env("REASONBLOCKS_KEYS", "operator")
            .env("RATE_LIMIT_PER_SEC", NO_LIMIT)
            .env("RATE_LIMIT_BURST", NO_LIMIT)
            .envs(set.iter().map(|(name, value)| (name, value)));
        Self::start(command, address, Some(data), "/health")
    }

    /// Starts a server and waits until it answers at a path.
    pub(super) fn start(
        mut command: Command,
        address: SocketAddr,
        data: Option<PathBuf>,
        alive: &str,
    ) -> Result<Self> {
        let process = command.stdout(Stdio::null()).spawn().context("cannot start a server")?;
        let mut server = Self { process, address, data };
        let begun = Instant::now();
        let health = format!("GET {alive} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        loop {
            let answered = Connection::open(address).and_then(|mut it| it.call(health.as_bytes()));
            if let Ok((200, _)) = answered {
                return Ok(server);
            }
            if server.process.try_wait()?.is_some() || begun.elapsed() > STARTS_WITHIN {
                bail!("the server on {address} does not answer");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn end(mut self) -> Result<()> {
        shell::run(shell::program("kill")?.arg(self.process.id().to_string()))?;
        self.process.wait()?;
        Ok(())
    }

    /// The processor time it has taken so far, in seconds.
    pub(super) fn processor_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The name of the program may hold anything, so counting begins behind it.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: Vec<f64> = fields.skip(11).take(2).flat_map(str::parse).collect();
        Ok(ticks.iter().sum::<f64>() / TICKS_A_SECOND)
    }

    /// What it keeps in memory.
    pub(super) fn resident_bytes(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")).map(str::trim);
        Ok(kilobytes.context("its resident memory")?.parse::<f64>()? * 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is a child of ours and has nothing to lose.
        drop(self.process.kill());
        drop(self.process.wait());
        if let Some(data) = &self.data {
            drop(std::fs::remove_dir_all(data));
        }
    }
}

/// The program: the one that `RB_BIN` names, or built for release.
fn rb() -> Result<PathBuf> {
    if let Some(rb) = std::env::var_os("RB_BIN") {
        return Ok(rb.into());
    }
    shell::run(&mut shell::cargo(&["build", "--release", "--quiet", "--package", "rb"])?)?;
    Ok(shell::target()?.join("release").join("rb"))
}

/// An empty folder under `target/`.
pub(crate) fn fresh_folder(name: &str) -> Result<PathBuf> {
    let folder: &Path = &shell::target()?.join(name);
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    Ok(folder.to_owned())
}

pub(super) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
