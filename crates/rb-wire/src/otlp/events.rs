//! Log records out: each is an event, by its name.

use prost::Message as _;
use serde_json::json;

use super::Encoding;
use super::proto::{
    Any, AnyValue, ArrayValue, ExportLogsServiceRequest, KeyValue, LogRecord, Resource,
    ResourceLogs, Scope, ScopeLogs,
};
use super::to_json;

/// The number of `WARN` among the protocol's severities.
const WARN: i32 = 13;
const NANOS_PER_MS: u64 = 1_000_000;

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// A count.
    Int(i64),
    /// A score.
    Double(f64),
    /// Several counts.
    Ints(Vec<i64>),
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Event {
    /// What kind of thing.
    pub name: &'static str,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// In a sentence, for people.
    pub body: String,
    /// Everything about it.
    pub attributes: Vec<(&'static str, Value)>,
}

/// An export of events, from a source with these attributes.
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
