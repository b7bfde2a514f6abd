//! Server process for commands that talk to one.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::rb;

/// Server on a free port that is killed at the end of the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    _data: tempfile::TempDir,
}

impl Server {
    /// Starts a server with the key `key` and these environment variables.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let folder = data.path().to_str().expect("UTF-8");
        let child = rb(&["serve", "--listen", &address, "--data-dir", folder])
            .env("REASONBLOCKS_KEYS", "key")
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let server = Self { child, address, _data: data };
        let begun = Instant::now();
        while TcpStream::connect(&server.address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub(crate) fn post(&self, path: &str, body: &str) {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer key\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        assert!(reply.starts_with("HTTP/1.1 20"), "{reply}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn every_environment_variable_is_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let pages = ["server.md", "gateway.md"].map(|page| format!("{docs}/{page}"));
    let text = pages.map(|page| std::fs::read_to_string(page).expect("a page")).concat();
    for variable in &rb_server::config::VARIABLES {
        let name = format!("`{}`", variable.name);
        assert!(text.contains(&name), "{name} is missing in docs/server.md and docs/gateway.md");
    }
}
