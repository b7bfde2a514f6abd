//! `rb run` with a scripted provider.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::rb;

const ANSWER: &str = r#"{"id":"msg","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1000,"output_tokens":10}}"#;

/// Calls the model once and exits with 7.
const CALLER: &str = r#"
import json, os, sys, urllib.request
body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", data=json.dumps(body).encode(),
                                 headers={"content-type": "application/json", "x-api-key": "sk-secret"})
print(json.load(urllib.request.urlopen(request))["content"][0]["text"])
sys.exit(7)
"#;

/// Starts a provider that always returns the same response.
fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream);
        }
    });
    url
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the whole body");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        ANSWER.len()
    );
    stream.write_all((head + ANSWER).as_bytes()).expect("a reader");
}

fn run_child(data: &tempfile::TempDir, child: &[&str]) -> Output {
    let data_dir = data.path().to_str().expect("UTF-8");
    let mut command = rb(&["run", "--color", "never", "--data-dir", data_dir, "--"]);
    command.args(child).env("RB_UPSTREAM_ANTHROPIC", provider()).stdin(Stdio::null());
    command.output().expect("rb runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn the_child_keeps_its_output_and_exit_code_and_the_run_gets_the_outcome() {
    let data = tempfile::tempdir().expect("a folder");
    let output = run_child(&data, &["python3", "-c", CALLER]);
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(7), "Done.\n"),
        "{}",
        text(&output.stderr)
    );
    let printed = text(&output.stderr);
    assert!(
        printed
            .starts_with("\nReasonBlocks  1 run, 2 steps, 1,010 tokens (0 from the cache), $0.0"),
        "{printed}"
    );
    assert!(printed.contains("rb show --data-dir "), "{printed}");
    let data_dir = data.path().to_str().expect("UTF-8");
    let listed = crate::run(&["runs", "--json", "--data-dir", data_dir], b"");
    assert!(text(&listed.stdout).contains("\"outcome\":\"failure: exit code 7\""), "{listed:?}");
    let log = std::fs::read_to_string(data.path().join("run.log")).expect("a log");
    assert!(!log.contains("sk-secret") && !printed.contains("sk-secret"), "{log}");
}

#[test]
fn a_child_without_calls_is_not_an_error() {
    let data = tempfile::tempdir().expect("a folder");
    let cases: [(&[&str], i32); 3] =
        [(&["true"], 0), (&["sh", "-c", "kill -9 $$"], 137), (&["no-such-command"], 127)];
    for (child, code) in cases {
        let output = run_child(&data, child);
        let printed = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{child:?} {printed}");
        assert!(
            printed.ends_with("ReasonBlocks  no call passed through the gateway\n"),
            "{child:?} {printed}"
        );
        assert_eq!(text(&output.stdout), "", "{child:?}");
    }
}

#[test]
fn the_child_gets_the_addresses_of_the_gateway() {
    let data = tempfile::tempdir().expect("a folder");
    let shown = "echo $ANTHROPIC_BASE_URL $OPENAI_BASE_URL $OPENAI_API_BASE";
    let output = run_child(&data, &["sh", "-c", shown]);
    let printed = text(&output.stdout);
    let words: Vec<&str> = printed.split_whitespace().collect();
    let [anthropic, openai, older] = words.as_slice() else { panic!("{printed}") };
    assert!(
        anthropic.starts_with("http://127.0.0.1:") && anthropic.ends_with("/anthropic"),
        "{printed}"
    );
    assert!(openai.ends_with("/openai/v1") && openai == older, "{printed}");
}

#[test]
fn signals_are_forwarded_to_the_child() {
    let data = tempfile::tempdir().expect("a folder");
    let ready = data.path().join("ready");
    let script =
        format!("trap 'exit 9' TERM; touch {}; while :; do sleep 0.05; done", ready.display());
    let data_dir = data.path().to_str().expect("UTF-8");
    let mut command = rb(&["run", "--data-dir", data_dir, "--", "sh", "-c", &script]);
    let mut running =
        command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("rb starts");
    let begun = Instant::now();
    while !ready.exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the child did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let killed =
        std::process::Command::new("kill").arg(running.id().to_string()).status().expect("kill");
    assert!(killed.success());
    assert_eq!(running.wait().expect("rb ends").code(), Some(9));
}
