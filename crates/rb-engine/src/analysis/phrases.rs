//! Lists of words and phrases, all found in one pass over a lower-case text.
//!
//! A step is read for some hundred and thirty phrases, kept in a dozen lists by those who ask for them. A search a list would
//! be quicker where the machine does nothing else. Between two steps it does: it runs an agent, and finds nothing of ours
//! in its caches when it comes back. So what a search fetches counts for more than what it does, and all lists share one
//! small table (see `docs/decisions/0002-bit-for-bit.md`).
//!
//! **How.** A phrase is known by four of its bytes in a row, the rarest, and has a bucket, a bit. For each byte the table says
//! which buckets have it first, second, third and fourth; a place where all four agree is compared in full.

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
    /// For each byte the buckets that have it first, second, third and fourth.
    table: [[u64; KNOWN_BY]; 256],
    /// What each phrase is known by.
    marks: [Mark; COUNT],
    /// Each phrase with its list and its number there.
    all: [(&'static str, u8, u8); COUNT],
}

/// So many bytes tell whether a phrase may be here.
const KNOWN_BY: usize = 4;

/// What a phrase is known by: the bytes from its rarest on.
#[derive(Clone, Copy)]
struct Mark {
    /// Up to eight of them as one number.
    key: u64,
    /// Which bits of that number there are.
    bits: u64,
    /// How far into the phrase they begin.
    offset: usize,
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
        let mut table = [[0; KNOWN_BY]; 256];
        let mut marks = [Mark { key: 0, bits: 0, offset: 0 }; COUNT];
        let mut all = [("", 0, 0); COUNT];
        let (mut at, mut list) = (0, 0);
        while list < lists.len() {
            let mut phrase = 0;
            while phrase < lists[list].len() {
                let text = lists[list][phrase];
                marks[at] = Mark::of(text.as_bytes());
                marks[at].enter(&mut table, 1 << (at / Self::SHARED));
                all[at] = (text, small(list), small(phrase));
                (at, phrase) = (at + 1, phrase + 1);
            }
            list += 1;
        }
        Self { table, marks, all }
    }

    /// Calls back for every place where a phrase is; those of one phrase, and those that do not overlap, come in order.
    pub(crate) fn each(&self, lower: &str, mut found: impl FnMut(Hit)) {
        let text = lower.as_bytes();
        let mut scan = Scan::default();
        let (fours, rest) = text.as_chunks::<4>();
        for (at, four) in fours.iter().enumerate() {
            // One question for four places: mostly there is nothing.
            let open = four.map(|byte| scan.next(&self.table[usize::from(byte)]));
            if open[0] | open[1] | open[2] | open[3] != 0 {
                for (place, buckets) in open.into_iter().enumerate() {
                    self.compare(text, 4 * at + place, buckets, &mut found);
                }
            }
        }
        // A short phrase may end the text: what follows is as good as any byte.
        for (at, byte) in rest.iter().chain(&[0; KNOWN_BY - PHRASE_BYTES_MIN]).enumerate() {
            let buckets = scan.next(&self.table[usize::from(*byte)]);
            self.compare(text, text.len() - rest.len() + at, buckets, &mut found);
        }
    }

    /// Compares the phrases of some buckets, the marks of which may begin three bytes before `at`.
    #[inline]
    fn compare(&self, text: &[u8], at: usize, mut buckets: u64, found: &mut impl FnMut(Hit)) {
        if buckets == 0 {
            return;
        }
        let marked = at - (KNOWN_BY - 1);
        let rest = &text[marked..];
        let here =
            rest.first_chunk().map_or_else(|| number(rest).0, |eight| u64::from_le_bytes(*eight));
        while buckets != 0 {
            let first = buckets.trailing_zeros() as usize * Self::SHARED;
            buckets &= buckets - 1;
            for at in first..(first + Self::SHARED).min(COUNT) {
                let Mark { key, bits, offset } = self.marks[at];
                if here & bits == key
                    && let Some(start) = marked.checked_sub(offset)
                {
                    let (phrase, list, number) = self.all[at];
                    let end = start + phrase.len();
                    if text.get(start..end) == Some(phrase.as_bytes()) {
                        let (list, phrase) = (usize::from(list), usize::from(number));
                        found(Hit { list, phrase, start, end });
                    }
                }
            }
        }
    }
}

/// The buckets that are still open one, two and three bytes after the beginning of a mark.
#[derive(Default)]
struct Scan([u64; KNOWN_BY - 1]);

impl Scan {
    /// The buckets of which a mark may have begun three bytes ago.
    #[inline]
    fn next(&mut self, row: &[u64; KNOWN_BY]) -> u64 {
        let [one, two, three] = self.0;
        self.0 = [row[0], one & row[1], two & row[2]];
        three & row[3]
    }
}

/// A shorter phrase would be everywhere.
const PHRASE_BYTES_MIN: usize = 2;

impl Mark {
    const fn of(phrase: &[u8]) -> Self {
        assert!(phrase.len() >= PHRASE_BYTES_MIN, "the phrase is too short");
        let (mut offset, mut at) = (0, 1);
        while at + KNOWN_BY <= phrase.len() {
            if commonness(phrase, at) < commonness(phrase, offset) {
                offset = at;
            }
            at += 1;
        }
        let (_, marked) = phrase.split_at(offset);
        let (key, bits) = number(marked);
        Self { key, bits, offset }
    }

    /// Where the mark has fewer than four bytes, any byte will do.
    const fn enter(self, table: &mut [[u64; KNOWN_BY]; 256], bucket: u64) {
        let mut place = 0;
        while place < KNOWN_BY {
            let mut byte = 0;
            while byte < table.len() {
                let is_any = self.bits >> (8 * place) == 0;
                if is_any || self.key.to_le_bytes()[place] as usize == byte {
                    table[byte][place] |= bucket;
                }
                byte += 1;
            }
            place += 1;
        }
    }
}

/// How often the four bytes from here on are met, roughly.
const fn commonness(phrase: &[u8], from: usize) -> usize {
    const FROM_RARE_TO_COMMON: &[u8] = b"zqxjkvbpygfwmucldrhsnioate ";
    let (mut sum, mut at) = (0, from);
    while at < from + KNOWN_BY && at < phrase.len() {
        let mut rank = 0;
        while rank < FROM_RARE_TO_COMMON.len() && FROM_RARE_TO_COMMON[rank] != phrase[at] {
            rank += 1;
        }
        sum += rank % FROM_RARE_TO_COMMON.len(); // what is not in the list is rare
        at += 1;
    }
    sum
}

/// The first eight bytes as a number, and which bits of it there are.
const fn number(text: &[u8]) -> (u64, u64) {
    let (mut number, mut bits) = (0, 0);
    let mut at = 0;
    while at < text.len() && at < size_of::<u64>() {
        number |= (text[at] as u64) << (8 * at);
        bits |= 0xff << (8 * at);
        at += 1;
    }
    (number, bits)
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
        let mut hits = Vec::new();
        phrases.each(text, |hit| hits.push(hit));
        hits.sort_by_key(|hit| (hit.start, hit.list, hit.phrase));
        assert_eq!(hits, expected, "{text:?}");
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
