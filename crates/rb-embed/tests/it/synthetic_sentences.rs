//! Synthetic sentences distributed like agent thoughts: many topics, many sentences per topic, few phrases.

/// Phrases that occur with every topic.
const PHRASES: [&str; 16] = [
    "the test fails again with",
    "let me look at",
    "I will try to change",
    "the error says that",
    "it still does not work because of",
    "now run it once more for",
    "there is no such file in",
    "the build stops at",
    "check whether we need",
    "this was already done for",
    "the request times out in",
    "I should verify",
    "the output is the same as before for",
    "maybe the problem is in",
    "read the documentation of",
    "revert the change of",
];

/// Number of words per topic.
const WORDS_PER_TOPIC: u64 = 10;
/// Number of sentences per topic.
const SENTENCES_PER_TOPIC: u64 = 40;

/// Deterministic generator: the same number gives the same sentence.
pub(crate) struct Sentences {
    words: Vec<&'static str>,
}

impl Sentences {
    pub(crate) fn new() -> Self {
        let all = include_str!("../../assets/vocab.txt").lines();
        let is_word =
            |piece: &&str| piece.len() > 2 && piece.bytes().all(|b| b.is_ascii_lowercase());
        Self { words: all.filter(is_word).collect() }
    }

    pub(crate) fn sentence(&self, number: u64) -> String {
        self.about(number / SENTENCES_PER_TOPIC, number)
    }

    /// Returns a sentence about the same topic that is not among the numbered ones.
    pub(crate) fn rewording(&self, number: u64) -> String {
        self.about(number / SENTENCES_PER_TOPIC, !number)
    }

    fn about(&self, topic: u64, seed: u64) -> String {
        let mut rng = Rng(mix(seed));
        let mut sentence = PHRASES[rng.below(16)].to_owned();
        for _ in 0..3 + rng.below(4) {
            sentence.push(' ');
            sentence.push_str(self.word(topic, rng.next() % WORDS_PER_TOPIC));
        }
        if rng.below(2) == 0 {
            sentence.push_str(", ");
            sentence.push_str(PHRASES[rng.below(16)]);
            sentence.push(' ');
            sentence.push_str(self.word(topic, rng.next() % WORDS_PER_TOPIC));
        }
        sentence
    }

    /// Words at the start of the vocabulary occur in more topics than those at its end.
    fn word(&self, topic: u64, number: u64) -> &'static str {
        let mut rng = Rng(mix(topic * WORDS_PER_TOPIC + number));
        let within = 1 + rng.below(self.words.len());
        self.words[rng.below(within)]
    }
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap_or_default()
    }
}

/// Mixes the bits of a seed.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) | 1
}
