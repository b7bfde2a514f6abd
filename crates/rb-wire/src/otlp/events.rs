//! Log records to send: each is an event with a name.

use prost::Message as _;
use serde_json::json;

use super::Encoding;
use super::proto::{
    Any, AnyValue, ArrayValue, ExportLogsServiceRequest, KeyValue, LogRecord, Resource,
    ResourceLogs, Scope, ScopeLogs,
};
use super::to_json;

/// Severity number of `WARN`.
const WARN: i32 = 13;
const NANOS_PER_MS: u64 = 1_000_000;

/// Attribute value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// Count.
    Int(i64),
    /// Score.
    Double(f64),
    /// List of counts.
    Ints(Vec<i64>),
}

/// Event to send as a log record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Event {
    /// Event name.
    pub name: &'static str,
    /// Time in milliseconds since 1970.
    pub at_ms: u64,
    /// One-sentence description for users.
    pub body: String,
    /// Attributes of the log record.
    pub attributes: Vec<(&'static str, Value)>,
}

/// Encodes an export of events; `source` contains the resource attributes.
pub fn request(encoding: Encoding, source: &[(String, String)], events: &[Event]) -> Vec<u8> {
    let pair = |(key, value): &(String, String)| KeyValue {
        key: key.clone(),
        value: Some(any(&Value::Text(value.clone()))),
    };
    let resource = Resource { attributes: source.iter().map(pair).collect() };
    let scope =
        Scope { name: "reasonblocks".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let log_records: Vec<LogRecord> = events.iter().map(record).collect();
    match encoding {
        Encoding::Protobuf => {
            let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records }];
            let resource_logs = vec![ResourceLogs { resource: Some(resource), scope_logs }];
            ExportLogsServiceRequest { resource_logs }.encode_to_vec()
        }
        Encoding::Json => {
            let records: Vec<_> = log_records.iter().map(to_json::log_record).collect();
            let scope = json!({ "name": scope.name, "version": scope.version });
            let resource = json!({ "attributes": to_json::attributes(&resource.attributes) });
            let scope_logs = json!([{ "scope": scope, "logRecords": records }]);
            json!({ "resourceLogs": [{ "resource": resource, "scopeLogs": scope_logs }] })
                .to_string()
                .into_bytes()
        }
    }
}

fn record(event: &Event) -> LogRecord {
    let at = event.at_ms.saturating_mul(NANOS_PER_MS);
    let pair =
        |(key, value): &(&str, Value)| KeyValue { key: (*key).to_owned(), value: Some(any(value)) };
    LogRecord {
        time_unix_nano: at,
        observed_time_unix_nano: at,
        severity_number: WARN,
        severity_text: "WARN".to_owned(),
        body: Some(any(&Value::Text(event.body.clone()))),
        attributes: event.attributes.iter().map(pair).collect(),
        event_name: event.name.to_owned(),
    }
}

fn any(value: &Value) -> AnyValue {
    let int = |value: &i64| AnyValue { value: Some(Any::Int(*value)) };
    let value = match value {
        Value::Text(text) => Any::Text(text.clone()),
        Value::Int(value) => Any::Int(*value),
        Value::Double(value) => Any::Double(*value),
        Value::Ints(all) => Any::List(ArrayValue { values: all.iter().map(int).collect() }),
    };
    AnyValue { value: Some(value) }
}
