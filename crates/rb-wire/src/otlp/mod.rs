//! OTLP over HTTP, in protobuf and JSON: received spans and sent events.
//!
//! Received spans are converted to OTLP JSON, one text per span; the `otlp` importer converts them to runs. Sent
//! events are log records with an event name.

/// Log records to send.
mod events;
/// Required messages of the protocol.
mod proto;
/// Conversion from protobuf to JSON.
mod to_json;

use std::borrow::Cow;

use prost::Message as _;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

pub use events::{Event, Value, request as events_request};

use self::proto::{ExportTraceServiceRequest, ExportTraceServiceResponse, PartialSuccess, Status};

/// Encoding of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// As protocol buffers.
    #[default]
    Protobuf,
    /// As the JSON that the protocol defines.
    Json,
}

impl Encoding {
    /// Returns the encoding of a content type.
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next().unwrap_or_default().trim();
        [Self::Protobuf, Self::Json]
            .into_iter()
            .find(|encoding| name.eq_ignore_ascii_case(encoding.content_type()))
    }

    /// Returns the content type of this encoding.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// Received span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanText {
    /// Trace id in lower-case hexadecimal digits.
    pub trace_id: String,
    /// Span id in lower-case hexadecimal digits.
    pub span_id: String,
    /// Span as OTLP JSON.
    pub json: String,
}

/// Spans of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SpansIn {
    /// In the order of the request.
    pub spans: Vec<SpanText>,
    /// Number of spans that were skipped because of a missing or invalid trace id or span id.
    pub nameless: usize,
}

/// Error for a request that cannot be parsed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the body is no export of traces in {form}: {cause}")]
pub struct Unreadable {
    form: &'static str,
    cause: String,
}

/// Parses a trace export.
pub fn spans(body: &[u8], encoding: Encoding) -> Result<SpansIn, Unreadable> {
    match encoding {
        Encoding::Protobuf => spans_of_protobuf(body),
        Encoding::Json => spans_of_json(body),
    }
}

/// Returns the spans of one trace as a document for the `otlp` importer.
pub fn document<'a>(spans: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from(r#"{"resourceSpans":[{"scopeSpans":[{"spans":["#);
    for (at, span) in spans.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(span);
    }
    text.push_str("]}]}]}");
    text
}

/// Returns the response to an export, with the number of rejected spans and the reason.
pub fn reply(encoding: Encoding, rejected: usize, reason: &str) -> Vec<u8> {
    let rejected_spans = i64::try_from(rejected).unwrap_or(i64::MAX);
    let is_whole = rejected == 0 && reason.is_empty();
    match encoding {
        Encoding::Protobuf => {
            let partial_success = (!is_whole)
                .then(|| PartialSuccess { rejected_spans, error_message: reason.to_owned() });
            ExportTraceServiceResponse { partial_success }.encode_to_vec()
        }
        Encoding::Json if is_whole => b"{}".to_vec(),
        Encoding::Json => {
            // OTLP JSON encodes 64-bit numbers as strings.
            let said =
                json!({ "rejectedSpans": rejected_spans.to_string(), "errorMessage": reason });
            json!({ "partialSuccess": said }).to_string().into_bytes()
        }
    }
}

/// Returns the response to a rejected request.
pub fn refusal(encoding: Encoding, message: &str) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => Status { message: message.to_owned() }.encode_to_vec(),
        // The API uses `detail` in all other error responses.
        Encoding::Json => json!({ "message": message, "detail": message }).to_string().into_bytes(),
    }
}

fn spans_of_protobuf(body: &[u8]) -> Result<SpansIn, Unreadable> {
    let request = ExportTraceServiceRequest::decode(body)
        .map_err(|error| Unreadable { form: "protobuf", cause: error.to_string() })?;
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    let mut all = SpansIn::default();
    for span in scopes.flat_map(|scope| scope.spans) {
        all.add(&hex::encode(&span.trace_id), &hex::encode(&span.id), || {
            to_json::span(&span).to_string()
        });
    }
    Ok(all)
}

/// Required fields of the JSON encoding. Spans are kept as raw text. Some clients write snake case.
#[derive(Deserialize)]
struct JsonRequest<'a> {
    #[serde(borrow, default, rename = "resourceSpans", alias = "resource_spans")]
    resource_spans: Vec<JsonResource<'a>>,
}

#[derive(Deserialize)]
struct JsonResource<'a> {
    #[serde(borrow, default, rename = "scopeSpans", alias = "scope_spans")]
    scope_spans: Vec<JsonScope<'a>>,
}

#[derive(Deserialize)]
struct JsonScope<'a> {
    #[serde(borrow, default)]
    spans: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct JsonIds<'a> {
    #[serde(borrow, default, rename = "traceId", alias = "trace_id")]
    trace: Cow<'a, str>,
    #[serde(borrow, default, rename = "spanId", alias = "span_id")]
    span: Cow<'a, str>,
}

fn spans_of_json(body: &[u8]) -> Result<SpansIn, Unreadable> {
    let request: JsonRequest<'_> = serde_json::from_slice(body)
        .map_err(|error| Unreadable { form: "JSON", cause: error.to_string() })?;
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    let mut all = SpansIn::default();
    for span in scopes.flat_map(|scope| scope.spans) {
        match serde_json::from_str::<JsonIds<'_>>(span.get()) {
            Ok(ids) => all.add(&ids.trace, &ids.span, || span.get().to_owned()),
            Err(_) => all.nameless += 1,
        }
    }
    Ok(all)
}

impl SpansIn {
    fn add(&mut self, trace_id: &str, span_id: &str, json: impl FnOnce() -> String) {
        if is_id(trace_id, 32) && is_id(span_id, 16) {
            self.spans.push(SpanText {
                trace_id: trace_id.to_ascii_lowercase(),
                span_id: span_id.to_ascii_lowercase(),
                json: json(),
            });
        } else {
            self.nameless += 1;
        }
    }
}

/// Returns `true` for a valid id; the protocol defines an all-zero id as invalid.
fn is_id(id: &str, digits: usize) -> bool {
    id.len() == digits
        && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        && id.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests;
