//! Responses of every provider, split at every byte.

use super::*;
use crate::dialects::{DIALECTS, by_id};
use crate::model::TokenUsage;
use crate::response::{CALLS_MAX, INPUT_BYTES_MAX, THOUGHT_BYTES_MAX};

fn read<'a>(dialect: &str, is_stream: bool, chunks: impl Iterator<Item = &'a [u8]>) -> Response {
    let dialect = by_id(dialect).expect("a dialect");
    let mut reader =
        if is_stream { ResponseReader::stream(dialect) } else { ResponseReader::body(dialect) };
    chunks.for_each(|chunk| reader.feed(chunk));
    reader.finish()
}

/// Formats the parsed response as one line, which must not depend on the split.
#[track_caller]
fn check(dialect: &str, is_stream: bool, bytes: &str) -> String {
    let bytes = bytes.as_bytes();
    let whole = read(dialect, is_stream, std::iter::once(bytes));
    assert_eq!(read(dialect, is_stream, bytes.chunks(1)), whole, "byte by byte");
    for at in 0..bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(read(dialect, is_stream, [head, tail].into_iter()), whole, "split at {at}");
    }
    let Response { id, model, usage, thought, calls, items, stop, error, is_complete } = whole;
    let usage = usage.map_or("no usage".to_owned(), |usage| {
        let TokenUsage { uncached_input, cache_read, cache_write, cache_write_hour, output } = usage;
        format!(
            "fresh {uncached_input} read {cache_read} write {cache_write} ({cache_write_hour}) out {output}"
        )
    });
    let calls: Vec<String> = calls
        .iter()
        .map(|call| format!("{} {} {:?}", call.id, call.tool, call.run_input()))
        .collect();
    let error =
        error.map_or("no fault".to_owned(), |error| format!("{}: {}", error.kind, error.message));
    let stop = stop.unwrap_or_else(|| "no stop".to_owned());
    let items = items.iter().fold(String::new(), |shown, item| shown + "[" + item + "] ");
    format!(
        "{id} {model}\n{usage}\n{thought:?}\n{}\n{items}{stop}, complete {is_complete}, {error}",
        calls.join("\n")
    )
}

#[test]
fn an_anthropic_stream_with_thinking_and_parallel_calls() {
    let stream = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-1\",\"content\":[],\"stop_reason\":null,",
        "\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":300,\"cache_creation\":{\"ephemeral_5m_input_tokens\":200,\"ephemeral_1h_input_tokens\":100},\"cache_read_input_tokens\":5000,\"output_tokens\":1}}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm\\u00e9\"}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"EqQB\"}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"bash\",\"input\":{}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\": \"}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"ls\",\"input\":{}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"1}\"}}\n\n",
        "event: unheard_of\ndata: {\"type\":\"unheard_of\"}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":89}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    insta::assert_snapshot!(check("anthropic", true, stream), @r#"
    msg_1 claude-1
    fresh 25 read 5000 write 300 (100) out 89
    "Hmé"
    t1 bash Structured("{\"a\": 1}")
    t2 ls Structured("{}")
    tool_use, complete true, no fault
    "#);
    insta::assert_snapshot!(check("anthropic", true, &stream.replace('\n', "\r\n")), @r#"
    msg_1 claude-1
    fresh 25 read 5000 write 300 (100) out 89
    "Hmé"
    t1 bash Structured("{\"a\": 1}")
    t2 ls Structured("{}")
    tool_use, complete true, no fault
    "#);
}

#[test]
fn an_anthropic_stream_that_fails_midway() {
    let stream = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\n",
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
    );
    insta::assert_snapshot!(check("anthropic", true, stream), @r#"
    m 
    fresh 3 read 0 write 0 (0) out 0
    ""

    no stop, complete false, overloaded_error: Overloaded
    "#);
}

#[test]
fn an_anthropic_body() {
    let body = r#"{"id":"m","type":"message","model":"c","content":[{"type":"text","text":"Hi"},
        {"type":"tool_use","id":"t","name":"bash","input":{"command":"ls"}}],"stop_reason":"tool_use",
        "usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":null}}"#;
    insta::assert_snapshot!(check("anthropic", false, body), @r#"
    m c
    fresh 10 read 0 write 0 (0) out 5
    "Hi"
    t bash Structured("{\"command\":\"ls\"}")
    tool_use, complete true, no fault
    "#);
    let error = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"},"request_id":"r"}"#;
    insta::assert_snapshot!(check("anthropic", false, error), @r#"
     
    no usage
    ""

    no stop, complete false, rate_limit_error: slow down
    "#);
}

#[test]
fn a_chat_stream_with_and_without_usage() {
    let stream = concat!(
        "data: {\"id\":\"c1\",\"model\":\"gpt\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\n",
        "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Hm. \"}}]}\n\n",
        "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}},{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n\n",
        "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n",
        "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{\"}}]}}]}\n\n",
        "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}},{\"index\":1,\"function\":{\"arguments\":\"}\"}}]}}]}\n\n",
        "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    );
    insta::assert_snapshot!(check("openai-chat", true, &format!("{stream}data: [DONE]\n\n")), @r#"
    c1 gpt
    no usage
    "Hm. Hi"
    a f Text("{}")
    b g Text("{}")
    tool_calls, complete true, no fault
    "#);
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64}}}"#;
    insta::assert_snapshot!(check("openai-chat", true, &format!("{stream}{usage}\n\ndata: [DONE]\n\n")), @r#"
    c1 gpt
    fresh 36 read 64 write 0 (0) out 7
    "Hm. Hi"
    a f Text("{}")
    b g Text("{}")
    tool_calls, complete true, no fault
    "#);
}

#[test]
fn chat_pieces_without_an_index_find_their_call() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"1\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"2\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"3\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"arguments\":\"4\"}}]}}]}\n\n",
        "data: {\"error\":{\"message\":\"gone\",\"type\":\"server_error\",\"code\":null}}\n\n",
    );
    insta::assert_snapshot!(check("openai-chat", true, stream), @r#"
     
    no usage
    ""
    a f Text("124")
    b g Text("3")
    no stop, complete false, server_error: gone
    "#);
}

#[test]
fn a_chat_body_of_another_provider() {
    let body = r#"{"id":"c","model":"deepseek","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","tool_calls":[
        {"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
        {"id":"b","type":"custom","custom":{"name":"g","input":"raw"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":90,"prompt_cache_miss_tokens":10}}"#;
    insta::assert_snapshot!(check("openai-chat", false, body), @r#"
    c deepseek
    fresh 10 read 90 write 0 (0) out 7
    "Hi"
    a f Text("{\"x\":1}")
    b g Text("raw")
    tool_calls, complete true, no fault
    "#);
    insta::assert_snapshot!(check("openai-chat", false, r#"{"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}"#), @r#"
     
    no usage
    ""

    no stop, complete false, invalid_api_key: bad key
    "#);
}

#[test]
fn a_responses_stream_with_reasoning_and_a_call() {
    let stream = concat!(
        "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"in_progress\",\"model\":\"gpt-5\",\"output\":[],\"usage\":null}}\n\n",
        "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[]}}\n\n",
        "event: response.reasoning_summary_text.delta\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"**Loo\"}\n\n",
        "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"**Looking**\"}],\"encrypted_content\":\"gA\"}}\n\n",
        "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"call_1\",\"name\":\"shell\",\"arguments\":\"{\\\"command\\\":[]}\",\"status\":\"completed\"}}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"error\":null,\"incomplete_details\":null,\"usage\":{\"input_tokens\":1000,\"input_tokens_details\":{\"cached_tokens\":900},\"output_tokens\":20,\"output_tokens_details\":{\"reasoning_tokens\":10},\"total_tokens\":1020}}}\n\n",
    );
    insta::assert_snapshot!(check("openai-responses", true, stream), @r#"
    resp_1 gpt-5
    fresh 100 read 900 write 0 (0) out 20
    "**Looking**"
    call_1 shell Text("{\"command\":[]}")
    [rs] [fc] completed, complete true, no fault
    "#);
    let failed = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"gone\"},\"usage\":null}}\n\n";
    insta::assert_snapshot!(check("openai-responses", true, failed), @r#"
    r 
    no usage
    ""

    failed, complete true, server_error: gone
    "#);
    let error = "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null}\n\n";
    insta::assert_snapshot!(check("openai-responses", true, error), @r#"
     
    no usage
    ""

    no stop, complete false, rate_limit_exceeded: slow
    "#);
}

#[test]
fn a_responses_body_that_was_cut_short() {
    let body = r#"{"id":"r","object":"response","status":"incomplete","model":"g","error":null,"incomplete_details":{"reason":"max_output_tokens"},
        "output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"},{"type":"refusal","refusal":"No"}]},
        {"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}}],
        "usage":{"input_tokens":5,"output_tokens":6}}"#;
    insta::assert_snapshot!(check("openai-responses", false, body), @r#"
    r g
    fresh 5 read 0 write 0 (0) out 6
    "Hi\n\nNo"
    ws web_search Structured("{\"type\":\"search\",\"query\":\"q\"}")
    [ws] max_output_tokens, complete true, no fault
    "#);
    insta::assert_snapshot!(check("openai-responses", false, r#"{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}"#), @r#"
     
    no usage
    ""

    no stop, complete false, model_not_found: no such model
    "#);
}

#[test]
fn a_gemini_response_as_events_as_a_list_and_as_one_object() {
    let chunks = [
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm.","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":90,"thoughtsTokenCount":3},"modelVersion":"gemini-3","responseId":"r1"}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"I "}]}}],"modelVersion":"gemini-3","responseId":"r1"}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"look."},{"functionCall":{"name":"ls","args":{"path":"."}}},{"functionCall":{"id":"c2","name":"pwd","args":{}}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":90,"toolUsePromptTokenCount":5,"candidatesTokenCount":7,"thoughtsTokenCount":3,"totalTokenCount":115},"modelVersion":"gemini-3","responseId":"r1"}"#,
    ];
    let events = chunks.map(|chunk| format!("data: {chunk}\r\n\r\n")).concat();
    let whole = check("gemini", true, &events);
    insta::assert_snapshot!(whole, @r#"
    r1 gemini-3
    fresh 15 read 90 write 0 (0) out 10
    "Hm.\n\nI look."
     ls Structured("{\"path\":\".\"}")
    c2 pwd Structured("{}")
    STOP, complete true, no fault
    "#);
    assert_eq!(check("gemini", false, &format!("[{}\n]", chunks.join(",\r\n"))), whole);
    insta::assert_snapshot!(check("gemini", false, chunks[1]), @r#"
    r1 gemini-3
    no usage
    "I "

    no stop, complete false, no fault
    "#);
    insta::assert_snapshot!(check("gemini", false, r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#), @r#"
     
    fresh 4 read 0 write 0 (0) out 0
    ""

    SAFETY, complete true, no fault
    "#);
    let error = r#"{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}"#;
    for (is_stream, bytes) in [
        (true, format!("data: {error}\n\n")),
        (false, error.to_owned()),
        (false, format!("[{error}]")),
    ] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(check("gemini", is_stream, &bytes), @r#"
             
            no usage
            ""

            no stop, complete false, RESOURCE_EXHAUSTED: quota
            "#);
        }
    }
}

#[test]
fn garbage_is_no_answer_and_no_harm() {
    for dialect in DIALECTS.map(Dialect::id) {
        for is_stream in [true, false] {
            for bytes in [
                "",
                "<html>502</html>",
                "data: {\n\n",
                "data: []\n\n",
                "{\"usage\":7,\"content\":{}}",
                "\u{0}",
            ] {
                let answer = read(dialect, is_stream, std::iter::once(bytes.as_bytes()));
                assert_eq!(
                    (answer.usage, answer.calls.len(), answer.error),
                    (None, 0, None),
                    "{bytes}"
                );
            }
        }
    }
}

#[test]
fn what_is_kept_of_an_answer_is_bounded() {
    let dialect = by_id("anthropic").expect("a dialect");
    let mut reader = ResponseReader::stream(dialect);
    let event = |data: &str| format!("data: {data}\n\n");
    let text = "é".repeat(1_000);
    for index in 0..200 {
        let start = format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"t{index}","name":"f"}}}}"#
        );
        reader.feed(event(&start).as_bytes());
        let input = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{text}"}}}}"#
        );
        reader.feed(event(&input).as_bytes());
        let said = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
        );
        reader.feed(event(&said).as_bytes());
    }
    let answer = reader.finish();
    assert_eq!(answer.thought.len(), THOUGHT_BYTES_MAX);
    assert_eq!((answer.calls.len(), answer.calls[0].input.len()), (CALLS_MAX, INPUT_BYTES_MAX));
}
