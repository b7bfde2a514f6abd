//! Proxy handlers: forward a request with its edits, and the original if the provider rejects the edited one.

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
use crate::exchange::{Exchange, Incoming};
use crate::headers;
use crate::inspect::{Verdict, inspect};
use crate::response_tap::{Reader, TappedBody};
use crate::upstream::Upstream;
use rb_http::body;
use rb_http::error::ApiError;
use rb_runtime::auth::Caller;
use rb_runtime::http_client::{self, HttpClient};

/// Body of a forwarded request: buffered or streamed.
type RequestBody = Either<Full<Bytes>, axum::body::Body>;

/// HTTP client of all upstreams.
pub(crate) type UpstreamClient = HttpClient<RequestBody>;

pub(crate) fn upstream_client() -> UpstreamClient {
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

pub(crate) async fn named_upstream(
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
        Err((status, message)) => return refusal(dialect, status, &message),
    };
    let Some(uri) = upstream.uri(&path, request.uri().query()) else {
        return ApiError::BadRequest("this path cannot be sent on".to_owned()).into_response();
    };
    let (mut parts, body) = request.into_parts();
    parts.uri = uri;
    match dialect {
        None => passthrough(gateway, parts, body).await,
        Some(dialect) => conversation(gateway, upstream, dialect, &caller, parts, body).await,
    }
}

/// Authenticates the caller. `Authorization` belongs to the provider, so the gateway has its own header.
async fn caller(gateway: &Arc<Gateway>, given: &HeaderMap) -> Result<Caller, (StatusCode, String)> {
    let key = given.get(headers::KEY).and_then(|value| value.to_str().ok());
    if gateway.config.is_keyless && key.is_none() {
        return Ok(Caller::local());
    }
    gateway.runtime.keys.caller(key, &*gateway.runtime.store).await.map_err(|error| {
        if matches!(ApiError::from(error), ApiError::Unauthorized(_)) {
            let message = format!("a key of this gateway is needed: send it as `{}`", headers::KEY);
            return (StatusCode::UNAUTHORIZED, message);
        }
        (StatusCode::SERVICE_UNAVAILABLE, "keys cannot be checked at the moment".to_owned())
    })
}

/// Forwards a request that is not part of a conversation; neither body is parsed.
async fn passthrough(gateway: &Arc<Gateway>, parts: Parts, body: axum::body::Body) -> Reply {
    let mut forwarded = hyper::Request::new(Either::Right(body));
    *forwarded.method_mut() = parts.method;
    *forwarded.uri_mut() = parts.uri;
    *forwarded.headers_mut() = headers::to_upstream(&parts.headers);
    if let Some(length) = parts.headers.get(CONTENT_LENGTH) {
        forwarded.headers_mut().insert(CONTENT_LENGTH, length.clone()); // not chunked
    }
    match gateway.upstream_client.request(forwarded).await {
        Ok(answer) => into_response(answer, TappedBody::untapped),
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
    let body = match body::read(body, gateway.config.max_request_bytes).await {
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
    let mut exchange = match inspect(gateway, incoming).await {
        Verdict::Passthrough => None,
        Verdict::Rejected { status, message } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
            let mut reply = refusal(Some(dialect), status, &message);
            // A retry would fail as well: the budget is not refilled that soon.
            let name = HeaderName::from_static("x-should-retry");
            reply.headers_mut().insert(name, HeaderValue::from_static("false"));
            return reply;
        }
        Verdict::Inspected(exchange) => Some(exchange),
    };
    let mut answer = match send(gateway, &parts, &body, &mut exchange).await {
        Ok(answer) => answer,
        Err(error) => return unreachable_upstream(Some(dialect), &error),
    };
    let Some(mut exchange) = exchange else { return into_response(answer, TappedBody::untapped) };
    if answer.status().is_success() {
        exchange.accepted(gateway).await;
    }
    let reader = reader_of(&answer, dialect);
    let keep_alive = dialect.keep_alive().filter(|_| is_stream(answer.headers()));
    if keep_alive.is_some() {
        answer.headers_mut().remove(CONTENT_LENGTH); // a keep-alive event would make it wrong
    }
    let gateway = Arc::clone(gateway);
    let keep_alive = keep_alive.map(|event| (event, gateway.config.ping_interval));
    into_response(answer, move |body| {
        let done = move |answer, is_whole| {
            let writing = Arc::clone(&gateway.writing).try_read_owned();
            tokio::spawn(async move {
                exchange.answered(gateway, answer, is_whole).await;
                drop(writing);
            });
        };
        TappedBody::tapped(body, reader, Box::new(done), keep_alive)
    })
}

/// Sends the edited request, and the original if the provider rejects the edited one.
async fn send(
    gateway: &Arc<Gateway>,
    parts: &Parts,
    body: &Bytes,
    exchange: &mut Option<Box<Exchange>>,
) -> Result<Response<AnswerBody>, hyper_util::client::legacy::Error> {
    let mut passed = headers::to_upstream(&parts.headers);
    if exchange.is_some() {
        headers::keep_readable_encodings(&mut passed);
    }
    let Some(changed) = exchange.as_ref().and_then(|exchange| exchange.body.clone()) else {
        return gateway.upstream_client.request(build_request(parts, passed, body.clone())).await;
    };
    let mut first = build_request(parts, passed.clone(), changed);
    if let Some(uri) = exchange.as_ref().and_then(|exchange| exchange.uri(&parts.uri)) {
        *first.uri_mut() = uri;
    }
    let answer = gateway.upstream_client.request(first).await?;
    if !may_reject_our_edit(answer.status()) {
        return Ok(answer);
    }
    let plain = gateway.upstream_client.request(build_request(parts, passed, body.clone())).await?;
    if !may_reject_our_edit(plain.status())
        && let Some(exchange) = exchange
    {
        exchange.refused(gateway).await;
    }
    Ok(plain)
}

/// Returns `true` for a status that an edit may cause: an unknown role or block, a model that does not exist or that the
/// key may not use, a length.
fn may_reject_our_edit(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 403 | 404 | 413 | 422)
}

fn build_request(parts: &Parts, passed: HeaderMap, body: Bytes) -> hyper::Request<RequestBody> {
    let mut request = hyper::Request::new(Either::Left(Full::new(body)));
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = parts.uri.clone();
    *request.headers_mut() = passed;
    request
}

/// Builds the client's response from the provider's.
fn into_response(
    answer: Response<AnswerBody>,
    pass: impl FnOnce(AnswerBody) -> TappedBody,
) -> Reply {
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

/// Builds an error response of the gateway, in the provider's format if the dialect is known.
fn refusal(dialect: Option<&'static dyn Dialect>, status: StatusCode, message: &str) -> Reply {
    let message = format!("ReasonBlocks gateway: {message}");
    let body = match dialect {
        Some(dialect) => dialect.error_body(status.as_u16(), &message),
        None => serde_json::json!({ "detail": message }).to_string(),
    };
    let mut reply = Response::new(axum::body::Body::from(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Response to a request above the rate limit, in the format of its provider.
pub fn rate_limited(request: &Request) -> Reply {
    let dialect = dialects::by_path(request.uri().path());
    let message = "too many requests with this key; wait a second and try again";
    let mut reply = refusal(dialect, StatusCode::TOO_MANY_REQUESTS, message);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

fn unreachable_upstream(
    dialect: Option<&'static dyn Dialect>,
    error: &hyper_util::client::legacy::Error,
) -> Reply {
    tracing::warn!(%error, "the upstream cannot be reached");
    let message = "the upstream cannot be reached; is its address right, and is there a network?";
    refusal(dialect, StatusCode::BAD_GATEWAY, message)
}
