//! Lists of words and phrases, all found in one pass over a lower-case text.
//!
//! A step is read for some hundred and fifty phrases, kept in a dozen lists by those who ask for them. A search a list would
//! be quicker where the machine does nothing else. Between two steps it does: it runs an agent, and finds nothing of ours
//! in its caches when it comes back. So what a search fetches counts for more than what it does, and all lists share one
//! small table (see `docs/decisions/0002-bit-for-bit.md`).
//!
//! **How.** Every phrase has a bucket, a bit. For each byte the table says which buckets have it first, second and third in
//! a phrase; a place where all three agree is compared in full.

/// As many as a word of the machine has bits.
const BUCKETS: usize = u64::BITS as usize;

/// What is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Which list, by its number.
    pub(crate) list: usize,
    /// Which of its phrases.
    pub(crate) phrase: usize,
    /// Where it begins.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
}

/// Lists of phrases that are looked for together. `COUNT` is how many phrases they have in all.
pub(crate) struct Phrases<const COUNT: usize> {
    /// For each byte the buckets that have it first, second and third.
    table: [[u64; 3]; 256],
    /// Each phrase with its list and its number there.
    phrases: [(&'static str, u8, u8); COUNT],
}

/// How many phrases there are.
pub(crate) const fn count_of(lists: &[&[&str]]) -> usize {
    let (mut count, mut list) = (0, 0);
    while list < lists.len() {
        count += lists[list].len();
        list += 1;
    }
    count
}

impl<const COUNT: usize> Phrases<COUNT> {
    /// So many phrases share a bucket.
    const SHARED: usize = COUNT.div_ceil(BUCKETS);

    /// The lists by their numbers. A phrase has at least two bytes.
    pub(crate) const fn of(lists: &[&[&'static str]]) -> Self {
        let mut table = [[0; 3]; 256];
        let mut phrases = [("", 0, 0); COUNT];
        let (mut at, mut list) = (0, 0);
        while list < lists.len() {
            let mut phrase = 0;
            while phrase < lists[list].len() {
                let text = lists[list][phrase];
                mark(&mut table, text.as_bytes(), 1 << (at / Self::SHARED));
                phrases[at] = (text, small(list), small(phrase));
                (at, phrase) = (at + 1, phrase + 1);
            }
            list += 1;
        }
        Self { table, phrases }
    }

    /// Every place where a phrase begins, in order.
    pub(crate) fn hits<'t>(&'t self, low: &'t str) -> impl Iterator<Item = Hit> + 't {
        let text = low.as_bytes();
        // A phrase of two bytes may end the text: what follows is as good as any byte.
        let mut bytes = text.iter().chain(&[0]).enumerate();
        let (mut one, mut two) = (0, 0);
        let (mut place, mut open) = (0, 0_u64);
        let mut shared = 0..0;
        std::iter::from_fn(move || {
            loop {
                for at in shared.by_ref() {
                    let (phrase, list, number) = self.phrases[at];
                    let end = place + phrase.len();
                    if text.get(place..end) == Some(phrase.as_bytes()) {
                        let (list, phrase) = (usize::from(list), usize::from(number));
                        return Some(Hit { list, phrase, start: place, end });
                    }
                }
                if open != 0 {
                    let first = open.trailing_zeros() as usize * Self::SHARED;
                    shared = first..(first + Self::SHARED).min(COUNT);
                    open &= open - 1;
                    continue;
                }
                let (at, buckets) = bytes.by_ref().find_map(|(at, byte)| {
                    let [first, second, third] = self.table[usize::from(*byte)];
                    let three = two & third;
                    (one, two) = (first, one & second);
                    (three != 0).then_some((at, three))
                })?;
                (place, open) = (at - 2, buckets);
            }
        })
    }
}

const fn mark(table: &mut [[u64; 3]; 256], text: &[u8], bucket: u64) {
    assert!(text.len() >= 2, "a phrase of one letter is everywhere");
    table[text[0] as usize][0] |= bucket;
    table[text[1] as usize][1] |= bucket;
    if text.len() > 2 {
        table[text[2] as usize][2] |= bucket;
        return;
    }
    let mut byte = 0;
    while byte < table.len() {
        table[byte][2] |= bucket;
        byte += 1;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked")]
const fn small(number: usize) -> u8 {
    assert!(number <= u8::MAX as usize, "too many lists, or too many phrases in one");
    number as u8
}

/// Whether one of a few words is in a text; for lists that are seldom asked for.
pub(crate) fn any_in(words: &[&str], text: &str) -> bool {
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FEW: &[&[&str]] = &[&["oh", "no wait", "wait", "i was", "oh no"], &["wait", "ait"], &[]];
    /// More than there are buckets.
    const MANY: &[&[&str]] = &[
        &[
            "aa", "ab", "ac", "ad", "ae", "af", "ba", "bb", "bc", "bd", "be", "bf", "ca", "cb",
            "cc", "cd", "ce", "cf", "da", "db", "dc", "dd", "de", "df", "ea", "eb", "ec", "ed",
            "ee", "ef", "fa", "fb", "fc", "fd", "fe", "ff",
        ],
        &[
            "aaa", "aba", "aca", "ada", "aea", "afa", "baa", "bba", "bca", "bda", "bea", "bfa",
            "caa", "cba", "cca", "cda", "cea", "cfa", "daa", "dba", "dca", "dda", "dea", "dfa",
            "eaa", "eba", "eca", "eda", "eea", "efa", "faa", "fba", "fca", "fda", "fea", "ffa",
        ],
    ];

    static IN_FEW: Phrases<{ count_of(FEW) }> = Phrases::of(FEW);
    static IN_MANY: Phrases<{ count_of(MANY) }> = Phrases::of(MANY);

    fn check<const COUNT: usize>(phrases: &Phrases<COUNT>, lists: &[&[&str]], text: &str) {
        let mut expected = Vec::new();
        for start in 0..text.len() {
            for (list, its) in lists.iter().enumerate() {
                for (phrase, word) in its.iter().enumerate() {
                    if text.as_bytes()[start..].starts_with(word.as_bytes()) {
                        expected.push(Hit { list, phrase, start, end: start + word.len() });
                    }
                }
            }
        }
        assert_eq!(phrases.hits(text).collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn phrases_are_found_anywhere_and_nowhere_else() {
        let long = format!("{}no wait{}", "x ".repeat(200), " y".repeat(200));
        let texts = [
            "",
            "o",
            "oh",
            "h",
            "cohort",
            "i await",
            "wai t",
            "éoh",
            "oh nowaitoh",
            "w\u{0}",
            "i w",
        ];
        for text in texts.into_iter().chain([long.as_str(), &long.replace("no wait", "no way")]) {
            check(&IN_FEW, FEW, text);
        }
    }

    proptest! {
        #[test]
        fn all_are_found_as_one_by_one(text in "[a-g]{0,40}", other in "(oh|no| |wait|a|i was|é){0,12}") {
            check(&IN_MANY, MANY, &text);
            check(&IN_FEW, FEW, &other);
        }
    }
}
