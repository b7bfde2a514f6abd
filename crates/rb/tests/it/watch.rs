//! `rb watch` without a terminal.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use crate::server::Server;
use crate::{printed, rb, run};

#[test]
fn every_step_is_a_line_without_a_terminal() {
    let server = Server::start(&[]);
    let url = format!("http://{}", server.address);
    server
        .post("/v1/monitor/runs", r#"{"run_id": "r", "agent_name": "me\u001b[2J", "model": "m"}"#);
    let mut watch = rb(&["watch", "--url", &url, "--key", "key"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("rb starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    // Repeats steps until one is printed, because nothing signals the start of the subscription.
    let printed = std::thread::scope(|scope| {
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
    assert!(printed.starts_with("r  "), "{printed:?}");
    assert!(printed.contains("  step "), "{printed:?}");
    assert!(!printed.contains('\u{1b}'), "{printed:?}");
}

#[test]
fn an_unreachable_or_refusing_server_is_reported() {
    let output = run(&["watch", "--url", "http://127.0.0.1:1"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains("is `rb serve` running there?"), "{}", printed(&output));
    let server = Server::start(&[]);
    let output =
        run(&["watch", "--url", &format!("http://{}", server.address), "--key", "wrong"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains("401"), "{}", printed(&output));
}
