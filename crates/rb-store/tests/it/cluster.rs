//! PostgreSQL server of a test: created in a temporary directory, reached through a socket in it, removed with the
//! test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Set by `cargo xtask test`: tests then fail without PostgreSQL instead of being skipped.
const MANDATORY: &str = "RB_TEST_POSTGRES";

/// Running server, which is stopped on drop.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    programs: PathBuf,
    databases: AtomicU32,
}

/// Server that tests share while any of them uses it, because starting one takes seconds.
static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());

impl Cluster {
    /// Returns the shared server.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// Starts a server; returns `None` if PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            let mandatory = std::env::var_os(MANDATORY).is_some();
            assert!(!mandatory, "PostgreSQL is not installed: `cargo xtask test tools` does it");
            println!("skipped: PostgreSQL is not installed (Debian: `apt-get install postgresql`)");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("rb-pg").tempdir_in("/tmp").expect("a folder");
        let cluster = Self { folder, programs, databases: AtomicU32::new(0) };
        cluster.give_away();
        let data = cluster.data();
        cluster.run(
            "initdb",
            &[
                "--auth=trust",
                "--username=rb",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                "--pgdata",
                &data,
            ],
        );
        cluster.begin();
        Some(cluster)
    }

    /// Changes the owner of the directory: the server refuses to run as root and then runs as the user of the
    /// package.
    fn give_away(&self) {
        if is_root() {
            let given = Command::new("chown").arg("postgres").arg(self.folder.path()).status();
            assert!(given.expect("chown").success(), "the folder cannot be given to postgres");
        }
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = if is_root() {
            let mut runuser = Command::new("runuser");
            runuser.args(["-u", "postgres", "--"]).arg(path);
            runuser
        } else {
            Command::new(path)
        };
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, args: &[&str]) {
        let done = self.command(program).args(args).output().expect("the program starts");
        let output = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{program}: {output}");
    }

    /// Starts the server and waits until it accepts connections. Without fsync, because data passed to the kernel
    /// survives the death of the process.
    pub(crate) fn begin(&self) {
        let socket = self.folder.path().display();
        let options = format!(
            "-c listen_addresses='' -c unix_socket_directories='{socket}' -c max_connections=200 -c fsync=off"
        );
        let log = self.folder.path().join("log").display().to_string();
        let data = self.data();
        self.run(
            "pg_ctl",
            &[
                "--wait",
                "--silent",
                "--pgdata",
                &data,
                "--log",
                &log,
                "--options",
                &options,
                "start",
            ],
        );
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&self) {
        let file = self.folder.path().join("data/postmaster.pid");
        let pid = std::fs::read_to_string(file).expect("a running server");
        let pid = pid.lines().next().expect("a number").to_owned();
        let killed = Command::new("kill").args(["-9", &pid]).status().expect("kill");
        assert!(killed.success(), "the server was not there");
        // The child processes end by themselves; a new server starts only after that.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the URL of a new empty schema, which is created much faster than a database.
    pub(crate) fn database(&self) -> String {
        let name = format!("s{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let socket = self.folder.path().display().to_string();
        let make = format!("CREATE SCHEMA {name}");
        self.run(
            "psql",
            &[
                "--quiet",
                "--host",
                &socket,
                "--username=rb",
                "--dbname=postgres",
                "--command",
                &make,
            ],
        );
        let socket = socket.replace('/', "%2F");
        format!("postgres://rb@{socket}/postgres?options=-csearch_path%3D{name}")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data();
        let stop = ["--silent", "--pgdata", &data, "--mode", "immediate", "stop"];
        drop(self.command("pg_ctl").args(stop).output());
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id");
    output.stdout.trim_ascii() == b"0"
}

/// Returns the directory of the newest PostgreSQL programs: of Debian's package or in the path.
fn programs() -> Option<PathBuf> {
    let of_path = std::env::var_os("PATH").unwrap_or_default();
    let of_path: Vec<PathBuf> = std::env::split_paths(&of_path).collect();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = debian.map(|version| version.path().join("bin")).collect();
    debian.sort();
    let has_it = |folder: &PathBuf| Path::new(folder).join("initdb").is_file();
    debian.into_iter().rev().chain(of_path).find(has_it)
}
