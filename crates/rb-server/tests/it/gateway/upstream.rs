//! Scripted upstream, with control over single bytes and broken connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Received request.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Seen {
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Action of the upstream.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// Waits until the peer disconnects.
    Hang,
    Close,
}

type Script = Box<dyn FnMut(&Seen) -> Vec<Act> + Send>;

/// Listener with its script.
pub(super) struct Upstream {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    script: Mutex<Script>,
    seen: Mutex<Vec<Seen>>,
    /// Number of connections that the peer closed during `Hang`.
    left: Mutex<usize>,
}

impl Upstream {
    pub(super) async fn start(script: impl FnMut(&Seen) -> Vec<Act> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script: Script = Box::new(script);
        let (seen, left) = (Mutex::default(), Mutex::default());
        let state = Arc::new(State { script: Mutex::new(script), seen, left });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(play(stream, Arc::clone(&shared)));
            }
        });
        Self { address, state }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().clone()
    }

    pub(super) fn left(&self) -> usize {
        *self.state.left.lock()
    }
}

async fn play(mut stream: TcpStream, state: Arc<State>) {
    let mut waiting = Vec::new();
    while let Some(seen) = next(&mut stream, &mut waiting).await {
        state.seen.lock().push(seen.clone());
        let acts = (state.script.lock())(&seen);
        for act in acts {
            match act {
                Act::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::Wait(time) => tokio::time::sleep(time).await,
                Act::Hang => {
                    let mut byte = [0];
                    let _ = stream.read(&mut byte).await; // ends when the other side goes
                    *state.left.lock() += 1;
                    return;
                }
                Act::Close => return,
            }
        }
    }
}

/// Reads the next request of a connection with its body.
async fn next(stream: &mut TcpStream, waiting: &mut Vec<u8>) -> Option<Seen> {
    loop {
        if let Some(end) = waiting.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&waiting[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or_default();
            if waiting.len() >= end + 4 + length {
                let body = waiting[end + 4..end + 4 + length].to_vec();
                waiting.drain(..end + 4 + length);
                return Some(Seen { head, body });
            }
        }
        if stream.read_buf(waiting).await.ok()? == 0 {
            return None;
        }
    }
}

/// Returns a complete response with its length.
pub(super) fn answer(status: &str, kind: &str, body: &[u8]) -> Vec<Act> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nrequest-id: req_1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    vec![Act::Send(head.into_bytes()), Act::Send(body.to_vec())]
}

/// Returns the headers of an event stream.
pub(super) fn stream_head() -> Act {
    Act::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// Returns one chunk of a stream.
pub(super) fn chunk(bytes: &[u8]) -> Act {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    Act::Send(framed)
}

/// Returns the end of a stream.
pub(super) fn stream_end() -> Act {
    Act::Send(b"0\r\n\r\n".to_vec())
}
