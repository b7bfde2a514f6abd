//! A question to a running server, from a command of ours.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use rb_wire::sse::Framer;
use serde_json::Value;

use rb_runtime::http_client;

const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// Reading and judging a long body takes its time.
const TAKES_WITHIN: Duration = Duration::from_mins(5);
/// A stream is kept awake more often than this.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// A long run with all its steps.
const BODY_BYTES_MAX: usize = 256 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("the address or the key cannot be written into a request")]
    Unwritable,
    #[error("the server does not answer: {0}")]
    Silent(String),
    #[error("the server says {status}: {said}")]
    Refused { status: u16, said: String },
}

fn request(url: &str, path: &str, key: Option<&str>) -> Result<Request<Full<Bytes>>, AskError> {
    let mut request = Request::get(format!("{}{path}", url.trim_end_matches('/')));
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    request.body(Full::new(Bytes::new())).map_err(|_| AskError::Unwritable)
}

/// Listens to a stream of events until it ends: `each` gets the name and the data of every one.
pub async fn listen(
    url: &str,
    path: &str,
    key: Option<&str>,
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<(), AskError> {
    let silent = |error: &dyn std::error::Error| AskError::Silent(error.to_string());
    let answer = http_client::new().request(request(url, path, key)?);
    let answer =
        tokio::time::timeout(ANSWERS_WITHIN, answer).await.map_err(|late| silent(&late))?;
    let answer = answer.map_err(|error| silent(&error))?;
    if !answer.status().is_success() {
        let said = "it does not let us listen".to_owned();
        return Err(AskError::Refused { status: answer.status().as_u16(), said });
    }
    let mut body = answer.into_body();
    let mut framer = Framer::default();
    // The server says something every few seconds: a longer silence is a connection that is gone.
    while let Some(frame) =
        tokio::time::timeout(SILENCE_MAX, body.frame()).await.map_err(|late| silent(&late))?
    {
        let frame = frame.map_err(|error| silent(&error))?;
        if let Some(bytes) = frame.data_ref() {
            framer.feed(bytes, &mut |event| each(event.name, event.data));
        }
    }
    Ok(())
}

/// Asks the server at `url` for `path`.
pub async fn get(url: &str, path: &str, key: Option<&str>) -> Result<Value, AskError> {
    answer(request(url, path, key)?, ANSWERS_WITHIN).await
}

async fn answer(request: Request<Full<Bytes>>, within: Duration) -> Result<Value, AskError> {
    let answer = async {
        let answer =
            http_client::new().request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), BODY_BYTES_MAX).collect().await;
        Ok::<_, String>((status, body.map_err(|error| error.to_string())?.to_bytes()))
    };
    let answer = tokio::time::timeout(within, answer).await;
    let (status, body) = answer
        .unwrap_or_else(|_| Err(format!("nothing within {} seconds", within.as_secs())))
        .map_err(AskError::Silent)?;
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    if status.is_success() {
        return Ok(said);
    }
    let said = said["detail"].as_str().unwrap_or("nothing else").to_owned();
    Err(AskError::Refused { status: status.as_u16(), said })
}

/// Sends a body, packed with gzip, to `path` of the server at `url`, and reads the answer.
pub async fn post_gzip(
    url: &str,
    path: &str,
    key: Option<&str>,
    packed: Vec<u8>,
) -> Result<Value, AskError> {
    let mut request = Request::post(format!("{}{path}", url.trim_end_matches('/')))
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_ENCODING, "gzip");
    if let Some(key) = key {
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
    }
    let request = request.body(Full::new(Bytes::from(packed)));
    answer(request.map_err(|_| AskError::Unwritable)?, TAKES_WITHIN).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_not_there_is_told() {
        let error = get("http://127.0.0.1:1", "/health", None).await.unwrap_err();
        assert!(matches!(error, AskError::Silent(_)), "{error}");
        let error = get("http://127.0.0.1:1", "/health", Some("a\nb")).await.unwrap_err();
        assert!(matches!(error, AskError::Unwritable), "{error}");
    }
}
