//! Invariants for any input. The tests use damaged bytes, the fuzz targets arbitrary ones.

use rb_wire::body_edits::BodyEdits;
use rb_wire::channel::Channel;
use rb_wire::dialects::{DIALECTS, Dialect};
use rb_wire::identity;
use rb_wire::inject;
use rb_wire::request::ParsedRequest;
use rb_wire::response::Response;
use rb_wire::response_reader::{ResponseReader, read_body};
use rb_wire::steps::{self, PendingTurn};
use serde_json::Value;

const PATH: &str = "/v1beta/models/m:generateContent";
const FRAGMENT: &str = "[REASONBLOCKS]\n\"ours\" \\ \u{1}";

/// Checks that any body is parsed without a panic, and that a JSON body remains JSON after every edit.
pub(crate) fn request(body: &[u8]) {
    for dialect in DIALECTS {
        request_in(dialect, body);
    }
}

fn request_in(dialect: &'static dyn Dialect, body: &[u8]) {
    let parsed = serde_json::from_slice::<Value>(body).ok();
    let is_object = parsed.as_ref().is_some_and(Value::is_object);
    let Ok(request) = ParsedRequest::parse(dialect, PATH, body) else {
        assert!(!is_object, "an object is refused: {}", String::from_utf8_lossy(body));
        return;
    };
    let mut last_end = 0;
    for message in &request.messages {
        assert!(last_end <= message.span.start && message.span.end <= body.len());
        last_end = message.span.end;
    }
    let nothing = PendingTurn::default();
    let all = steps::extract(&request, 0, &nothing);
    for step in &all.steps {
        let _ = step.step();
    }
    for at in 0..=request.messages.len() {
        steps::extract(&request, at, &all.pending);
    }
    let _ = (request.task(), request.model(), identity::run_name(|_| None, Some(&request)));
    let is_json = |edits: &BodyEdits<'_>| serde_json::from_slice::<Value>(&edits.apply()).is_ok();
    let set_model = inject::set_model(&request, "another", &mut PATH.to_owned());
    let edits = [inject::inject_system(&request, FRAGMENT), set_model];
    for edits in &edits {
        assert!(!is_object || is_json(edits), "{}", String::from_utf8_lossy(&edits.apply()));
    }
    for channel in Channel::ALL {
        let first = inject::inject_tail(&request, &[], Some(FRAGMENT), &[channel]);
        assert!(!is_object || is_json(&first.edits));
        assert_eq!(first.injection.is_some(), !first.edits.is_empty());
        let Some(injection) = first.injection else { continue };
        let again = inject::inject_tail(&request, &[injection], None, &[]);
        let provider_stores_response = !request.is_server_side_history();
        assert_eq!(again.edits.apply() == first.edits.apply(), provider_stores_response);
    }
}

/// Checks that the result for a stream does not depend on its chunks.
pub(crate) fn answer(bytes: &[u8]) {
    for dialect in DIALECTS {
        let read = |chunk_bytes: usize| -> Response {
            let mut reader = ResponseReader::stream(dialect);
            bytes.chunks(chunk_bytes).for_each(|chunk| reader.feed(chunk));
            reader.finish()
        };
        let whole = read(bytes.len().max(1));
        assert_eq!(read(1), whole);
        assert_eq!(read(7), whole);
        let mut reader = ResponseReader::body(dialect);
        reader.feed(bytes);
        assert_eq!(reader.finish(), read_body(dialect, bytes));
    }
}
