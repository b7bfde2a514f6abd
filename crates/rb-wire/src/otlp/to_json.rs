//! Conversion from protobuf to OTLP JSON, with its names of fields and value types.

use hex::encode as hex;
use serde_json::{Value, json};

use super::proto::{Any, AnyValue, KeyValue, LogRecord, Span, SpanEvent};

pub(super) fn span(span: &Span) -> Value {
    let mut json = json!({
        "traceId": hex(&span.trace_id),
        "spanId": hex(&span.id),
        "name": span.name,
        "startTimeUnixNano": span.start_time_unix_nano.to_string(),
        "endTimeUnixNano": span.end_time_unix_nano.to_string(),
        "attributes": attributes(&span.attributes),
        "events": span.events.iter().map(event).collect::<Vec<_>>(),
    });
    if !span.parent_id.is_empty() {
        json["parentSpanId"] = hex(&span.parent_id).into();
    }
    if let Some(status) = &span.status {
        json["status"] = json!({ "code": status.code, "message": status.message });
    }
    json
}

fn event(event: &SpanEvent) -> Value {
    json!({
        "timeUnixNano": event.time_unix_nano.to_string(),
        "name": event.name,
        "attributes": attributes(&event.attributes),
    })
}

pub(super) fn log_record(record: &LogRecord) -> Value {
    json!({
        "timeUnixNano": record.time_unix_nano.to_string(),
        "observedTimeUnixNano": record.observed_time_unix_nano.to_string(),
        "severityNumber": record.severity_number,
        "severityText": record.severity_text,
        "eventName": record.event_name,
        "body": record.body.as_ref().map(any),
        "attributes": attributes(&record.attributes),
    })
}

pub(super) fn attributes(pairs: &[KeyValue]) -> Vec<Value> {
    let pair = |pair: &KeyValue| {
        let value = pair.value.as_ref().map_or_else(|| json!({}), any);
        json!({ "key": pair.key, "value": value })
    };
    pairs.iter().map(pair).collect()
}

/// Converts a value; the protobuf decoder limits its nesting depth.
fn any(value: &AnyValue) -> Value {
    match &value.value {
        None => json!({}),
        Some(Any::Text(text)) => json!({ "stringValue": text }),
        Some(Any::Bool(value)) => json!({ "boolValue": value }),
        // OTLP JSON encodes 64-bit numbers as strings.
        Some(Any::Int(value)) => json!({ "intValue": value.to_string() }),
        Some(Any::Double(value)) => json!({ "doubleValue": value }),
        Some(Any::List(list)) => {
            json!({ "arrayValue": { "values": list.values.iter().map(any).collect::<Vec<_>>() } })
        }
        Some(Any::Map(map)) => json!({ "kvlistValue": { "values": attributes(&map.values) } }),
        // No supported attribute has a value of bytes; text is at least readable.
        Some(Any::Bytes(bytes)) => json!({ "stringValue": String::from_utf8_lossy(bytes) }),
    }
}
