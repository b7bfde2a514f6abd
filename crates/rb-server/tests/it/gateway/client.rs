//! HTTP client that keeps every byte of a response and detects truncation.

use std::fmt::Write as _;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Response of the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Got {
    pub(super) status: u16,
    /// Header names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The body has the declared length or a final chunk.
    pub(super) is_whole: bool,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Opens a connection and sends a request; dropping the connection disconnects the client.
pub(super) async fn send(
    to: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> TcpStream {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n"); // writing to a string cannot fail
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream
}

/// Sends one request on a new connection.
pub(super) async fn post(to: SocketAddr, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
    let mut stream = send(to, path, headers, body).await;
    let mut raw = Vec::new();
    let _ = stream.read_to_end(&mut raw).await; // a connection that breaks has said what it had to
    read(&raw)
}

fn read(raw: &[u8]) -> Got {
    let Some(end) = raw.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Got::default();
    };
    let head = String::from_utf8_lossy(&raw[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let mut got = Got { status: status.parse().unwrap_or_default(), headers, ..Got::default() };
    let rest = &raw[end + 4..];
    if got.header("transfer-encoding") == Some("chunked") {
        (got.body, got.is_whole) = dechunked(rest);
    } else {
        got.body = rest.to_vec();
        let length = got.header("content-length").and_then(|length| length.parse().ok());
        got.is_whole = length.is_none_or(|length: usize| length == rest.len());
    }
    got
}

fn dechunked(mut raw: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(line) = raw.windows(2).position(|two| two == b"\r\n") else {
            return (body, false);
        };
        let size = usize::from_str_radix(&String::from_utf8_lossy(&raw[..line]), 16);
        let Ok(size) = size else { return (body, false) };
        raw = &raw[line + 2..];
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = raw.get(..size) else {
            body.extend_from_slice(raw);
            return (body, false);
        };
        body.extend_from_slice(chunk);
        raw = raw.get(size + 2..).unwrap_or_default();
    }
}
