//! Sending a request on: byte for byte but for what was put in, and once more as it came where the provider refuses
//! what we changed.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming as AnswerBody;
use rb_wire::dialects::{self, Dialect};
use rb_wire::providers::Provider;
use rb_wire::response_reader::ResponseReader;

use crate::Gateway;
use crate::exchange::{Incoming, Watched};
use crate::headers;
use crate::inspect::{Verdict, watch};
use crate::response_tap::{Passing, Reader};
use crate::upstream::Upstream;
use rb_http::body;
use rb_http::error::ApiError;
use rb_runtime::auth::Caller;
use rb_runtime::http_client::{self, HttpClient};

/// A request as it goes up: bytes that were read, or a stream that nobody looked at.
type Up = Either<Full<Bytes>, axum::body::Body>;

/// The client for all upstreams.
pub(crate) type Upward = HttpClient<Up>;

pub(crate) fn upward() -> Upward {
    http_client::new()
}

type Reply = Response<axum::body::Body>;

/// Handles a request to a provider of the table.
pub(crate) async fn provider(
    gateway: Arc<Gateway>,
    provider: &Provider,
    request: Request,
) -> Reply {
    route(&gateway, provider.id, provider.path_prefix, request).await
}

pub(crate) async fn further(
    State(gateway): State<Arc<Gateway>>,
    Path((name, _)): Path<(String, String)>,
    request: Request,
) -> Reply {
    let before = format!("/up/{name}");
    route(&gateway, &name, &before, request).await
}

async fn route(gateway: &Arc<Gateway>, name: &str, before: &str, request: Request) -> Reply {
    let Some(upstream) = gateway.upstreams.find(name) else {
        return ApiError::NotFound("there is no such upstream; name it in the configuration")
            .into_response();
    };
    let path = request.uri().path();
    let path = upstream.path_of(path.strip_prefix(before).unwrap_or(path)).into_owned();
    let dialect = upstream.dialect_of(&path).filter(|_| request.method() == hyper::Method::POST);
    let caller = match caller(gateway, request.headers()).await {
        Ok(caller) => caller,
        Err((status, why)) => return refusal(dialect, status, &why),
    };
    let Some(uri) = upstream.uri(&path, request.uri().query()) else {
        return ApiError::BadRequest("this path cannot be sent on".to_owned()).into_response();
    };
    let (mut parts, body) = request.into_parts();
    parts.uri = uri;
    match dialect {
        None => through(gateway, parts, body).await,
        Some(dialect) => conversation(gateway, upstream, dialect, &caller, parts, body).await,
    }
}

/// Who is calling us. Their `Authorization` is the provider's, so our key stands in a header of its own.
async fn caller(gateway: &Arc<Gateway>, given: &HeaderMap) -> Result<Caller, (StatusCode, String)> {
    let key = given.get(headers::KEY).and_then(|value| value.to_str().ok());
    if gateway.config.is_keyless && key.is_none() {
        return Ok(Caller::local());
    }
    gateway.runtime.keys.caller(key, &*gateway.runtime.store).await.map_err(|error| {
        if matches!(ApiError::from(error), ApiError::Unauthorized(_)) {
            let why = format!("a key of this gateway is needed: send it as `{}`", headers::KEY);
            return (StatusCode::UNAUTHORIZED, why);
        }
        (StatusCode::SERVICE_UNAVAILABLE, "keys cannot be checked at the moment".to_owned())
    })
}

/// A request that is no part of a conversation: passes unread, both ways.
async fn through(gateway: &Arc<Gateway>, parts: Parts, body: axum::body::Body) -> Reply {
    let mut up = hyper::Request::new(Either::Right(body));
    *up.method_mut() = parts.method;
    *up.uri_mut() = parts.uri;
    *up.headers_mut() = headers::to_upstream(&parts.headers);
    if let Some(length) = parts.headers.get(CONTENT_LENGTH) {
        up.headers_mut().insert(CONTENT_LENGTH, length.clone()); // it passes as it is, and not in chunks
    }
    match gateway.upward.request(up).await {
        Ok(answer) => down(answer, Passing::untouched),
        Err(error) => unreachable_upstream(None, &error),
    }
}

async fn conversation(
    gateway: &Arc<Gateway>,
    upstream: &Upstream,
    dialect: &'static dyn Dialect,
    caller: &Caller,
    parts: Parts,
    body: axum::body::Body,
) -> Reply {
    let body = match body::read(body, gateway.config.watched_bytes_max).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let mode = gateway.mode(&parts.headers, &caller.name);
    let incoming = Incoming {
        caller,
        upstream: &upstream.name,
        dialect,
        target: parts.uri.path_and_query().map_or("/", PathAndQuery::as_str),
        headers: &parts.headers,
        body: &body,
        mode,
    };
    let mut watched = match watch(gateway, incoming).await {
        Verdict::Unwatched => None,
        Verdict::Refused { status, why } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
            let mut reply = refusal(Some(dialect), status, &why);
            // The SDKs would try a 429 again, and a budget does not refill that soon.
            let name = HeaderName::from_static("x-should-retry");
            reply.headers_mut().insert(name, HeaderValue::from_static("false"));
            return reply;
        }
        Verdict::Watched(watched) => Some(watched),
    };
    let mut answer = match send(gateway, &parts, &body, &mut watched).await {
        Ok(answer) => answer,
        Err(error) => return unreachable_upstream(Some(dialect), &error),
    };
    let Some(mut watched) = watched else { return down(answer, Passing::untouched) };
    if answer.status().is_success() {
        watched.accepted(gateway).await;
    }
    let reader = reader_of(&answer, dialect);
    let keep_alive = dialect.keep_alive().filter(|_| is_stream(answer.headers()));
    if keep_alive.is_some() {
        answer.headers_mut().remove(CONTENT_LENGTH); // a keep-alive event would make it wrong
    }
    let gateway = Arc::clone(gateway);
    let keep_alive = keep_alive.map(|event| (event, gateway.config.silence_max));
    down(answer, move |body| {
        let done = move |answer, is_whole| {
            let writing = Arc::clone(&gateway.writing).try_read_owned();
            tokio::spawn(async move {
                watched.answered(gateway, answer, is_whole).await;
                drop(writing);
            });
        };
        Passing::read(body, reader, Box::new(done), keep_alive)
    })
}

/// Sends the request as it is to go out; if we changed it and the provider will not have it, as it came.
async fn send(
    gateway: &Arc<Gateway>,
    parts: &Parts,
    body: &Bytes,
    watched: &mut Option<Box<Watched>>,
) -> Result<Response<AnswerBody>, hyper_util::client::legacy::Error> {
    let mut passed = headers::to_upstream(&parts.headers);
    if watched.is_some() {
        headers::keep_readable_encodings(&mut passed);
    }
    let Some(changed) = watched.as_ref().and_then(|watched| watched.body.clone()) else {
        return gateway.upward.request(up(parts, passed, body.clone())).await;
    };
    let mut first = up(parts, passed.clone(), changed);
    if let Some(uri) = watched.as_ref().and_then(|watched| watched.uri(&parts.uri)) {
        *first.uri_mut() = uri;
    }
    let answer = gateway.upward.request(first).await?;
    if !may_be_ours(answer.status()) {
        return Ok(answer);
    }
    let plain = gateway.upward.request(up(parts, passed, body.clone())).await?;
    if !may_be_ours(plain.status())
        && let Some(watched) = watched
    {
        watched.refused(gateway).await;
    }
    Ok(plain)
}

/// The request may have been refused for what we changed in it: a role or a block that is not known there, a model that
/// is not there or not for this key, a length.
fn may_be_ours(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 403 | 404 | 413 | 422)
}

fn up(parts: &Parts, passed: HeaderMap, body: Bytes) -> hyper::Request<Up> {
    let mut request = hyper::Request::new(Either::Left(Full::new(body)));
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = parts.uri.clone();
    *request.headers_mut() = passed;
    request
}

/// An answer with the body as it passes.
fn down(answer: Response<AnswerBody>, pass: impl FnOnce(AnswerBody) -> Passing) -> Reply {
    let (parts, body) = answer.into_parts();
    let mut reply = Response::new(axum::body::Body::new(pass(body)));
    *reply.status_mut() = parts.status;
    *reply.headers_mut() = headers::to_client(&parts.headers);
    reply
}

fn reader_of(answer: &Response<AnswerBody>, dialect: &'static dyn Dialect) -> Reader {
    let reader = if is_stream(answer.headers()) {
        ResponseReader::stream(dialect)
    } else {
        ResponseReader::body(dialect)
    };
    let encoding = answer.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    Reader::new(encoding, reader)
}

fn is_stream(given: &HeaderMap) -> bool {
    let kind = given.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/event-stream")
}

/// An error of ours, in the provider's shape where there is one.
fn refusal(dialect: Option<&'static dyn Dialect>, status: StatusCode, why: &str) -> Reply {
    let why = format!("ReasonBlocks gateway: {why}");
    let body = match dialect {
        Some(dialect) => dialect.error_body(status.as_u16(), &why),
        None => serde_json::json!({ "detail": why }).to_string(),
    };
    let mut reply = Response::new(axum::body::Body::from(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Response to a request above the rate limit, in the format of its provider.
pub fn rate_limited(request: &Request) -> Reply {
    let dialect = dialects::by_path(request.uri().path());
    let why = "too many requests with this key; wait a second and try again";
    let mut reply = refusal(dialect, StatusCode::TOO_MANY_REQUESTS, why);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

fn unreachable_upstream(
    dialect: Option<&'static dyn Dialect>,
    error: &hyper_util::client::legacy::Error,
) -> Reply {
    tracing::warn!(%error, "the upstream cannot be reached");
    let why = "the upstream cannot be reached; is its address right, and is there a network?";
    refusal(dialect, StatusCode::BAD_GATEWAY, why)
}
