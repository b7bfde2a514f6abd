//! A provider stub on loopback: answers every request at once with the same short response, whole or streamed.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use tokio::net::TcpListener;

const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"The test passes now."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":30,"cache_read_input_tokens":20000,"cache_creation_input_tokens":900,"output_tokens":12}}"#;

const COMPLETION: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"claude-sonnet-4-5","choices":[{"index":0,"message":{"role":"assistant","content":"The test passes now."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20930,"completion_tokens":12,"total_tokens":20942,"prompt_tokens_details":{"cached_tokens":20000}}}"#;

const EVENTS: [&str; 7] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":30,\"cache_read_input_tokens\":20000,\"cache_creation_input_tokens\":900,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"The test\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" passes now.\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":12}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
];

/// Starts the stub on a free port. It runs until the process ends.
pub(crate) async fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/chat/completions", post(completions))
        .layer(DefaultBodyLimit::disable());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

async fn messages(body: Bytes) -> impl IntoResponse {
    // Proxies append fields to the body, but leave its beginning as it is.
    let is_stream = body[..body.len().min(200)].windows(13).any(|part| part == br#""stream":true"#);
    if is_stream {
        let events = tokio_stream::iter(EVENTS.map(Ok::<_, Infallible>));
        ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(events))
    } else {
        ([(CONTENT_TYPE, "application/json")], Body::from(MESSAGE))
    }
}

/// Reads the body to its end: an early response makes hyper close the connection.
async fn completions(_body: Bytes) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], COMPLETION)
}
