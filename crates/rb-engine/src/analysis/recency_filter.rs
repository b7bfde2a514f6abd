//! Whether something was seen before, in a fixed amount of memory.
//!
//! A Bloom filter of two generations: it never forgets what is recent, slowly forgets what is old, and mistakes
//! about one new thing in a hundred for a known one.

use std::borrow::Cow;

/// Bits of one generation.
const BITS: usize = 1 << 16;
/// A generation takes this many things, then the older one is dropped.
const GENERATION_CAPACITY: u32 = 5_000;

/// So many places are kept one by one, in a quarter of the memory; beyond, all bits are there.
const FEW_MAX: usize = 512;

/// Remembers fingerprints. Takes memory as it fills.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecencyFilter {
    young: Bits,
    old: Bits,
    things: u32,
}

impl RecencyFilter {
    /// Whether the fingerprint was noted before.
    pub(crate) fn has(&self, print: u64) -> bool {
        self.holds(places(print))
    }

    fn holds(&self, places: [u16; 2]) -> bool {
        self.young.has_all(places) || self.old.has_all(places)
    }

    /// Notes a fingerprint; tells whether it is new.
    pub(crate) fn is_new(&mut self, print: u64) -> bool {
        let places = places(print);
        if self.things < GENERATION_CAPACITY && self.young.has_all(places) {
            return false; // and there is nothing to note
        }
        let new = !self.holds(places);
        if self.things >= GENERATION_CAPACITY {
            self.old = std::mem::take(&mut self.young);
            self.things = 0;
        }
        for place in places {
            self.young.set(place);
        }
        self.things += u32::from(new);
        new
    }

    /// Notes all that another one has noted lately; the other is empty afterwards.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        let other = std::mem::take(other);
        if other.young.is_empty() {
            return;
        }
        if self.things.saturating_add(other.things) > GENERATION_CAPACITY || self.young.is_empty() {
            self.old = std::mem::replace(&mut self.young, other.young);
            self.things = other.things;
            return;
        }
        self.young.absorb(&other.young);
        self.things += other.things;
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.young.heap_bytes() + self.old.heap_bytes()
    }
}

/// The bits of one generation.
#[derive(Debug, Clone)]
enum Bits {
    /// The places of those that are set.
    Few(Places),
    All(Box<[u64]>),
}

impl Default for Bits {
    fn default() -> Self {
        Self::Few(Places::default())
    }
}

impl Bits {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Few(places) if places.count == 0)
    }

    fn has_all(&self, all: [u16; 2]) -> bool {
        all.into_iter().all(|place| match self {
            Self::Few(places) => places.has(place),
            Self::All(words) => {
                let (word, bit) = word_and_bit(place);
                words[word] & bit != 0
            }
        })
    }

    fn set(&mut self, place: u16) {
        match self {
            Self::Few(places) => {
                places.insert(place);
                if places.count > FEW_MAX {
                    *self = Self::All(self.words());
                }
            }
            Self::All(words) => {
                let (word, bit) = word_and_bit(place);
                words[word] |= bit;
            }
        }
    }

    fn absorb(&mut self, other: &Self) {
        match (&mut *self, other) {
            (_, Self::Few(places)) => {
                for place in places.iter() {
                    self.set(place);
                }
            }
            (Self::All(mine), Self::All(given)) => {
                mine.iter_mut().zip(given).for_each(|(mine, given)| *mine |= given);
            }
            (Self::Few(places), Self::All(given)) => {
                let mut all = Self::All(given.clone());
                for place in places.iter() {
                    all.set(place);
                }
                *self = all;
            }
        }
    }

    fn words(&self) -> Box<[u64]> {
        match self {
            Self::Few(places) => {
                let mut words = vec![0; BITS / 64].into_boxed_slice();
                for place in places.iter() {
                    let (word, bit) = word_and_bit(place);
                    words[word] |= bit;
                }
                words
            }
            Self::All(words) => words.clone(),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Few(places) => places.slots.capacity() * size_of::<u16>(),
            Self::All(words) => size_of_val(&**words),
        }
    }
}

/// A few places, each near the slot that its own bits name: they are as good as random already.
#[derive(Debug, Clone, Default)]
struct Places {
    /// A power of two of slots, at most half of them taken; 0 is a free one.
    slots: Vec<u16>,
    /// Whether place 0 is among them.
    zero: bool,
    count: usize,
}

impl Places {
    fn has(&self, place: u16) -> bool {
        if place == 0 {
            return self.zero;
        }
        !self.slots.is_empty() && self.slots[self.slot(place)] == place
    }

    fn insert(&mut self, place: u16) {
        if self.has(place) {
            return;
        }
        self.count += 1;
        if place == 0 {
            self.zero = true;
            return;
        }
        if self.count * 2 > self.slots.len() {
            let wider = vec![0; (self.slots.len() * 2).max(16)];
            for old in std::mem::replace(&mut self.slots, wider) {
                if old != 0 {
                    let slot = self.slot(old);
                    self.slots[slot] = old;
                }
            }
        }
        let slot = self.slot(place);
        self.slots[slot] = place;
    }

    /// Where the place is, or would be. There is always a free slot, so this ends.
    fn slot(&self, place: u16) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = usize::from(place) & last;
        while self.slots[slot] != 0 && self.slots[slot] != place {
            slot = (slot + 1) & last;
        }
        slot
    }

    fn iter(&self) -> impl Iterator<Item = u16> {
        let zero = self.zero.then_some(0);
        self.slots.iter().copied().filter(|place| *place != 0).chain(zero)
    }
}

fn word_and_bit(place: u16) -> (usize, u64) {
    (usize::from(place) / 64, 1 << (place % 64))
}

/// A quick fingerprint of short texts; it only ever meets others of its kind.
pub(crate) fn print_of(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(PRINT_START, print_with)
}

const PRINT_START: u64 = 0xcbf2_9ce4_8422_2325;

fn print_with(print: u64, byte: u8) -> u64 {
    (print ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// A name in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    /// Its fingerprint, whatever the case of its letters.
    pub(crate) print: u64,
    /// The bytes of the text in which it stands.
    pub(crate) starts_at: usize,
    pub(crate) ends_at: usize,
    /// There is a digit in it.
    pub(crate) has_digit: bool,
}

/// Calls back with every name in a text: words of at least four characters, and shorter ones with a digit. Plain words are
/// among them; a run repeats those, so they tell nothing either way.
///
/// Every text of every step comes through here, so it is one pass with one look into a table for each byte.
pub(crate) fn each_name(text: &str, mut found: impl FnMut(Name)) {
    let (mut print, mut starts_at, mut digits) = (PRINT_START, 0_usize, 0_usize);
    // A blank at the end closes the last word.
    text.bytes().chain([b' ']).enumerate().for_each(|(at, byte)| {
        let small = IN_NAME[usize::from(byte)];
        if small != 0 {
            print = print_with(print, small);
            digits += usize::from(byte.is_ascii_digit());
            return;
        }
        let len = at - starts_at;
        if len >= 3 && (len >= 4 || digits > 0) && digits < len {
            found(Name { print, starts_at, ends_at: at, has_digit: digits > 0 });
        }
        (print, starts_at, digits) = (PRINT_START, at + 1, 0);
    });
}

/// The names of the beginning of a text, out of all of its names. The last one may be cut off, which makes it another.
pub(crate) fn names_within<'n>(names: &'n [Name], beginning: &str) -> Cow<'n, [Name]> {
    let whole = names.partition_point(|name| name.ends_at <= beginning.len());
    let (within, rest) = names.split_at(whole);
    let Some(cut) = rest.first().and_then(|name| beginning.get(name.starts_at..)) else {
        return within.into();
    };
    let mut within = within.to_vec();
    let before = beginning.len() - cut.len();
    each_name(cut, |name| {
        let (starts_at, ends_at) = (before + name.starts_at, before + name.ends_at);
        within.push(Name { starts_at, ends_at, ..name });
    });
    within.into()
}

/// Bytes of names in lower case, and 0 for all others. Bytes beyond ASCII belong to words: no need to look closer.
const IN_NAME: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// The two places of a fingerprint.
fn places(print: u64) -> [u16; 2] {
    let mixed = print.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [mixed >> 48, (mixed >> 24) & 0xffff].map(|place| u16::try_from(place).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_things_are_known_and_few_new_ones_are() {
        let mut seen = RecencyFilter::default();
        assert!(!seen.has(7) && seen.is_new(7) && !seen.is_new(7) && seen.has(7));
        let mistaken =
            (0..4_000_u64).filter(|n| !seen.is_new(n.wrapping_mul(0x1234_5678_9abc_def1))).count();
        assert!(mistaken < 80, "{mistaken}");
    }

    #[test]
    fn few_bits_are_the_same_bits() {
        let spread = |n: u64| places(n.wrapping_mul(0x1234_5678_9abc_def1));
        let filled = |range: std::ops::Range<u64>| {
            let mut bits = Bits::default();
            range.flat_map(spread).for_each(|place| bits.set(place));
            bits
        };
        for (mine, given) in
            [(0..10, 5..20), (0..10, 0..600), (0..600, 590..620), (0..400, 300..900)]
        {
            let (mut bits, other) = (filled(mine.clone()), filled(given.clone()));
            bits.absorb(&other);
            let expected = filled(mine.start..given.end.max(mine.end));
            assert_eq!(bits.words(), expected.words(), "{mine:?} {given:?}");
            assert!(bits.has_all(spread(mine.start)) && bits.has_all(spread(given.start)));
        }
        assert!(filled(0..100).heap_bytes() <= 1_024, "a few take little");
        assert!(matches!(filled(0..1_000), Bits::All(_)));
    }

    #[test]
    fn places_that_want_the_same_slot_are_all_found() {
        let alike = [0, 1, u16::MAX, 1 << 12, 1 << 13, 3 << 12, 1 << 14, 1 << 15];
        let mut few = Places::default();
        for (at, place) in alike.into_iter().enumerate() {
            assert!(!few.has(place));
            few.insert(place);
            few.insert(place);
            assert_eq!(few.count, at + 1);
        }
        let mut found: Vec<u16> = few.iter().collect();
        found.sort_unstable();
        let mut expected = alike;
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(alike.iter().all(|place| few.has(*place)) && !few.has(2));
    }

    #[test]
    fn one_takes_over_what_another_has_seen() {
        let (mut one, mut other) = (RecencyFilter::default(), RecencyFilter::default());
        one.is_new(7);
        other.is_new(8);
        one.absorb(&mut other);
        assert!(one.has(7) && one.has(8) && !other.has(8));
        // A full one forgets its own oldest, not what it takes over.
        (0..5_000_u64).for_each(|n| {
            other.is_new(n.wrapping_mul(0x1234_5678_9abc_def1));
        });
        one.absorb(&mut other);
        assert!(one.has(7) && one.has(4_999_u64.wrapping_mul(0x1234_5678_9abc_def1)));
    }

    #[test]
    fn memory_is_bounded_and_the_old_is_forgotten() {
        let mut seen = RecencyFilter::default();
        (0..100_000_u64).for_each(|n| {
            seen.is_new(n.wrapping_mul(0x1234_5678_9abc_def1));
        });
        assert_eq!(seen.heap_bytes(), 2 * BITS / 8);
        assert!(seen.has(99_999_u64.wrapping_mul(0x1234_5678_9abc_def1)));
    }

    #[test]
    fn a_beginning_has_the_names_that_are_in_it() {
        let names_of = |text: &str| {
            let mut names = Vec::new();
            each_name(text, |name| names.push(name));
            names
        };
        let text = "ab1 12345 Word, get_user(größe) 12x34 last";
        let names = names_of(text);
        for len in (0..=text.len()).filter(|len| text.is_char_boundary(*len)) {
            let beginning = &text[..len];
            assert_eq!(*names_within(&names, beginning), names_of(beginning), "{beginning}");
        }
    }

    #[test]
    fn names_are_long_enough_and_not_numbers() {
        let cases: [(&str, &[&str]); 6] = [
            ("", &[]),
            ("a bc def", &[]),
            ("ab1 12345 Word", &["ab1", "word"]),
            ("get_user(a, Größe)", &["get_user", "größe"]),
            ("x\0long_name\nend.", &["long_name"]),
            ("last", &["last"]),
        ];
        for (text, names) in cases {
            let mut found = Vec::new();
            each_name(text, |name| {
                assert_eq!(
                    print_of(text[name.starts_at..name.ends_at].to_lowercase().bytes()),
                    name.print
                );
                found.push(name.print);
            });
            let expected: Vec<u64> = names.iter().map(|name| print_of(name.bytes())).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
