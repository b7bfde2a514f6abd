//! Server process for commands that talk to one.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

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
        self.call("POST", path, Some(body), "authorization: Bearer key\r\n");
    }

    /// Sends a request with the key and returns the JSON of the reply.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Value {
        let (_, reply) = self.call(method, path, body, "authorization: Bearer key\r\n");
        serde_json::from_str(&reply).expect("JSON")
    }

    /// Signs in and returns a page.
    pub(crate) fn page(&self, path: &str) -> String {
        let form = "content-type: application/x-www-form-urlencoded\r\n";
        let (head, _) = self.call("POST", "/ui/sign-in", Some("key=key"), form);
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).expect("a cookie");
        self.call("GET", path, None, &format!("cookie: {cookie}\r\n")).1
    }

    /// Deletes the patterns that a new server has.
    pub(crate) fn delete_patterns(&self) {
        for tier in ["e1", "e2", "e3"] {
            let listed =
                self.ask("GET", &format!("/v1/library/patterns?tier={tier}&limit=1000"), None);
            for pattern in listed.as_array().expect("patterns") {
                let id = pattern["pattern_id"].as_str().expect("an id");
                self.ask("DELETE", &format!("/v1/library/patterns/{tier}/{id}"), None);
            }
        }
    }

    /// Returns a stored run once it has this many steps. The gateway stores steps in the background.
    pub(crate) fn run(&self, run_id: &str, steps: usize) -> Value {
        let begun = Instant::now();
        loop {
            let key = "authorization: Bearer key\r\n";
            let (head, body) = self.send("GET", &format!("/v1/monitor/runs/{run_id}"), None, key);
            let run: Value = serde_json::from_str(&body).unwrap_or_default();
            if run["steps"].as_array().is_some_and(|found| found.len() >= steps) {
                return run;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{head}\n{body}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a request with these header lines and returns head and body of the reply, which must be a success.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        headers: &str,
    ) -> (String, String) {
        let (head, body) = self.send(method, path, body, headers);
        let is_success = head.starts_with("HTTP/1.1 20") || head.starts_with("HTTP/1.1 303");
        assert!(is_success, "{head}\n{body}");
        (head, body)
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        headers: &str,
    ) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let body = body.unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
        assert!(!head.contains("chunked"), "{head}");
        (head.to_owned(), body.to_owned())
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
