//! Hashes by which a later request identifies an earlier response.

use rapidhash::v3::rapidhash_v3;

use super::joined;
use crate::conversation_hash::Role;
use crate::dialects::Part;
use crate::request::ParsedRequest;
use crate::response::Response;

/// Minimum lengths for a lookup: shorter texts and ids such as `call_0` are not unique.
const OWN_WORDS_BYTES_MIN: usize = 20;
pub(super) const OWN_ID_BYTES_MIN: usize = 9;

/// Returns the hashes by which a later request identifies a response: of the ids of its calls, or of its text.
pub fn marks_of_response(answer: &Response) -> Vec<u64> {
    marks(answer.calls.iter().map(|call| call.id.as_str()), &answer.thought)
}

/// Returns these hashes for the last responses in a request, newest first.
pub fn marks_of_last_responses(request: &ParsedRequest<'_>, count_max: usize) -> Vec<u64> {
    let (mut found, mut parts) = (Vec::new(), Vec::new());
    // A result contains the id of its call, even if the call itself is only a reference.
    let is_of_answer = |role: Role| matches!(role, Role::Assistant | Role::Tool);
    let answers = request.messages.iter().rev().filter(|message| is_of_answer(message.role));
    for message in answers.take(count_max) {
        request.read(message, &mut parts);
        let (mut calls, mut texts) = (Vec::new(), Vec::new());
        for part in parts.drain(..) {
            match part {
                Part::Call { id, .. } | Part::Result { id, .. } => calls.push(id),
                Part::ModelText(text) => texts.push(text),
                Part::UserText(_) | Part::Reference(_) => {}
            }
        }
        found.extend(marks(calls.iter().map(AsRef::as_ref), &joined(texts)));
    }
    found
}

fn marks<'a>(calls: impl Iterator<Item = &'a str>, words: &str) -> Vec<u64> {
    let own = calls.filter(|id| id.len() >= OWN_ID_BYTES_MIN);
    let ids: Vec<u64> = own.map(|id| rapidhash_v3(id.as_bytes())).collect();
    let words = words.trim();
    if ids.is_empty() && words.len() >= OWN_WORDS_BYTES_MIN {
        return vec![rapidhash_v3(words.as_bytes())];
    }
    ids
}
