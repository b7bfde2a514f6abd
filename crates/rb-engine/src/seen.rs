//! Whether something was seen before, in a fixed amount of memory.
//!
//! A Bloom filter of two generations: it never forgets what is recent, slowly forgets what is old, and mistakes
//! about one new thing in a hundred for a known one.

/// Bits of one generation.
const BITS: usize = 1 << 16;
/// A generation takes this many things, then the older one is dropped.
const THINGS_MAX: u32 = 5_000;

/// Remembers fingerprints. Allocates only when the first thing arrives.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeenOnce {
    young: Vec<u64>,
    old: Vec<u64>,
    things: u32,
}

impl SeenOnce {
    /// Whether the fingerprint was noted before.
    pub(crate) fn has(&self, print: u64) -> bool {
        self.holds(&places(print))
    }

    fn holds(&self, places: &[(usize, u64); 2]) -> bool {
        let all = |bits: &[u64]| {
            !bits.is_empty() && places.iter().all(|(word, bit)| bits[*word] & bit != 0)
        };
        all(&self.young) || all(&self.old)
    }

    /// Notes a fingerprint; tells whether it is new.
    pub(crate) fn is_new(&mut self, print: u64) -> bool {
        let places = places(print);
        let new = !self.holds(&places);
        if self.things >= THINGS_MAX {
            self.old = std::mem::take(&mut self.young);
            self.things = 0;
        }
        if self.young.is_empty() {
            self.young = vec![0; BITS / 64];
        }
        for (word, bit) in places {
            self.young[word] |= bit;
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
        if self.things.saturating_add(other.things) > THINGS_MAX || self.young.is_empty() {
            self.old = std::mem::replace(&mut self.young, other.young);
            self.things = other.things;
            return;
        }
        self.young.iter_mut().zip(&other.young).for_each(|(mine, given)| *mine |= given);
        self.things += other.things;
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        (self.young.capacity() + self.old.capacity()) * size_of::<u64>()
    }
}

/// A quick fingerprint of short texts; it only ever meets others of its kind.
pub(crate) fn print_of(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(PRINT_START, print_with)
}

const PRINT_START: u64 = 0xcbf2_9ce4_8422_2325;

fn print_with(print: u64, byte: u8) -> u64 {
    (print ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Calls back with a fingerprint of every name in a text: words of at least four characters, and shorter ones with
/// a digit. Plain words are among them; a run repeats those, so they tell nothing either way.
///
/// Every text of every step comes through here, so it is one pass with one look into a table for each byte.
pub(crate) fn each_name(text: &str, mut found: impl FnMut(u64)) {
    let (mut print, mut len, mut digits) = (PRINT_START, 0_usize, 0_usize);
    // A blank at the end closes the last word.
    text.bytes().chain([b' ']).for_each(|byte| {
        let small = IN_NAME[usize::from(byte)];
        if small != 0 {
            print = print_with(print, small);
            len += 1;
            digits += usize::from(byte.is_ascii_digit());
            return;
        }
        if len >= 3 && (len >= 4 || digits > 0) && digits < len {
            found(print);
        }
        (print, len, digits) = (PRINT_START, 0, 0);
    });
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

/// The two places of a fingerprint: word and bit.
fn places(print: u64) -> [(usize, u64); 2] {
    let mixed = print.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [mixed >> 48, (mixed >> 24) & 0xffff].map(|place| {
        let place = usize::try_from(place).unwrap_or(0) % BITS;
        (place / 64, 1 << (place % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_things_are_known_and_few_new_ones_are() {
        let mut seen = SeenOnce::default();
        assert!(!seen.has(7) && seen.is_new(7) && !seen.is_new(7) && seen.has(7));
        let mistaken =
            (0..4_000_u64).filter(|n| !seen.is_new(n.wrapping_mul(0x1234_5678_9abc_def1))).count();
        assert!(mistaken < 80, "{mistaken}");
    }

    #[test]
    fn one_takes_over_what_another_has_seen() {
        let (mut one, mut other) = (SeenOnce::default(), SeenOnce::default());
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
        let mut seen = SeenOnce::default();
        (0..100_000_u64).for_each(|n| {
            seen.is_new(n.wrapping_mul(0x1234_5678_9abc_def1));
        });
        assert_eq!(seen.heap_bytes(), 2 * BITS / 8);
        assert!(seen.has(99_999_u64.wrapping_mul(0x1234_5678_9abc_def1)));
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
            each_name(text, |name| found.push(name));
            let expected: Vec<u64> = names.iter().map(|name| print_of(name.bytes())).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
