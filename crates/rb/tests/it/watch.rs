//! What `rb watch` tells, without a terminal: a line a step, and where it cannot.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::{rb, run, told};

/// A server of its own on a free port, ended with the test.
struct Server {
    child: std::process::Child,
    address: String,
    _data: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let folder = data.path().to_str().expect("UTF-8");
        let child = rb(&["serve", "--listen", &address, "--data-dir", folder])
            .env("REASONBLOCKS_KEYS", "key")
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

    fn post(&self, path: &str, body: &str) {
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
fn every_step_is_a_line_where_there_is_no_terminal() {
    let server = Server::start();
    let url = format!("http://{}", server.address);
    server
        .post("/v1/monitor/runs", r#"{"run_id": "r", "agent_name": "me\u001b[2J", "model": "m"}"#);
    let mut watch = rb(&["watch", "--url", &url, "--key", "key"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("rb starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    // Steps are told until one is heard: nothing says when the listening begins.
    let told = std::thread::scope(|scope| {
        let first = scope.spawn(|| lines.next());
        for at in 0.. {
            server.post(
                "/v1/monitor/runs/r/steps",
                &format!(r#"{{"step_index": {at}, "thought": "x"}}"#),
            );
            if first.is_finished() || at > 200 {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        first.join().expect("no panic").expect("a line").expect("UTF-8")
    });
    drop(watch.kill());
    drop(watch.wait());
    assert!(told.starts_with("r  "), "{told:?}");
    assert!(told.contains("  step "), "{told:?}");
    assert!(!told.contains('\u{1b}'), "{told:?}");
}

#[test]
fn a_server_that_is_not_there_or_refuses_is_told() {
    let output = run(&["watch", "--url", "http://127.0.0.1:1"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("is `rb serve` running there?"), "{}", told(&output));
    let server = Server::start();
    let output =
        run(&["watch", "--url", &format!("http://{}", server.address), "--key", "wrong"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("401"), "{}", told(&output));
}
