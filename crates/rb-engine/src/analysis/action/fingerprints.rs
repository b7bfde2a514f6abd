//! Fingerprints of an action at three levels of precision.

use std::fmt::Write as _;

use super::Kind;
use super::args::Args;
use super::effects::Effects;
use super::normalize::{Level, strip_into};
use crate::analysis::text;
use crate::step::Action;

/// Arguments with an explanation by the agent.
#[rustfmt::skip]
const EXPLANATIONS: [&str; 16] = [
    "description", "explanation", "thought", "thoughts", "reason", "reasoning", "rationale", "justification",
    "why", "intent", "purpose", "comment", "note", "security_risk", "toolsummary", "instructions",
];
/// Arguments that differ in every call and carry no meaning.
#[rustfmt::skip]
const VOLATILE: [&str; 10] = [
    "tool_call_id", "call_id", "request_id", "trace_id", "span_id", "timestamp", "nonce", "idempotency_key",
    "correlation_id", "message_id",
];
/// Arguments that limit a call without changing its purpose.
#[rustfmt::skip]
const LIMITS: [&str; 9] = [
    "timeout", "timeout_ms", "timeout_seconds", "yield_time_ms", "max_output_tokens", "max_tokens",
    "run_in_background", "is_background", "requires_approval",
];

/// The fingerprints of an action; see `ActionSummary`.
pub(super) struct Keys {
    pub(super) exact: u64,
    pub(super) loose: u64,
    pub(super) target: u64,
}

pub(super) fn of(
    action: &Action<'_>,
    args: &Args<'_>,
    kind: Kind,
    effects: &Effects,
    scratch: &mut String,
) -> Keys {
    let tool = action.tool;
    scratch.clear();
    scratch.push_str(tool);
    scratch.push('\u{1d}');
    let after_tool = scratch.len();
    args.canonical_into(scratch, Level::Lines, |key| is_one_of(key, &VOLATILE));
    let input = action.input.text();
    if input.len() > super::INPUT_BYTES_MAX {
        let rest = &input[input.floor_char_boundary(super::INPUT_BYTES_MAX)..];
        let _ = write!(scratch, "\u{1d}{:x}", text::fingerprint(rest));
    }
    let exact = text::fingerprint(scratch);

    scratch.truncate(after_tool);
    if effects.canonical.is_empty() {
        let skip = |key: &str| {
            is_one_of(key, &VOLATILE) || is_one_of(key, &EXPLANATIONS) || is_one_of(key, &LIMITS)
        };
        args.canonical_into(scratch, Level::Spacing, skip);
    } else {
        // Relative paths depend on the folder.
        scratch.push_str(&effects.base);
        scratch.push(';');
        strip_into(scratch, &effects.canonical, Level::Spacing);
    }
    let loose = text::fingerprint(scratch);
    Keys { exact, loose, target: target(kind, effects, scratch).unwrap_or(loose) }
}

/// Fingerprint of the kind and the files, query and test targets; `None` if there are none of these.
fn target(kind: Kind, effects: &Effects, scratch: &mut String) -> Option<u64> {
    scratch.clear();
    let _ = write!(scratch, "{kind:?}");
    let before = scratch.len();
    let mut add = |sort: char, name: &str| {
        scratch.push(sort);
        strip_into(scratch, name, Level::Spacing);
    };
    let files = if kind == Kind::Edit && !effects.writes.is_empty() {
        &effects.writes
    } else {
        &effects.reads
    };
    for file in files {
        add('\u{1d}', &file.path);
    }
    if let Some(query) = &effects.query {
        add('\u{1e}', query);
    }
    for target in &effects.targets {
        add('\u{1f}', target);
    }
    if scratch.len() == before {
        return None;
    }
    Some(text::fingerprint(scratch))
}

fn is_one_of(key: &str, names: &[&str]) -> bool {
    names.iter().any(|name| key.eq_ignore_ascii_case(name))
}
