//! Valid requests and responses, damaged in every way that a few bytes allow.

use proptest::prelude::*;

use super::laws;

const REQUESTS: [&str; 5] = [
    r#"{"model":"c","stream":true,"system":"s","max_tokens":1,"messages":[{"role":"user","content":"a \"b\""},
        {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s=="},{"type":"tool_use","id":"t1","name":"f","input":{"x":[1,{"y":null}]}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"r"}],"is_error":true,"cache_control":{"type":"ephemeral"}}]}]}"#,
    r#"{"model":"g","messages":[{"role":"developer","content":"d"},{"role":"user","content":[{"type":"text","text":"u"}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\u00e9\"}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"ok"}],"tools":[{"type":"function"}]}"#,
    r#"{"model":"g","instructions":"i","prompt_cache_key":"k","input":[{"role":"user","content":"u"},{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"e"},
        {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}"}]}"#,
    r#"{"input":"only \\ a text","metadata":{"user_id":"{\"session_id\":\"s\"}"},"model":"g"}"#,
    r#"{"messages":[{"role":"user","content":[]},{"role":"system","content":"s"}],"system":[{"type":"text","text":"b"}],"model":null}"#,
];

const STREAMS: [&str; 3] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\nevent: content_block_start\r\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\r\n\r\n: note\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"é\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9}}\n\ndata: [DONE]\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":1,\ndata: \"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":1}}}",
];

/// Bytes with a meaning in one of the formats.
const TELLING: &[u8] = b"{}[]\",:\\ \n\r0-eu\xff\x00";

#[test]
fn one_byte_more_less_or_other_breaks_no_law() {
    let every = |text: &str, law: fn(&[u8])| {
        let bytes = text.as_bytes();
        law(bytes);
        for at in 0..bytes.len() {
            law(&bytes[..at]);
            law(&[&bytes[..at], &bytes[at + 1..]].concat());
            // The inserted byte depends on the position, and every byte is used.
            let telling = TELLING[at % TELLING.len()];
            law(&[&bytes[..at], &[telling], &bytes[at..]].concat());
            law(&[&bytes[..at], &[telling], &bytes[at + 1..]].concat());
        }
    };
    for text in REQUESTS {
        every(text, laws::request);
    }
    for text in STREAMS {
        every(text, laws::answer);
    }
}

#[test]
fn what_broke_a_law_once_breaks_it_no_more() {
    // A form feed is white space in Rust but not in JSON.
    laws::answer(b"\x0c\x0c,,");
}

#[test]
fn no_depth_of_nesting_breaks_a_law() {
    for (open, close) in
        [("[", "]"), (r#"{"content":["#, "]}"), (r#"[{"type":"text","content":"#, "}]")]
    {
        let nested = format!("{}1{}", open.repeat(20_000), close.repeat(20_000));
        for body in [
            format!(r#"{{"messages":[{{"role":"user","content":{nested}}}]}}"#),
            format!(r#"{{"messages":{nested},"input":{nested},"system":{nested}}}"#),
            format!(
                r#"{{"input":[{{"type":"x_output","output":{nested}}},{{"type":"x_call","input":{nested}}}]}}"#
            ),
            nested.clone(),
        ] {
            laws::request(body.as_bytes());
        }
        laws::answer(format!("data: {nested}\n\n").as_bytes());
    }
}

/// Replaces a part of one text by a part of another.
fn crossed(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = || (0..texts.len(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (piece(), piece()).prop_map(move |((into, from, to), (of, start, end))| {
        let cut = |text: &'static str, one: prop::sample::Index, other: prop::sample::Index| {
            let (one, other) = (one.index(text.len()), other.index(text.len()));
            (one.min(other), one.max(other))
        };
        let (into, of) = (texts[into], texts[of]);
        let ((from, to), (start, end)) = (cut(into, from, to), cut(of, start, end));
        [&into.as_bytes()[..from], &of.as_bytes()[start..end], &into.as_bytes()[to..]].concat()
    })
}

proptest! {
    #[test]
    fn pieces_of_other_requests_break_no_law(body in crossed(&REQUESTS)) {
        laws::request(&body);
    }

    #[test]
    fn pieces_of_other_streams_break_no_law(stream in crossed(&STREAMS)) {
        laws::answer(&stream);
    }

    #[test]
    fn any_bytes_break_no_law(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        laws::request(&bytes);
        laws::answer(&bytes);
    }
}
