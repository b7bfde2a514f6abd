//! Streams arrive unmodified, wherever they are split; keep-alive events are sent only between events.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::Stage;
use super::dialects::{DIALECTS, Dialect};
use super::upstream::{Act, chunk, stream_end, stream_head};

const SILENCE_MAX: Duration = Duration::from_millis(150);
/// Number of concurrent requests.
const WIDE: usize = 16;

#[tokio::test]
async fn a_stream_cut_at_any_byte_arrives_as_it_was_sent() {
    for dialect in DIALECTS {
        let whole = dialect.events("m").into_bytes();
        let sent = whole.clone();
        // The model name contains the split position; past the end, every byte is a separate chunk.
        let stage = Stage::new(move |seen| {
            let at = seen.json()["model"].as_str().unwrap_or_default().parse().unwrap_or(0);
            let mut acts = vec![stream_head()];
            if at < sent.len() {
                acts.extend(
                    [&sent[..at], &sent[at..]].iter().filter(|p| !p.is_empty()).map(|p| chunk(p)),
                );
            } else {
                acts.extend(sent.iter().map(|byte| chunk(&[*byte])));
            }
            acts.push(stream_end());
            acts
        })
        .await;
        let (stage, whole) = (&stage, &whole);
        stream::iter(0..=whole.len())
            .for_each_concurrent(WIDE, async |at| {
                let run = format!("cut-{at}");
                let body = dialect.request(&at.to_string(), &dialect.history(1));
                let got =
                    stage.post(dialect.path(), &[("x-reasonblocks-run-id", &run)], &body).await;
                assert!(got.is_whole && got.status == 200, "{dialect:?} at {at}");
                assert!(got.body == *whole, "{dialect:?} cut at {at}: {}", got.text());
            })
            .await;
        let read = stage.steps(&format!("cut-{}", whole.len())).await;
        assert_eq!(read.last().unwrap().tokens.total, 1_100, "{dialect:?}: it was read along");
        assert_eq!(stage.failed_open(), 0);
    }
}

/// Sends the first `at` bytes, pauses, and sends the rest.
async fn silent_after(dialect: Dialect, at: usize) -> (Vec<u8>, Vec<u8>) {
    let whole = dialect.events("m").into_bytes();
    let sent = whole.clone();
    let mut raw = super::patient();
    raw.gateway.ping_interval = SILENCE_MAX;
    let stage = Stage::with(raw, move |_| {
        let mut acts = vec![stream_head()];
        if at > 0 {
            acts.push(chunk(&sent[..at]));
        }
        acts.extend([Act::Wait(SILENCE_MAX * 5), chunk(&sent[at..]), stream_end()]);
        acts
    })
    .await;
    let got = stage.post(dialect.path(), &[], &dialect.request("m", &dialect.history(1))).await;
    assert!(got.is_whole, "{}", got.text());
    (whole, got.body)
}

#[tokio::test]
async fn a_silent_stream_is_filled_between_events_and_nowhere_else() {
    let events = Dialect::Anthropic.events("m");
    let between = events.find("\n\n").unwrap() + 2;
    let cases = [
        (Dialect::Anthropic, 0, true),
        (Dialect::Anthropic, between, true),
        (Dialect::Anthropic, between - 1, false),
        (Dialect::Anthropic, between + 9, false),
        (Dialect::Chat, 0, false),
        (Dialect::Responses, 0, false),
        (Dialect::Gemini, 0, false),
    ];
    for (dialect, at, is_filled) in cases {
        let (whole, got) = silent_after(dialect, at).await;
        let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n".to_owned();
        let text = String::from_utf8_lossy(&got).into_owned();
        let pings = text.matches(&ping).count();
        assert_eq!(pings > 0, is_filled, "{dialect:?} silent after {at}: {text}");
        assert_eq!(text.replace(&ping, "").as_bytes(), whole, "{dialect:?} silent after {at}");
        if is_filled {
            assert!(text[at..].starts_with(&ping), "it stands where the silence was: {text}");
        }
    }
}
