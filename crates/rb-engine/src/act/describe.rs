//! Short texts about an act: what it means, for embedding, and the names it mentions.

use super::Kind;
use super::args::Args;
use super::files::looks_like_path;
use super::parts::Parts;
use super::tools;
use crate::step::Action;
use crate::text;

/// The longest text about an act.
const MEANING_CHARS_MAX: usize = 300;
/// Names beyond this many are not kept.
const ENTITIES_MAX: usize = 16;
/// Longer names are none.
const ENTITY_BYTES_MAX: usize = 80;
/// Names are looked for this far into the argument, and this far into the thought.
const LOOKED_AT_BYTES: usize = 1_500;

/// What the act is about, in a few words.
pub(super) fn meaning(action: &Action<'_>, args: &Args<'_>, kind: Kind, parts: &Parts) -> String {
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
    if matches!(kind, Kind::Change | Kind::Run) && parts.commands.is_empty() {
        out.push_str(&tools::words(action.tool).join(" "));
    }
    if matches!(kind, Kind::Run | Kind::Poll | Kind::Change) {
        parts.commands.iter().take(4).for_each(|command| add(&mut out, command));
    }
    parts.query.iter().for_each(|query| add(&mut out, query));
    parts.targets.iter().take(6).for_each(|target| add(&mut out, target));
    let files = if kind == Kind::Edit { &parts.writes } else { &parts.reads };
    files.iter().take(6).for_each(|file| add(&mut out, &file.path));
    let named_nothing = parts.query.is_none() && parts.targets.is_empty() && files.is_empty();
    if named_nothing {
        match args.plain() {
            Some(plain) => add(&mut out, text::head(plain, MEANING_CHARS_MAX)),
            None => {
                for (_, value) in args.pairs().filter(|(_, value)| *value != "null").take(8) {
                    add(&mut out, text::head(value, MEANING_CHARS_MAX));
                }
            }
        }
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

/// One line of at most [`MEANING_CHARS_MAX`] characters.
pub(super) fn short(said: &str) -> String {
    let said = text::head(said.trim_start(), 2 * MEANING_CHARS_MAX);
    let mut line = String::with_capacity(said.len().min(MEANING_CHARS_MAX));
    for word in said.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text::head(&line, MEANING_CHARS_MAX).to_owned()
}

/// Names in the argument, then names in the thought.
pub(super) fn entities(input: &str, thought: &str) -> Vec<String> {
    let mut found = Vec::new();
    for source in [input, thought] {
        let source = &source[..source.floor_char_boundary(LOOKED_AT_BYTES)];
        for word in
            source.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;=|&*!?\\".contains(c))
        {
            if found.len() >= ENTITIES_MAX {
                return found;
            }
            let word = word.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_' || c == '/'));
            if is_entity(word) && !found.iter().any(|known| known == word) {
                found.push(word.to_owned());
            }
        }
    }
    found
}

/// An identifier, a path or a code: something somebody gave a name, not a word of a language.
fn is_entity(word: &str) -> bool {
    let bytes = word.as_bytes();
    if bytes.len() < 3
        || bytes.len() > ENTITY_BYTES_MAX
        || !bytes.iter().any(u8::is_ascii_alphabetic)
    {
        return false;
    }
    let inner = bytes.get(1..bytes.len() - 1).unwrap_or(&[]);
    let humps = bytes.windows(2).any(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase());
    let mixed = bytes.iter().any(u8::is_ascii_digit) && bytes.iter().any(u8::is_ascii_uppercase);
    // `e.g` ends like a file name; a name has more to it.
    let named = looks_like_path(word) && (word.contains('/') || bytes.len() > 3);
    humps || mixed || named || inner.contains(&b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_words() {
        let found = entities(
            "grep -rn \"get_user\" src/app/models.py",
            "The `UserModel` of HAT052 is in a.b; maybe e.g. this. See utils.py",
        );
        assert_eq!(found, ["get_user", "src/app/models.py", "UserModel", "HAT052", "utils.py"]);
        assert!(entities(&"a_b1 ".repeat(500), "").len() == 1);
    }

    #[test]
    fn texts_are_short() {
        assert_eq!(short(&"ä b ".repeat(1_000)).chars().count(), MEANING_CHARS_MAX);
        assert_eq!(short("  a\n b "), "a b");
    }
}
