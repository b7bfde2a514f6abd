//! Upstream failures: the agent gets exactly the bytes that the upstream sent.

use std::time::Duration;

use super::dialects::{DIALECTS, Dialect, obliging};
use super::upstream::{Act, answer, chunk, stream_head};
use super::{Stage, client, until};

/// Expected response to the agent.
enum Expected {
    /// Status, body and completeness as sent by the upstream.
    Verbatim(u16, Vec<u8>, bool),
    /// The upstream sent nothing that can be forwarded.
    Nothing,
}

fn cases() -> Vec<(&'static str, Vec<Act>, Expected)> {
    let odd = |status: &str, kind: &str, body: &[u8]| {
        let code = status[..3].parse().unwrap();
        (answer(status, kind, body), Expected::Verbatim(code, body.to_vec(), true))
    };
    let garbage = b"\x00\xff{{{not an answer".as_slice();
    let mut cases = Vec::new();
    for (name, (acts, expected)) in [
        ("a page of a proxy", odd("400 Bad Request", "text/html", b"<html>no</html>")),
        ("an error without a body", odd("404 Not Found", "application/json", b"")),
        (
            "an error with unknown fields",
            odd("429 Too Many", "application/json", b"{\"error\":{\"new\":[1]},\"x\":null}"),
        ),
        ("an error of bytes", odd("500 Oops", "application/octet-stream", garbage)),
        ("half an error", odd("529 Overloaded", "application/json", b"{\"type\":\"error\",\"err")),
        ("garbage for JSON", odd("200 OK", "application/json", garbage)),
        ("garbage for a stream", odd("200 OK", "text/event-stream", garbage)),
        ("a stream of nothing", odd("200 OK", "text/event-stream", b"")),
        ("text in place of JSON", odd("200 OK", "text/plain", b"hello")),
    ] {
        cases.push((name, acts, expected));
    }
    let half = b"event: message_start\ndata: {\"type\":\"message_st".as_slice();
    let dies = vec![stream_head(), chunk(half), Act::Wait(Duration::from_millis(20)), Act::Close];
    cases.push((
        "dies in the middle of a stream",
        dies,
        Expected::Verbatim(200, half.to_vec(), false),
    ));
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"id\"";
    let cut = vec![Act::Send(head.to_vec()), Act::Wait(Duration::from_millis(20)), Act::Close];
    cases.push((
        "dies in the middle of a body",
        cut,
        Expected::Verbatim(200, b"{\"id\"".to_vec(), false),
    ));
    cases.push(("closes before the headers", vec![Act::Close], Expected::Nothing));
    let header = Act::Send(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec());
    cases.push(("dies in the middle of the headers", vec![header, Act::Close], Expected::Nothing));
    let hello = Act::Send(b"hello, this is no web server\r\n\r\n".to_vec());
    cases.push(("speaks no HTTP", vec![hello, Act::Close], Expected::Nothing));
    cases
}

#[tokio::test]
async fn the_agent_gets_exactly_what_the_upstream_said() {
    for (name, acts, expected) in cases() {
        let stage = Stage::new(move |_| acts.clone()).await;
        for dialect in DIALECTS {
            let body = dialect.request("m", &dialect.history(1));
            let got = stage.post(dialect.path(), &[], &body).await;
            match &expected {
                Expected::Verbatim(status, said, is_whole) => {
                    assert_eq!((got.status, &got.body), (*status, said), "{name} {dialect:?}");
                    assert_eq!(got.is_whole, *is_whole, "{name} {dialect:?}");
                }
                Expected::Nothing => {
                    assert_eq!(got.status, 502, "{name} {dialect:?}");
                    let said = got.json()["error"]["message"].to_string();
                    assert!(said.contains("ReasonBlocks gateway: the upstream"), "{name}: {said}");
                }
            }
            let seen = stage.upstream.seen();
            assert_eq!(seen.last().unwrap().text(), body, "{name}: it was sent as it came");
        }
        assert_eq!(stage.failed_open(), 0, "{name}: nothing of ours failed");
    }
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_said_in_the_providers_shape() {
    let mut raw = super::patient();
    raw.gateway.upstreams = vec![rb_gateway::RawUpstream {
        name: "gone".to_owned(),
        dialect: String::new(),
        base_url: "http://127.0.0.1:1".to_owned(),
    }];
    let stage = Stage::with(raw, obliging).await;
    let body = Dialect::Anthropic.request("m", &Dialect::Anthropic.history(0));
    let got = stage.post("/up/gone/v1/messages", &[], &body).await;
    assert_eq!((got.status, got.json()["type"].as_str()), (502, Some("error")), "{}", got.text());
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_call_upstream() {
    let before_the_headers = vec![Act::Hang];
    let in_the_stream = vec![stream_head(), chunk(b"data: {}\n\n"), Act::Hang];
    for acts in [before_the_headers, in_the_stream] {
        for path in [Dialect::Anthropic.path(), "/anthropic/v1/messages/count_tokens"] {
            let acts = acts.clone();
            let stage = Stage::new(move |_| acts.clone()).await;
            let body = Dialect::Anthropic.request("m", &Dialect::Anthropic.history(1));
            let connection = client::send(stage.address, path, &[], body.as_bytes()).await;
            until("the upstream sees the call", || stage.upstream.seen().len() == 1).await;
            assert_eq!(stage.upstream.left(), 0);
            drop(connection);
            until("the upstream is left", || stage.upstream.left() == 1).await;
        }
    }
}

#[tokio::test]
async fn a_call_that_failed_is_made_again_and_is_one_step() {
    let mut calls = 0;
    let stage = Stage::new(move |seen| {
        calls += 1;
        if calls == 2 { answer("500 Oops", "text/plain", b"oops") } else { obliging(seen) }
    })
    .await;
    let named = [("x-reasonblocks-run-id", "again")];
    for dialect in [Dialect::Chat] {
        for turns in [0, 1, 1, 1, 2] {
            stage
                .post(dialect.path(), &named, &dialect.request("m", &dialect.history(turns)))
                .await;
            stage.app.gateway.flush().await;
        }
    }
    let steps = stage.steps("again").await;
    let told: Vec<_> =
        steps.iter().map(|step| (step.action.as_deref(), step.tokens.total)).collect();
    let search = Some("search");
    assert_eq!(
        told,
        [(None, 1_100), (search, 2_200), (search, 1_100)],
        "nothing is lost or counted twice"
    );
}
