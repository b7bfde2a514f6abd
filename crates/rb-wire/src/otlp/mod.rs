//! OpenTelemetry's protocol over HTTP: spans in, events out, in protobuf or in JSON.
//!
//! Spans that come in are brought into one form, the protocol's JSON, a text for each; the importer `otlp` makes runs of
//! them. Events that go out are log records with a name.

/// Log records out.
mod events;
/// The messages of the protocol, as far as they are needed.
mod proto;
/// From protobuf to the protocol's JSON.
mod to_json;

use std::borrow::Cow;

use prost::Message as _;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

pub use events::{Event, Value, request as events_request};

use self::proto::{ExportTraceServiceRequest, ExportTraceServiceResponse, PartialSuccess, Status};

/// In which form a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// As protocol buffers.
    #[default]
    Protobuf,
    /// As the JSON that the protocol defines.
    Json,
}

impl Encoding {
    /// The form that a content type names.
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next().unwrap_or_default().trim();
        [Self::Protobuf, Self::Json]
            .into_iter()
            .find(|encoding| name.eq_ignore_ascii_case(encoding.content_type()))
    }

    /// The content type of this form.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

/// One span that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanText {
    /// The trace that it belongs to, as lower-case hexadecimal digits.
    pub trace_id: String,
    /// Its own id, in the same way.
    pub span_id: String,
    /// The whole span in the protocol's JSON.
    pub json: String,
}

/// The spans of a request, and how many had no id to know them by.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SpansIn {
    /// In the order they came.
    pub spans: Vec<SpanText>,
    /// Left out, as nothing says where they belong.
    pub nameless: usize,
}

/// A request that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the body is no export of traces in {form}: {cause}")]
pub struct Unreadable {
    form: &'static str,
    cause: String,
}

/// Reads an export of traces.
pub fn spans(body: &[u8], encoding: Encoding) -> Result<SpansIn, Unreadable> {
    match encoding {
        Encoding::Protobuf => spans_of_protobuf(body),
        Encoding::Json => spans_of_json(body),
    }
}

/// The spans of one trace as a document that the importer `otlp` reads.
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

/// The answer to an export; `rejected` spans were not taken, for this reason.
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
            // 64-bit numbers are strings there.
            let said =
                json!({ "rejectedSpans": rejected_spans.to_string(), "errorMessage": reason });
            json!({ "partialSuccess": said }).to_string().into_bytes()
        }
    }
}

/// The answer to a request that is refused.
pub fn refusal(encoding: Encoding, message: &str) -> Vec<u8> {
    match encoding {
        Encoding::Protobuf => Status { message: message.to_owned() }.encode_to_vec(),
        // The second name is that of every other refusal here.
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

/// What is needed of the JSON form; everything else stays as it came. Some write snake case.
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

/// The protocol calls an id of zeros none.
fn is_id(id: &str, digits: usize) -> bool {
    id.len() == digits
        && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        && id.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests;
