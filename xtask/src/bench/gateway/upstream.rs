//! A trivial provider on loopback: it reads a request to its end and answers at once with the same few bytes.
//!
//! The name of the model chooses the answer: [`PLAIN`] is whole or streamed as the request asks, [`PACED`] streams with
//! a pause between its events, and [`HELD`] says a few words and then nothing until the client goes. Chat Completions are
//! only answered as a whole.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Answers as fast as it can.
pub(super) const PLAIN: &str = "claude-sonnet-4-5";
/// Pauses between events.
pub(super) const PACED: &str = "claude-haiku-4-5";
/// Begins a stream and does not end it.
pub(super) const HELD: &str = "claude-opus-4-5";

/// The pause of [`PACED`].
pub(super) const PAUSE: Duration = Duration::from_millis(5);
/// What tells the answer stands within so many bytes of the start or the end of a body.
const LOOKED_AT: usize = 400;
/// A thread needs next to nothing.
const STACK_BYTES: usize = 256 << 10;

/// A whole answer.
const ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"The test passes now."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":30,"cache_read_input_tokens":20000,"cache_creation_input_tokens":900,"output_tokens":12}}"#;

/// The same as a stream, an event each.
const EVENTS: [&str; 10] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":30,\"cache_read_input_tokens\":20000,\"cache_creation_input_tokens\":900,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"The\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" test\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" passes\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" now\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\".\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":12}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
];

/// A whole answer to Chat Completions.
const COMPLETION: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"claude-sonnet-4-5","choices":[{"index":0,"message":{"role":"assistant","content":"The test passes now."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20930,"completion_tokens":12,"total_tokens":20942,"prompt_tokens_details":{"cached_tokens":20000}}}"#;

/// Starts the provider; it ends with the process.
pub(super) fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection that breaks is the other side's business, and the load sees it.
            let serve = move || drop(serve(stream));
            drop(thread::Builder::new().stack_size(STACK_BYTES).spawn(serve));
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    let mut body = Vec::new();
    while let Some(is_completion) = request(&mut stream, &mut body)? {
        match Wanted::of(&body) {
            Wanted::Whole => {
                let answer = if is_completion { COMPLETION } else { ANSWER };
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
                let reply = format!("{head}: {}\r\n\r\n{answer}", answer.len());
                stream.get_mut().write_all(reply.as_bytes())?;
            }
            Wanted::Stream => events(stream.get_mut(), None)?,
            Wanted::Paced => events(stream.get_mut(), Some(PAUSE))?,
            Wanted::Held => {
                begin(stream.get_mut())?;
                chunk(stream.get_mut(), EVENTS[0])?;
                stream.read_to_end(&mut body)?; // until the client goes
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads a request and says whether it is one of Chat Completions; `None` when there is no further one.
fn request(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> Result<Option<bool>> {
    let mut line = String::new();
    let (mut length, mut is_completion) = (0, false);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.split_once(':') else {
            if line == "\r\n" {
                break;
            }
            is_completion |= line.contains("/chat/completions");
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().context("the length of a request")?;
        }
    }
    body.resize(length, 0);
    stream.read_exact(body)?;
    Ok(Some(is_completion))
}

enum Wanted {
    Whole,
    Stream,
    Paced,
    Held,
}

impl Wanted {
    /// Which answer a request asks for: proxies write its members in an order of their own, but not into the middle.
    fn of(body: &[u8]) -> Self {
        let start = &body[..body.len().min(LOOKED_AT)];
        let end = &body[body.len().saturating_sub(LOOKED_AT)..];
        let holds = |word: &str| {
            [start, end].iter().any(|part| part.windows(word.len()).any(|w| w == word.as_bytes()))
        };
        if !holds(r#""stream":true"#) && !holds(r#""stream": true"#) {
            Self::Whole
        } else if holds(PACED) {
            Self::Paced
        } else if holds(HELD) {
            Self::Held
        } else {
            Self::Stream
        }
    }
}

fn begin(stream: &mut TcpStream) -> Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    Ok(stream.write_all(head.as_bytes())?)
}

fn chunk(stream: &mut TcpStream, event: &str) -> Result<()> {
    Ok(stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?)
}

fn events(stream: &mut TcpStream, pause: Option<Duration>) -> Result<()> {
    begin(stream)?;
    for event in EVENTS {
        if let Some(pause) = pause {
            thread::sleep(pause);
        }
        chunk(stream, event)?;
    }
    Ok(stream.write_all(b"0\r\n\r\n")?)
}
