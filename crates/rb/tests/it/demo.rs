//! Output of `rb demo`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use crate::{printed, rb, run};

#[test]
fn both_runs_are_compared() {
    insta::assert_snapshot!("demo", printed(&run(&["demo", "--color", "never"], b"")));
}

#[test]
fn the_dashboard_shows_both_runs_until_the_demo_is_stopped() {
    let mut child = rb(&["demo", "--stay", "--color", "never"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rb starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let link = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("on the dashboard: http://")?.1.to_owned()))
        .expect("a link");
    let mut stream = TcpStream::connect(link.trim_end_matches('/')).expect("a server");
    write!(stream, "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .expect("a reader");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    assert!(
        page.contains("scripted-demo-left-alone") && page.contains("scripted-demo-steered"),
        "{page}"
    );
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}
