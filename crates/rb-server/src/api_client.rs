//! HTTP client of a running server, for the command line.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use rb_wire::sse::Framer;
use serde_json::Value;

use rb_runtime::http_client;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of an import, whose body is assessed before the response.
const IMPORT_TIMEOUT: Duration = Duration::from_mins(5);
/// Idle timeout of an event stream, above the server's keep-alive interval.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum size of a response.
const MAX_BODY_BYTES: usize = 256 << 20;

/// Reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the address or the key contains characters that are not allowed in a request")]
    InvalidRequest,
    #[error("no response from the server: {0}")]
    Unreachable(String),
    #[error("the server responded with {status}: {detail}")]
    Status { status: u16, detail: String },
}

fn request(url: &str, path: &str, key: Option<&str>) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = Request::get(format!("{}{path}", url.trim_end_matches('/')));
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    request.body(Full::new(Bytes::new())).map_err(|_| ClientError::InvalidRequest)
}

/// Reads an event stream until it ends and calls `each` with the name and the data of every event.
pub async fn listen(
    url: &str,
    path: &str,
    key: Option<&str>,
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<(), ClientError> {
    let unreachable = |error: &dyn std::error::Error| ClientError::Unreachable(error.to_string());
    let answer = http_client::new().request(request(url, path, key)?);
    let answer =
        tokio::time::timeout(REQUEST_TIMEOUT, answer).await.map_err(|late| unreachable(&late))?;
    let answer = answer.map_err(|error| unreachable(&error))?;
    if !answer.status().is_success() {
        let detail = "the event stream is not available".to_owned();
        return Err(ClientError::Status { status: answer.status().as_u16(), detail });
    }
    let mut body = answer.into_body();
    let mut framer = Framer::default();
    // The server sends keep-alive comments every few seconds.
    while let Some(frame) =
        tokio::time::timeout(IDLE_TIMEOUT, body.frame()).await.map_err(|late| unreachable(&late))?
    {
        let frame = frame.map_err(|error| unreachable(&error))?;
        if let Some(bytes) = frame.data_ref() {
            framer.feed(bytes, &mut |event| each(event.name, event.data));
        }
    }
    Ok(())
}

/// Requests `path` of the server at `url`.
pub async fn get(url: &str, path: &str, key: Option<&str>) -> Result<Value, ClientError> {
    answer(request(url, path, key)?, REQUEST_TIMEOUT).await
}

async fn answer(request: Request<Full<Bytes>>, within: Duration) -> Result<Value, ClientError> {
    let answer = async {
        let answer =
            http_client::new().request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_BODY_BYTES).collect().await;
        Ok::<_, String>((status, body.map_err(|error| error.to_string())?.to_bytes()))
    };
    let answer = tokio::time::timeout(within, answer).await;
    let (status, body) = answer
        .unwrap_or_else(|_| Err(format!("timed out after {} seconds", within.as_secs())))
        .map_err(ClientError::Unreachable)?;
    let reply: Value = serde_json::from_slice(&body).unwrap_or_default();
    if status.is_success() {
        return Ok(reply);
    }
    let detail = reply["detail"].as_str().unwrap_or("no further details").to_owned();
    Err(ClientError::Status { status: status.as_u16(), detail })
}

/// Posts a gzip body to `path` of the server at `url`.
pub async fn post_gzip(
    url: &str,
    path: &str,
    key: Option<&str>,
    packed: Vec<u8>,
) -> Result<Value, ClientError> {
    let mut request = Request::post(format!("{}{path}", url.trim_end_matches('/')))
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_ENCODING, "gzip");
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let request = request.body(Full::new(Bytes::from(packed)));
    answer(request.map_err(|_| ClientError::InvalidRequest)?, IMPORT_TIMEOUT).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unreachable_server_and_an_invalid_key_are_errors() {
        let error = get("http://127.0.0.1:1", "/health", None).await.unwrap_err();
        assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
        let error = get("http://127.0.0.1:1", "/health", Some("a\nb")).await.unwrap_err();
        assert!(matches!(error, ClientError::InvalidRequest), "{error}");
    }
}
