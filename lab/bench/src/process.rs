//! Child processes under test: started, polled until healthy, and killed on drop.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

/// Valgrind needs most of this.
const START_TIMEOUT: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Clock ticks per second in `/proc`, on all Linux platforms.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running server.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
    /// Its data and configuration, deleted on drop.
    _folder: TempDir,
}

impl Server {
    /// Starts `rb serve` in front of a provider, with a fresh SQLite database. `wrapper` is a command line that runs `rb`.
    pub(crate) fn rb(rb: &Path, provider: SocketAddr, wrapper: &[String]) -> Result<Self> {
        let (folder, address) = (tempfile::tempdir()?, free_address()?);
        // Under valgrind a decision exceeds the default timeout of 50 ms.
        let config = folder.path().join("rb.toml");
        fs::write(&config, "[gateway]\ndecision_timeout_ms = 60000\n")?;
        let mut command = match wrapper {
            [] => Command::new(rb),
            [program, args @ ..] => {
                let mut command = Command::new(program);
                command.args(args).arg(rb);
                command
            }
        };
        command.args(["serve", "--listen", &address.to_string(), "--data-dir"]).arg(folder.path());
        command.arg("--config").arg(&config);
        for name in ["RB_UPSTREAM_ANTHROPIC", "RB_UPSTREAM_OPENAI"] {
            command.env(name, format!("http://{provider}"));
        }
        for name in ["RATE_LIMIT_PER_SEC", "RATE_LIMIT_BURST"] {
            command.env(name, "1000000000");
        }
        Self::start(command.env("REASONBLOCKS_KEYS", "operator"), address, folder)
    }

    /// Starts nginx as a plain reverse proxy: one worker, keep-alive to the provider, no buffering and no log.
    pub(crate) fn nginx(provider: SocketAddr) -> Result<Self> {
        let (folder, address) = (tempfile::tempdir()?, free_address()?);
        let config = folder.path().join("nginx.conf");
        let text = format!(
            "daemon off; master_process off; pid {at}/pid; error_log stderr crit;\nevents {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_max_body_size 100m; client_body_buffer_size 4m;\n\
             client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;\n\
             upstream provider {{ server {provider}; keepalive 256; keepalive_requests 100000000; }}\n\
             server {{ listen {address}; keepalive_requests 100000000; location = /health {{ return 200 ok; }}\n\
             location / {{ proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering off; }} }} }}\n",
            at = folder.path().display(),
        );
        fs::write(&config, text)?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).arg("-c").arg(&config);
        Self::start(&mut command, address, folder)
    }

    fn start(command: &mut Command, address: SocketAddr, folder: TempDir) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.with_context(|| format!("cannot start: {name}; install it"))?;
        let mut server = Self { process, address, _folder: folder };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(address).is_err() {
            if server.process.try_wait()?.is_some() || Instant::now() > deadline {
                bail!("server did not start: {name} on {address}");
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(server)
    }

    /// Sends SIGTERM and waits for the process to exit.
    pub(crate) fn stop(mut self) -> Result<()> {
        let killed = Command::new("kill").arg(self.process.id().to_string()).status()?;
        ensure!(killed.success(), "cannot signal process {}", self.process.id());
        self.process.wait()?;
        Ok(())
    }

    /// CPU time used so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The program name can contain spaces; the fields follow its closing parenthesis.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        Ok(fields.skip(11).take(2).flat_map(str::parse::<f64>).sum::<f64>() / TICKS_PER_SECOND)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Builds the release `rb` of this checkout and returns its path.
pub(crate) fn build_rb() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = Command::new(cargo)
        .current_dir(&root)
        .args(["build", "--release", "--package", "rb"])
        .status()?;
    ensure!(status.success(), "building `rb` failed");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |path| root.join(path));
    Ok(target.join("release/rb"))
}
