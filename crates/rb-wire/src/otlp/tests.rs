//! Exports in both encodings, rejected requests, and sent events.

use super::proto::{
    Any, AnyValue, ArrayValue, ExportLogsServiceRequest, KeyValue, KeyValueList, ResourceSpans,
    ScopeSpans, Span, SpanEvent, SpanStatus,
};
use super::*;
use crate::transcripts::IMPORTERS;

const TRACE: [u8; 16] = [0xab; 16];

fn any(value: Any) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(any(Any::Text(value.to_owned()))) }
}

/// Model call with messages as typed values and as events, and a failed tool call.
fn request() -> ExportTraceServiceRequest {
    let part = KeyValueList { values: vec![text("type", "text"), text("content", "Let me look.")] };
    let parts = ArrayValue { values: vec![AnyValue { value: Some(Any::Map(part)) }] };
    let message = KeyValueList {
        values: vec![
            text("role", "assistant"),
            KeyValue { key: "parts".to_owned(), value: Some(any(Any::List(parts))) },
        ],
    };
    let said = ArrayValue { values: vec![AnyValue { value: Some(Any::Map(message)) }] };
    let model = Span {
        trace_id: TRACE.to_vec(),
        id: vec![1; 8],
        name: "chat m".to_owned(),
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: 1_700_000_001_000_000_000,
        attributes: vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.response.model", "m-1"),
            KeyValue {
                key: "gen_ai.usage.input_tokens".to_owned(),
                value: Some(any(Any::Int(70))),
            },
            KeyValue {
                key: "gen_ai.output.messages".to_owned(),
                value: Some(any(Any::List(said))),
            },
        ],
        events: vec![SpanEvent {
            name: "gen_ai.user.message".to_owned(),
            attributes: vec![text("content", "Mend it.")],
            ..SpanEvent::default()
        }],
        ..Span::default()
    };
    let tool = Span {
        trace_id: TRACE.to_vec(),
        id: vec![2; 8],
        parent_id: vec![1; 8],
        name: "execute_tool bash".to_owned(),
        start_time_unix_nano: 1_700_000_002_000_000_000,
        attributes: vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", "bash"),
            text("gen_ai.tool.call.arguments", "ls"),
        ],
        status: Some(SpanStatus { code: 2, message: "no".to_owned() }),
        ..Span::default()
    };
    let nameless = Span { id: vec![0; 8], trace_id: TRACE.to_vec(), ..Span::default() };
    let scope_spans = vec![ScopeSpans { spans: vec![model, tool, nameless] }];
    ExportTraceServiceRequest { resource_spans: vec![ResourceSpans { scope_spans }] }
}

fn otlp() -> &'static crate::transcripts::Importer {
    IMPORTERS.iter().find(|importer| importer.id == "otlp").unwrap()
}

#[test]
fn both_forms_make_the_same_run() {
    let protobuf = spans(&request().encode_to_vec(), Encoding::Protobuf).unwrap();
    assert_eq!((protobuf.spans.len(), protobuf.nameless), (2, 1));
    assert_eq!(protobuf.spans[0].trace_id, "ab".repeat(16));
    let text = document(protobuf.spans.iter().map(|span| span.json.as_str()));
    let json = spans(text.as_bytes(), Encoding::Json).unwrap();
    assert_eq!(json.spans, protobuf.spans);
    let (runs, complaints) = (otlp().parse)(text.as_bytes());
    assert!(complaints.is_empty(), "{complaints:?}");
    let run = &runs[0];
    assert_eq!(run.run_id.as_deref(), Some("ab".repeat(16).as_str()));
    assert_eq!((run.task.as_deref(), run.model.as_deref()), (Some("Mend it."), Some("m-1")));
    assert_eq!((run.started_ms, run.usage.input_tokens), (Some(1_700_000_000_000), Some(70)));
    let step = run.steps.last().unwrap();
    assert_eq!((step.tool.as_ref(), step.is_error), ("bash", true));
    assert!(run.steps.iter().any(|step| step.thought == "Let me look."), "{run:?}");
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let deep = |levels: usize| {
        let mut value = AnyValue { value: Some(Any::Int(1)) };
        for _ in 0..levels {
            value = AnyValue { value: Some(Any::List(ArrayValue { values: vec![value] })) };
        }
        let mut request = request();
        let attributes = &mut request.resource_spans[0].scope_spans[0].spans[0].attributes;
        attributes.push(KeyValue { key: "deep".to_owned(), value: Some(value) });
        request.encode_to_vec()
    };
    let whole = request().encode_to_vec();
    let cases: [(&[u8], Encoding, bool); 8] = [
        (b"", Encoding::Protobuf, true),
        (b"{}", Encoding::Json, true),
        (&whole, Encoding::Protobuf, true),
        (&deep(10), Encoding::Protobuf, true),
        (&deep(400), Encoding::Protobuf, false),
        (&whole[..whole.len() - 3], Encoding::Protobuf, false),
        (b"", Encoding::Json, false),
        (br#"{"resourceSpans": 1}"#, Encoding::Json, false),
    ];
    for (body, encoding, is_read) in cases {
        let read = spans(body, encoding);
        assert_eq!(read.is_ok(), is_read, "{encoding:?} {:?}", read.err().map(|it| it.to_string()));
    }
    let numbers = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId": 1}, {}, 7]}]}]}"#;
    assert_eq!(spans(numbers, Encoding::Json), Ok(SpansIn { spans: vec![], nameless: 3 }));
}

#[test]
fn content_types_name_forms() {
    for (name, encoding) in [
        ("application/x-protobuf", Some(Encoding::Protobuf)),
        ("application/json; charset=utf-8", Some(Encoding::Json)),
        ("APPLICATION/JSON", Some(Encoding::Json)),
        ("text/plain", None),
        ("", None),
    ] {
        assert_eq!(Encoding::of_content_type(name), encoding, "{name}");
    }
}

#[test]
fn answers_are_written_in_the_form_of_the_request() {
    assert_eq!(reply(Encoding::Protobuf, 0, ""), b"");
    assert_eq!(reply(Encoding::Json, 0, ""), b"{}");
    let protobuf = reply(Encoding::Protobuf, 2, "too long");
    let read = ExportTraceServiceResponse::decode(protobuf.as_slice()).unwrap();
    let said = read.partial_success.unwrap();
    assert_eq!((said.rejected_spans, said.error_message.as_str()), (2, "too long"));
    assert_eq!(
        String::from_utf8(reply(Encoding::Json, 2, "too long")).unwrap(),
        r#"{"partialSuccess":{"errorMessage":"too long","rejectedSpans":"2"}}"#
    );
    assert_eq!(refusal(Encoding::Json, "no"), br#"{"detail":"no","message":"no"}"#);
    let status = Status::decode(refusal(Encoding::Protobuf, "no").as_slice()).unwrap();
    assert_eq!(status.message, "no");
}

#[test]
fn events_go_out_in_both_forms() {
    let event = Event {
        name: "gen_ai.evaluation.result",
        at_ms: 1_700_000_000_000,
        body: "The same call, five times.".to_owned(),
        attributes: vec![
            ("gen_ai.evaluation.name", Value::Text("streak".to_owned())),
            ("gen_ai.evaluation.score.value", Value::Double(0.9)),
            ("reasonblocks.step.index", Value::Int(7)),
            ("reasonblocks.evidence.steps", Value::Ints(vec![5, 6])),
        ],
    };
    let source = [("service.name".to_owned(), "me".to_owned())];
    let protobuf = events_request(Encoding::Protobuf, &source, std::slice::from_ref(&event));
    let read = ExportLogsServiceRequest::decode(protobuf.as_slice()).unwrap();
    let record = &read.resource_logs[0].scope_logs[0].log_records[0];
    assert_eq!(record.event_name, "gen_ai.evaluation.result");
    assert_eq!((record.time_unix_nano, record.attributes.len()), (1_700_000_000_000_000_000, 4));
    let json = events_request(Encoding::Json, &source, &[event]);
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let record = &json["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    assert_eq!(record["attributes"][3]["value"]["arrayValue"]["values"][1]["intValue"], "6");
    assert_eq!(record["body"]["stringValue"], "The same call, five times.");
}
