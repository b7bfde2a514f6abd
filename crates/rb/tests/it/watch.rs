//! What `rb watch` tells, without a terminal: a line a step, and where it cannot.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use crate::server::Server;
use crate::{rb, run, told};

#[test]
fn every_step_is_a_line_where_there_is_no_terminal() {
    let server = Server::start(&[]);
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
    let server = Server::start(&[]);
    let output =
        run(&["watch", "--url", &format!("http://{}", server.address), "--key", "wrong"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("401"), "{}", told(&output));
}
