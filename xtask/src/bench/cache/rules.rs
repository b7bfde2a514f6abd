//! The providers' published rules of prompt caching, as a simulation. Pure: prompts in, counts of tokens out.
//!
//! **Anthropic.** A prompt is a row of blocks: tools, system, messages. A marked block writes the prefix that ends with it,
//! if that is long enough. A request reads the longest written prefix that ends at a marked block of its own or at most
//! twenty blocks before one. **OpenAI.** Every prompt of at least 1,024 tokens is kept as it is, and a later one reads what
//! it has in common with it from the first token on, in steps of 128.
//!
//! Nothing expires: agents call again within minutes. Tokens are taken as four bytes each.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// The blocks that a marker looks back over.
const LOOKBACK: usize = 20;
/// The smallest prefix that Anthropic's middle models keep.
const ANTHROPIC_TOKENS_MIN: u64 = 1_024;
const OPENAI_TOKENS_MIN: u64 = 1_024;
const OPENAI_STEP: u64 = 128;
const TOKEN_BYTES: u64 = 4;

/// One block of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    text: String,
    /// The client wants everything up to here to be cached.
    is_marked: bool,
    /// It is guidance and no part of what the client sent.
    is_ours: bool,
}

impl Block {
    fn tokens(&self) -> u64 {
        (self.text.len() as u64).div_ceil(TOKEN_BYTES)
    }
}

/// The blocks of an Anthropic request in the order in which they are cached. `mark` begins every guidance.
pub(super) fn blocks(request: &Value, mark: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut add = |place: &str, value: &Value| {
        let mut value = value.clone();
        let marker = value.as_object_mut().and_then(|fields| fields.remove("cache_control"));
        let is_ours =
            value["text"].as_str().or(value.as_str()).is_some_and(|text| text.starts_with(mark));
        blocks.push(Block {
            text: format!("{place}:{value}"),
            is_marked: marker.is_some(),
            is_ours,
        });
    };
    for tool in request["tools"].as_array().into_iter().flatten() {
        add("tool", tool);
    }
    each(&request["system"], |block| add("system", block));
    for message in request["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or_default();
        each(&message["content"], |block| add(role, block));
    }
    blocks
}

/// A text is one block; it is cached alike bare and in a list.
fn each(content: &Value, mut add: impl FnMut(&Value)) {
    match content {
        Value::String(text) => add(&serde_json::json!({ "type": "text", "text": text })),
        Value::Array(blocks) => blocks.iter().for_each(add),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

/// What the tokens of requests were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Count {
    pub(super) fresh: u64,
    pub(super) written: u64,
    pub(super) read: u64,
    /// Of those read, how many are the client's own.
    pub(super) read_of_client: u64,
}

impl Count {
    pub(super) fn add(&mut self, other: Self) {
        self.fresh += other.fresh;
        self.written += other.written;
        self.read += other.read;
        self.read_of_client += other.read_of_client;
    }

    pub(super) fn all(&self) -> u64 {
        self.fresh + self.written + self.read
    }
}

/// A provider's cache, as one conversation sees it.
pub(super) trait Cache {
    /// Sends a prompt and says what its tokens were.
    fn send(&mut self, prompt: &[Block]) -> Count;
}

/// Prefixes by the hash of their blocks.
#[derive(Default)]
pub(super) struct Anthropic {
    written: HashSet<u64>,
}

impl Cache for Anthropic {
    fn send(&mut self, prompt: &[Block]) -> Count {
        let mut hasher = DefaultHasher::new();
        let mut tokens = 0;
        let mut client_tokens = 0;
        let prefixes: Vec<Prefix> = prompt
            .iter()
            .map(|block| {
                block.text.hash(&mut hasher);
                tokens += block.tokens();
                client_tokens += if block.is_ours { 0 } else { block.tokens() };
                Prefix { hash: hasher.finish(), tokens, client_tokens }
            })
            .collect();
        let marked: Vec<usize> = (0..prompt.len()).filter(|at| prompt[*at].is_marked).collect();
        let found = marked.iter().filter_map(|marker| {
            let places = (marker.saturating_sub(LOOKBACK)..=*marker).rev();
            places.into_iter().find(|at| self.written.contains(&prefixes[*at].hash))
        });
        let read = found.max().map(|at| prefixes[at]).unwrap_or_default();
        let kept =
            marked.iter().map(|at| prefixes[*at]).filter(|it| it.tokens >= ANTHROPIC_TOKENS_MIN);
        let kept: Vec<Prefix> = kept.collect();
        let written = kept.iter().map(|it| it.tokens).max().unwrap_or_default().max(read.tokens);
        self.written.extend(kept.iter().map(|it| it.hash));
        Count {
            fresh: tokens - written,
            written: written - read.tokens,
            read: read.tokens,
            read_of_client: read.client_tokens,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Prefix {
    hash: u64,
    tokens: u64,
    client_tokens: u64,
}

/// The prompts of a conversation. One that another begins with need not be kept.
#[derive(Default)]
pub(super) struct OpenAi {
    kept: Vec<Vec<Block>>,
}

impl Cache for OpenAi {
    fn send(&mut self, prompt: &[Block]) -> Count {
        let all: u64 = prompt.iter().map(Block::tokens).sum();
        let shared = self.kept.iter().map(|kept| common(kept, prompt)).max().unwrap_or_default();
        let read = shared - shared % OPENAI_STEP;
        let read = if read >= OPENAI_TOKENS_MIN { read } else { 0 };
        if all >= OPENAI_TOKENS_MIN {
            self.kept.retain(|kept| !prompt.starts_with(kept));
            self.kept.push(prompt.to_vec());
        }
        Count {
            fresh: all - read,
            written: 0,
            read,
            read_of_client: read - ours_within(prompt, read),
        }
    }
}

/// The tokens that two prompts begin with alike.
fn common(one: &[Block], other: &[Block]) -> u64 {
    let mut tokens = 0;
    for (one, other) in one.iter().zip(other) {
        if one.text == other.text {
            tokens += one.tokens();
            continue;
        }
        let same = one.text.bytes().zip(other.text.bytes()).take_while(|(a, b)| a == b).count();
        return tokens + same as u64 / TOKEN_BYTES;
    }
    tokens
}

/// How many of the first tokens are guidance.
fn ours_within(prompt: &[Block], mut tokens: u64) -> u64 {
    let mut ours = 0;
    for block in prompt {
        let within = block.tokens().min(tokens);
        ours += if block.is_ours { within } else { 0 };
        tokens -= within;
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "[M]";

    /// A block of so many tokens.
    fn block(name: &str, tokens: usize, is_marked: bool) -> Block {
        let text = name.repeat(tokens * 4)[..tokens * 4].to_owned();
        Block { text, is_marked, is_ours: name == "o" }
    }

    fn check(cache: &mut dyn Cache, prompts: &[&[Block]], expected: &[(u64, u64, u64, u64)]) {
        let counts: Vec<_> = prompts
            .iter()
            .map(|prompt| cache.send(prompt))
            .map(|count| (count.fresh, count.written, count.read, count.read_of_client))
            .collect();
        assert_eq!(counts, expected);
    }

    #[test]
    fn anthropic_reads_the_longest_written_prefix_before_a_marker() {
        let (a, b, c) = (block("a", 1_000, false), block("b", 100, true), block("c", 50, true));
        let plain_b = Block { is_marked: false, ..b.clone() };
        check(
            &mut Anthropic::default(),
            &[&[a.clone(), b.clone()], &[a.clone(), plain_b.clone(), c.clone()], &[plain_b, a, c]],
            &[(0, 1_100, 0, 0), (0, 50, 1_100, 1_100), (0, 1_150, 0, 0)],
        );
    }

    #[test]
    fn anthropic_keeps_no_short_prefix_and_nothing_behind_the_last_marker() {
        let (short, marked) = (block("a", 500, true), block("b", 1_000, true));
        let rest = block("c", 10, false);
        check(
            &mut Anthropic::default(),
            &[
                std::slice::from_ref(&short),
                std::slice::from_ref(&short),
                &[short.clone(), marked.clone(), rest.clone()],
                &[short.clone(), marked.clone(), rest.clone()],
            ],
            &[(500, 0, 0, 0), (500, 0, 0, 0), (10, 1_500, 0, 0), (10, 0, 1_500, 1_500)],
        );
    }

    #[test]
    fn anthropic_looks_back_over_twenty_blocks() {
        for (between, read) in [(19, 2_000), (20, 0)] {
            let first = block("a", 2_000, true);
            let mut later = vec![Block { is_marked: false, ..first.clone() }];
            later.extend((0..between).map(|_| block("x", 1, false)));
            later.push(block("z", 1, true));
            let mut cache = Anthropic::default();
            cache.send(&[first]);
            assert_eq!(cache.send(&later).read, read, "{between} blocks between");
        }
    }

    #[test]
    fn openai_reads_in_steps_from_the_first_token_on() {
        let (a, b, ours) =
            (block("a", 1_100, false), block("b", 300, false), block("o", 100, false));
        check(
            &mut OpenAi::default(),
            &[
                &[a.clone(), ours.clone()],
                &[a.clone(), ours.clone(), b.clone()],
                &[a.clone(), b.clone()],
                &[b, a],
            ],
            &[(1_200, 0, 0, 0), (348, 0, 1_152, 1_100), (376, 0, 1_024, 1_024), (1_400, 0, 0, 0)],
        );
    }

    #[test]
    fn a_request_is_taken_apart_in_the_order_of_the_cache() {
        let request = serde_json::json!({
            "messages": [
                { "role": "user", "content": "hello" },
                { "role": "user", "content": [
                    { "type": "text", "text": "hi", "cache_control": {} }, { "type": "text", "text": "[M] look" } ] },
                { "role": "system", "content": "[M] again" },
            ],
            "system": [{ "type": "text", "text": "be good" }],
            "tools": [{ "name": "bash" }],
        });
        let found: Vec<(String, bool, bool)> = blocks(&request, MARK)
            .into_iter()
            .map(|block| {
                (block.text.split(':').next().unwrap().to_owned(), block.is_marked, block.is_ours)
            })
            .collect();
        let expected = [
            ("tool", false, false),
            ("system", false, false),
            ("user", false, false),
            ("user", true, false),
            ("user", false, true),
            ("system", false, true),
        ];
        assert_eq!(found, expected.map(|(place, marked, ours)| (place.to_owned(), marked, ours)));
    }
}
