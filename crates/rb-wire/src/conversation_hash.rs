//! Running hash over the messages of a conversation.
//!
//! The hash ignores changes that clients make between requests without changing the content: a moved `cache_control`, and
//! a text that is sent as a string first and as a list with one text block later. Nothing else is normalised: clients
//! serialise the same message in the same way.
//!
//! Equal hashes mean equal messages up to that point, so a hash identifies a position in a conversation and
//! survives a restart. The hash is not cryptographic: hashes of different clients must be kept apart.

use std::fmt;

use rapidhash::v3::rapidhash_v3;

use crate::json::{Cursor, Malformed, Value};

/// Hash of a conversation up to and including one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MessageHash(pub u64);

impl fmt::Display for MessageHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// System or developer.
    System,
    /// User; with Anthropic and Gemini also tool results.
    User,
    /// Model.
    Assistant,
    /// Tool result.
    Tool,
    /// Unknown.
    Other,
}

/// Role, type and hash of one message.
pub(crate) struct Head<'a> {
    /// Value of `role`; `None` for a value that is no message.
    pub(crate) role: Option<&'a [u8]>,
    /// Value of `type`.
    pub(crate) kind: &'a [u8],
    pub(crate) hash: u64,
}

/// Returns the hash after another message.
pub(crate) fn extend(before: MessageHash, message: u64) -> MessageHash {
    let mut digest = Digest(before.0);
    digest.add(message);
    MessageHash(digest.0)
}

/// Members of a block, in order.
pub(crate) type Members<'a> = Vec<(&'a [u8], Value<'a>)>;

/// Reads the message at the cursor. `scratch` is reused for all messages
/// of a body.
pub(crate) fn message<'a>(
    cursor: &mut Cursor<'a>,
    scratch: &mut Members<'a>,
) -> Result<Head<'a>, Malformed> {
    let mut digest = Digest(0);
    if !cursor.eat(b'{') {
        // A string is short for a message of the user; no other value is a message.
        let value = cursor.value()?;
        digest.piece(b"role");
        digest.piece(b"\"user\"");
        digest.text(value);
        let role = value.is_string().then_some(&b"user"[..]);
        return Ok(Head { role, kind: b"", hash: digest.0 });
    }
    let (mut role, mut kind): (&[u8], &[u8]) = (b"", b"");
    let mut is_first = true;
    while let Some(key) = cursor.key(is_first)? {
        is_first = false;
        if key == b"content" {
            content(cursor, scratch, &mut digest)?;
            continue;
        }
        let value = cursor.value()?;
        match key {
            b"cache_control" => continue,
            b"role" => role = value.raw_str(),
            b"type" => kind = value.raw_str(),
            _ => {}
        }
        // An item without a type is a message.
        if key != b"type" || kind != b"message" {
            digest.piece(key);
            digest.piece(value.bytes());
        }
    }
    Ok(Head { role: Some(role), kind, hash: digest.0 })
}

fn content<'a>(
    cursor: &mut Cursor<'a>,
    members: &mut Members<'a>,
    digest: &mut Digest,
) -> Result<(), Malformed> {
    if !cursor.eat(b'[') {
        digest.text(cursor.value()?);
        return Ok(());
    }
    let mut is_first = true;
    while cursor.item(is_first)? {
        is_first = false;
        if cursor.eat(b'{') {
            members.clear();
            while let Some(key) = cursor.key(members.is_empty())? {
                members.push((key, cursor.value()?));
            }
            block(members, 0, digest);
        } else {
            digest.piece(cursor.value()?.bytes());
        }
    }
    Ok(())
}

/// Maximum depth of nested blocks: a tool result contains blocks, and those contain none.
const DEPTH_MAX: usize = 1;

fn block(members: &[(&[u8], Value<'_>)], depth: usize, digest: &mut Digest) {
    let counts = |key: &[u8]| key != b"cache_control";
    if let Some(text) = bare_text(members) {
        digest.text(text);
        return;
    }
    digest.add(u64::from(b'{'));
    for (key, value) in members.iter().filter(|(key, _)| counts(key)) {
        digest.piece(key);
        if *key == b"content" && value.is_list() && depth < DEPTH_MAX {
            for item in value.items() {
                let inner: Vec<_> = item.members().collect();
                if inner.is_empty() {
                    digest.piece(item.bytes());
                } else {
                    block(&inner, depth + 1, digest);
                }
            }
        } else {
            digest.text(*value);
        }
    }
}

/// Returns the text of a block with nothing else.
fn bare_text<'a>(members: &[(&[u8], Value<'a>)]) -> Option<Value<'a>> {
    let mut text = None;
    for (key, value) in members {
        match *key {
            b"type" if value.raw_str() == b"text" => {}
            b"text" if value.is_string() => text = Some(*value),
            b"cache_control" => {}
            _ => return None,
        }
    }
    text
}

/// Order-dependent combination of hashes.
struct Digest(u64);

impl Digest {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a product are wanted")]
    fn add(&mut self, hash: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.0.rotate_left(29) ^ hash ^ ODD) * u128::from(ODD);
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(hash);
    }

    fn piece(&mut self, bytes: &[u8]) {
        self.add(rapidhash_v3(bytes));
    }

    /// Adds a text, equal for a string and for a text block.
    fn text(&mut self, value: Value<'_>) {
        self.piece(value.bytes());
    }
}

/// Relation of a request to the previous one of its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuity {
    /// There is no previous request.
    First,
    /// Same messages.
    Retry,
    /// Same messages, and new ones from this index on.
    Continues {
        /// Index of the first new message.
        from: usize,
    },
    /// The history was edited or truncated at this index.
    Edited {
        /// Index of the first message that differs or is missing.
        at: usize,
    },
    /// The whole history is new, usually shorter: the client compacted it.
    Compacted,
}

impl Continuity {
    /// Compares the hashes of the last request with those of this one.
    pub fn between(known: &[MessageHash], now: &[MessageHash]) -> Self {
        let same = known.iter().zip(now).take_while(|(then, now)| then == now).count();
        match (known.len(), now.len()) {
            (0, _) => Self::First,
            (then, now) if same == then && then == now => Self::Retry,
            (then, _) if same == then => Self::Continues { from: same },
            _ if same == 0 => Self::Compacted,
            _ => Self::Edited { at: same },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(json: &str) -> u64 {
        message(&mut Cursor::new(json.as_bytes()), &mut Members::new()).expect("a message").hash
    }

    #[test]
    fn what_clients_change_between_requests_does_not_count() {
        let alike = [
            [
                r#"{"role":"user","content":"hi \"you\""}"#,
                r#"{"role":"user","content":[{"type":"text","text":"hi \"you\"","cache_control":{"type":"ephemeral"}}]}"#,
            ],
            [
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}"#,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}"#,
            ],
            [
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}"#,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x","cache_control":{}}]}]}"#,
            ],
            [
                r#"{"role": "user", "content": [ {"text" : "x", "type": "text"} ] }"#,
                r#"{"role":"user","content":"x"}"#,
            ],
            [r#"{"type":"message","role":"user","content":"x"}"#, r#""x""#],
        ];
        for [one, other] in alike {
            assert_eq!(hash(one), hash(other), "{one}\n{other}");
        }
    }

    #[test]
    fn what_was_said_counts() {
        let different = [
            r#"{"role":"user","content":"x"}"#,
            r#"{"role":"user","content":"y"}"#,
            r#"{"role":"assistant","content":"x"}"#,
            r#"{"role":"user","content":["x"],"name":"x"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x","citations":[]}]}"#,
            r#"{"role":"user","content":[{"type":"thinking","thinking":"x","signature":"s"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","content":"x"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","content":"x","is_error":true}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","content":["x"],"is_error":false}]}"#,
            r#"{"role":"user","content":null}"#,
            r#"{"role":"user"}"#,
            "{}",
            "1",
        ];
        for (at, one) in different.iter().enumerate() {
            for other in &different[at + 1..] {
                assert_ne!(hash(one), hash(other), "{one}\n{other}");
            }
        }
    }

    #[test]
    fn links_stay_what_they_were() {
        // Hashes are stored: a change here breaks the continuation of running conversations.
        let first = extend(MessageHash::default(), hash(r#"{"role":"user","content":"hello"}"#));
        let second = extend(first, hash(r#"{"role":"assistant","content":"hi"}"#));
        assert_eq!(
            [first, second].map(|hash| hash.to_string()),
            ["71b959965436acde", "ee8e0280b2c74176"]
        );
    }

    #[test]
    fn a_request_is_compared_with_the_one_before() {
        use Continuity::{Compacted, Continues, Edited, First, Retry};
        let cases: [(&[u64], &[u64], Continuity); 8] = [
            (&[], &[1], First),
            (&[1], &[1], Retry),
            (&[1], &[1, 2, 3], Continues { from: 1 }),
            (&[1, 2, 3], &[1, 2, 4, 5], Edited { at: 2 }),
            (&[1, 2, 3], &[1, 2], Edited { at: 2 }),
            (&[1, 2, 3], &[9], Compacted),
            (&[1, 2, 3], &[], Compacted),
            (&[1], &[2, 3], Compacted),
        ];
        for (known, now, expected) in cases {
            let hashes =
                |numbers: &[u64]| numbers.iter().copied().map(MessageHash).collect::<Vec<_>>();
            assert_eq!(Continuity::between(&hashes(known), &hashes(now)), expected);
        }
    }
}
