//! Whether two recordings are of one run: by its name where that can be no other's, else by how it begins.
//!
//! A file that is read again has grown at most, so what is looked at must not change when it grows.

use rb_wire::transcripts::{Run, RunInput};
use sha2::{Digest as _, Sha256};

use super::Origin;
use crate::auth;

/// Ids have at most 256 characters, and there must be room for what tells namesakes apart.
const NAME_CHARS_MAX: usize = 240;
/// A name with so many digits of a number in a row was drawn by chance: nobody else has it.
const UNIQUE_DIGITS: usize = 16;
/// Bytes of the hash that are kept.
const HASH_BYTES: usize = 8;

/// What the run is called, unless somebody else is called so.
pub(super) fn name(run: &Run<'_>, origin: &Origin<'_>) -> String {
    let own = run.run_id.as_deref().map(plain).filter(|name| !name.is_empty());
    own.unwrap_or_else(|| plain(origin.place))
}

/// What the run is called if somebody else has its name.
pub(super) fn full_name(name: &str, fingerprint: &str) -> String {
    format!("{name}~{}", fingerprint.get(..8).unwrap_or(fingerprint))
}

/// Ids go into addresses, lists and logs.
fn plain(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
}

pub(super) fn fingerprint(run: &Run<'_>, origin: &Origin<'_>) -> String {
    let name = name(run, origin);
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    };
    add(origin.format);
    add(&name);
    if !is_unique(&name) {
        for part in [&run.session_id, &run.parent_id, &run.dataset] {
            add(part.as_deref().unwrap_or_default());
        }
        match run.started_ms {
            Some(ms) => add(&ms.to_string()),
            None => beginning(run).into_iter().for_each(&mut add),
        }
    }
    auth::hex(&hash.finalize()[..HASH_BYTES])
}

/// How a run begins, where nothing says when.
fn beginning<'a>(run: &'a Run<'_>) -> [&'a str; 5] {
    let first = run.steps.first();
    let input = first.map_or("", |step| match &step.input {
        RunInput::None => "",
        RunInput::Text(text) | RunInput::Structured(text) => text,
    });
    [
        run.task.as_deref().unwrap_or_default(),
        run.agent.as_deref().unwrap_or_default(),
        first.map_or("", |step| &step.thought),
        first.map_or("", |step| &step.tool),
        input,
    ]
}

fn is_unique(name: &str) -> bool {
    let mut digits = 0;
    name.chars().any(|c| {
        match c {
            c if c.is_ascii_hexdigit() => digits += 1,
            '-' => {}
            _ => digits = 0,
        }
        digits >= UNIQUE_DIGITS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_drawn_by_chance_are_known() {
        for name in ["0f3b6a52-9a3e-4f57-8d6e-0e8a9a3b1c11", "4bf92f3577b34da6a3ce929d0e0e4736/7"] {
            assert!(is_unique(name), "{name}");
        }
        for name in ["r1", "django__django-11099", "task-2026-11-16", ""] {
            assert!(!is_unique(name), "{name}");
        }
    }
}
