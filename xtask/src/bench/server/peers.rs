//! The servers as processes: started, waited for, and ended with the benchmark.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::bench::load::Connection;
use crate::python::Environment;
use crate::shell;

/// `FastAPI`, with the suite it serves.
const PEER: Environment = Environment {
    name: "bench-server",
    requirements: "xtask/src/bench/server/requirements.txt",
    pip: &[],
};

const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// The load is one key; the limit is not what is measured.
const NO_LIMIT: &str = "1000000000";

/// A server that runs until it is dropped.
pub(super) struct Server {
    process: Child,
    pub(super) address: SocketAddr,
    /// Its data, deleted at the end.
    data: Option<PathBuf>,
}

impl Server {
    /// `rb serve`, built for release, on a database of its own.
    pub(super) fn ours() -> Result<Self> {
        shell::run(&mut shell::cargo(&["build", "--release", "--quiet", "--package", "rb"])?)?;
        let rb = shell::target()?.join("release").join("rb");
        let data = shell::target()?.join("bench-server-data");
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        let address = free_address()?;
        let mut command = shell::program(rb)?;
        command.args(["serve", "--listen", &address.to_string(), "--data-dir"]).arg(&data);
        command
            .env("REASONBLOCKS_KEYS", "operator")
            .env("RATE_LIMIT_PER_SEC", NO_LIMIT)
            .env("RATE_LIMIT_BURST", NO_LIMIT);
        Self::start(command, address, Some(data))
    }

    /// The `FastAPI` server.
    pub(super) fn theirs() -> Result<Self> {
        let address = free_address()?;
        let mut command = PEER.module("uvicorn")?;
        command
            .args(["peer:app", "--app-dir", "xtask/src/bench/server", "--log-level", "warning"])
            .args(["--port", &address.port().to_string()]);
        Self::start(command, address, None)
    }

    fn start(mut command: Command, address: SocketAddr, data: Option<PathBuf>) -> Result<Self> {
        let process = command.stdout(Stdio::null()).spawn().context("cannot start a server")?;
        let mut server = Self { process, address, data };
        let begun = Instant::now();
        let health = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
        loop {
            let answered = Connection::open(address).and_then(|mut it| it.call(health));
            if let Ok((200, _)) = answered {
                return Ok(server);
            }
            if server.process.try_wait()?.is_some() || begun.elapsed() > STARTS_WITHIN {
                bail!("the server on {address} does not answer");
            }
            thread::sleep(Duration::from_millis(50));
        }
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

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
