//! Short descriptions of an action for embedding, and the entities it mentions.

use super::Kind;
use super::args::Args;
use super::effects::Effects;
use super::file_refs::looks_like_path;
use super::tools;
use crate::analysis::text::{self, byte_table};
use crate::step::Action;

/// Maximum length of a description.
const MEANING_CHARS_MAX: usize = 300;
/// Maximum number of entities.
const ENTITIES_MAX: usize = 16;
/// Maximum length of an entity.
const ENTITY_BYTES_MAX: usize = 80;
/// Bytes of the argument and of the thought that are searched for entities.
const LOOKED_AT_BYTES: usize = 600;

/// Returns a short description of the action.
pub(super) fn meaning(
    action: &Action<'_>,
    args: &Args<'_>,
    kind: Kind,
    effects: &Effects,
) -> String {
    let mut out = String::with_capacity(96);
    out.push_str(match kind {
        Kind::Edit => "edit",
        Kind::Test => "test",
        Kind::Search => "search",
        Kind::Read => "read",
        Kind::Poll => "wait for",
        Kind::Finish => "finish",
        Kind::Think => "think",
        Kind::Message => "say",
        Kind::Change | Kind::Run => "",
    });
    let files = if kind == Kind::Edit { &effects.writes } else { &effects.reads };
    let names_something =
        effects.query.is_some() || !effects.targets.is_empty() || !files.is_empty();
    let shell = !effects.canonical.is_empty();
    if matches!(kind, Kind::Change | Kind::Run) && !shell {
        out.push_str(&tools::words(action.tool).join(" "));
    }
    if !names_something {
        match args.plain() {
            _ if shell => add(
                &mut out,
                text::prefix(&effects.canonical, MEANING_CHARS_MAX).trim_end_matches([';', '|']),
            ),
            Some(plain) => add(&mut out, text::prefix(plain, MEANING_CHARS_MAX)),
            None => {
                for (_, value) in args.pairs().filter(|(_, value)| *value != "null").take(8) {
                    add(&mut out, text::prefix(value, MEANING_CHARS_MAX));
                }
            }
        }
        return short(&out);
    }
    if matches!(kind, Kind::Run | Kind::Poll | Kind::Change) {
        for command in effects.commands.iter().take(4) {
            add(&mut out, command);
        }
    }
    if let Some(query) = &effects.query {
        add(&mut out, query);
    }
    if kind != Kind::Edit {
        for target in effects.targets.iter().take(6) {
            add(&mut out, target);
        }
    }
    for file in files.iter().take(6) {
        add(&mut out, &file.path);
    }
    short(&out)
}

fn add(out: &mut String, words: &str) {
    if out.len() > 4 * MEANING_CHARS_MAX {
        return;
    }
    if !out.is_empty() {
        out.push(' ');
    }
    out.push_str(words);
}

/// Joins the text into one line of at most [`MEANING_CHARS_MAX`] characters.
pub(super) fn short(said: &str) -> String {
    let said = text::prefix(said.trim_start(), 2 * MEANING_CHARS_MAX);
    let mut line = String::with_capacity(said.len().min(MEANING_CHARS_MAX));
    for word in said.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text::prefix(&line, MEANING_CHARS_MAX).to_owned()
}

/// Returns the entities in the argument, then those in the thought: identifiers, paths, codes.
pub(crate) fn entities<'t>(input: &'t str, thought: &'t str) -> Vec<&'t str> {
    let mut found = Vec::with_capacity(ENTITIES_MAX);
    for source in [input, thought] {
        let source = &source[..source.floor_char_boundary(LOOKED_AT_BYTES)];
        let (mut start, mut seen, mut before) = (0, 0_u8, 0_u8);
        for (at, byte) in source.bytes().chain([b' ']).enumerate() {
            let class = CLASS[usize::from(byte)];
            if class != END {
                // A capital after a lower-case letter, as in `userName`.
                seen |= class | if before == SMALL && class == CAPITAL { HUMP } else { 0 };
                before = class;
                continue;
            }
            // Ordinary words have none of these.
            if seen & (HUMP | JOIN | PATH) != 0 || seen & (DIGIT | CAPITAL) == DIGIT | CAPITAL {
                let word = source.get(start..at).unwrap_or("");
                let word = word.trim_matches(['.', ':', '-', '#', '@', '%', '+', '~']);
                if is_entity(word, seen) && !found.contains(&word) {
                    found.push(word);
                    if found.len() >= ENTITIES_MAX {
                        return found;
                    }
                }
            }
            (start, seen, before) = (at + 1, 0, 0);
        }
    }
    found
}

const SMALL: u8 = 1;
const CAPITAL: u8 = 2;
const DIGIT: u8 = 4;
const JOIN: u8 = 8;
const PATH: u8 = 16;
const HUMP: u8 = 32;
const OTHER: u8 = 64;
/// Ends an entity.
const END: u8 = 128;

/// Class of each byte.
#[rustfmt::skip]
static CLASS: [u8; 256] = byte_table!(OTHER, |byte| match byte {
    b'a'..=b'z' => SMALL,
    b'A'..=b'Z' => CAPITAL,
    b'0'..=b'9' => DIGIT,
    b'_' => JOIN,
    b'/' | b'.' => PATH,
    0..=b' ' | b'"' | b'\'' | b'`' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b',' | b';' | b'='
    | b'|' | b'&' | b'*' | b'!' | b'?' | b'\\' | b'$' | b'^' => END,
    _ => OTHER,
});

/// Reports whether a word is an identifier, a path or a code rather than an ordinary word.
fn is_entity(word: &str, seen: u8) -> bool {
    if word.len() < 3 || word.len() > ENTITY_BYTES_MAX || seen & (SMALL | CAPITAL) == 0 {
        return false;
    }
    // `e.g` ends like a file name, so a path must be longer.
    let named = || looks_like_path(word) && (word.contains('/') || word.len() > 3);
    seen & (HUMP | JOIN) != 0 || seen & (DIGIT | CAPITAL) == DIGIT | CAPITAL || named()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_distinguished_from_words() {
        let found = entities(
            "grep -rn \"get_user\" src/app/models.py",
            "The `UserModel` of HAT052 is in a.b; maybe e.g. this. See utils.py",
        );
        assert_eq!(found, ["get_user", "src/app/models.py", "UserModel", "HAT052", "utils.py"]);
        assert!(entities(&"a_b1 ".repeat(500), "").len() == 1);
    }

    #[test]
    fn descriptions_are_one_short_line() {
        assert_eq!(short(&"ä b ".repeat(1_000)).chars().count(), MEANING_CHARS_MAX);
        assert_eq!(short("  a\n b "), "a b");
    }
}
