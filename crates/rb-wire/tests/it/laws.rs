//! Laws that no bytes may break. The tests try damaged bytes, the fuzz targets any.

use rb_wire::answer::{Answer, AnswerReader};
use rb_wire::chat::Chat;
use rb_wire::dialects::{DIALECTS, Dialect};
use rb_wire::identity;
use rb_wire::splice::Splices;
use rb_wire::steer::{self, Channel};
use rb_wire::steps::{self, Carry};
use serde_json::Value;

const FRAGMENT: &str = "[REASONBLOCKS]\n\"ours\" \\ \u{1}";

/// Whatever a body is, it is looked at without harm; and if it is JSON, it is JSON after every edit.
pub(crate) fn request(body: &[u8]) {
    for dialect in &DIALECTS {
        request_in(dialect, body);
    }
}

fn request_in(dialect: &'static Dialect, body: &[u8]) {
    let parsed = serde_json::from_slice::<Value>(body).ok();
    let is_object = parsed.as_ref().is_some_and(Value::is_object);
    let Ok(chat) = Chat::scan(dialect, body) else {
        assert!(!is_object, "an object is refused: {}", String::from_utf8_lossy(body));
        return;
    };
    let mut last_end = 0;
    for message in &chat.messages {
        assert!(last_end <= message.span.start && message.span.end <= body.len());
        last_end = message.span.end;
    }
    let nothing = Carry::default();
    let all = steps::read(&chat, 0, &nothing);
    for step in &all.steps {
        let _ = step.step();
    }
    for at in 0..=chat.messages.len() {
        steps::read(&chat, at, &all.carry);
    }
    let _ = (chat.task(), chat.model(), identity::run_name(|_| None, Some(&chat)));
    let is_json = |splices: &Splices<'_>| serde_json::from_slice::<Value>(&splices.apply()).is_ok();
    let edits = [steer::system(&chat, FRAGMENT), steer::model(&chat, "another")];
    for splices in &edits {
        assert!(!is_object || is_json(splices), "{}", String::from_utf8_lossy(&splices.apply()));
    }
    for channel in Channel::ALL {
        let first = steer::tail(&chat, &[], Some(FRAGMENT), &[channel]);
        assert!(!is_object || is_json(&first.splices));
        assert_eq!(first.planted.is_some(), !first.splices.is_empty());
        let Some(planted) = first.planted else { continue };
        let again = steer::tail(&chat, &[planted], None, &[]);
        let is_kept = !chat.is_stored_elsewhere();
        assert_eq!(again.splices.apply() == first.splices.apply(), is_kept);
    }
}

/// Whatever a stream is, what is read of it does not depend on how it is cut.
pub(crate) fn answer(bytes: &[u8]) {
    for dialect in &DIALECTS {
        let read = |chunk_bytes: usize| -> Answer {
            let mut reader = AnswerReader::stream(dialect);
            bytes.chunks(chunk_bytes).for_each(|chunk| reader.feed(chunk));
            reader.finish()
        };
        let whole = read(bytes.len().max(1));
        assert_eq!(read(1), whole);
        assert_eq!(read(7), whole);
        let mut reader = AnswerReader::body(dialect);
        reader.feed(bytes);
        assert_eq!(reader.finish(), Answer::of_body(dialect, bytes));
    }
}
