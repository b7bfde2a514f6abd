//! Fingerprint of an imported run: its id if that is random, else its id and its beginning.
//!
//! A file may have grown when it is imported again, so only parts that do not change then are hashed.

use rb_wire::model::{Run, RunInput};
use sha2::{Digest as _, Sha256};

use super::ImportSource;

/// Maximum characters of an id, below 256 to leave room for the fingerprint.
const MAX_ID_CHARS: usize = 240;
/// An id with this many consecutive hexadecimal digits is random and therefore unique.
const UNIQUE_DIGITS: usize = 16;
/// Bytes of the fingerprint.
const HASH_BYTES: usize = 8;

/// Id of the run: its own, or the fallback.
pub(super) fn run_id(run: &Run<'_>, source: &ImportSource<'_>) -> String {
    let own = run.run_id.as_deref().map(clean).filter(|id| !id.is_empty());
    own.unwrap_or_else(|| clean(source.fallback_id))
}

/// Id of the run if another run has its id.
pub(super) fn qualified_id(run_id: &str, fingerprint: &str) -> String {
    format!("{run_id}~{}", fingerprint.get(..8).unwrap_or(fingerprint))
}

/// Removes control characters and truncates.
fn clean(id: &str) -> String {
    id.trim().chars().filter(|c| !c.is_control()).take(MAX_ID_CHARS).collect()
}

pub(super) fn fingerprint(run: &Run<'_>, source: &ImportSource<'_>) -> String {
    let run_id = run_id(run, source);
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    };
    add(source.format);
    add(&run_id);
    if !is_unique(&run_id) {
        for part in [&run.session_id, &run.parent_id, &run.dataset] {
            add(part.as_deref().unwrap_or_default());
        }
        match run.started_ms {
            Some(ms) => add(&ms.to_string()),
            None => beginning(run).into_iter().for_each(&mut add),
        }
    }
    hex::encode(&hash.finalize()[..HASH_BYTES])
}

/// Beginning of a run, for runs without a start time.
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

fn is_unique(id: &str) -> bool {
    let mut digits = 0;
    id.chars().any(|c| {
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
    fn random_ids_are_unique() {
        for id in ["0f3b6a52-9a3e-4f57-8d6e-0e8a9a3b1c11", "4bf92f3577b34da6a3ce929d0e0e4736/7"] {
            assert!(is_unique(id), "{id}");
        }
        for id in ["r1", "django__django-11099", "task-2026-11-16", ""] {
            assert!(!is_unique(id), "{id}");
        }
    }
}
