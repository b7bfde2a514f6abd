//! Fingerprints of an act: exactly this, this but for decoration, about this.

use std::fmt::Write as _;

use super::Kind;
use super::args::Args;
use super::effects::Effects;
use super::normalize::{Level, strip_into};
use crate::analysis::text;
use crate::step::Action;

/// Arguments in which agents explain themselves.
const EXPLANATIONS: [&str; 16] = [
    "description",
    "explanation",
    "thought",
    "thoughts",
    "reason",
    "reasoning",
    "rationale",
    "justification",
    "why",
    "intent",
    "purpose",
    "comment",
    "note",
    "security_risk",
    "toolsummary",
    "instructions",
];
/// Arguments that differ from call to call and mean nothing.
const VOLATILE: [&str; 10] = [
    "tool_call_id",
    "call_id",
    "request_id",
    "trace_id",
    "span_id",
    "timestamp",
    "nonce",
    "idempotency_key",
    "correlation_id",
    "message_id",
];
/// Arguments that limit a call without changing what it is about.
const LIMITS: [&str; 9] = [
    "timeout",
    "timeout_ms",
    "timeout_seconds",
    "yield_time_ms",
    "max_output_tokens",
    "max_tokens",
    "run_in_background",
    "is_background",
    "requires_approval",
];

/// The three fingerprints.
pub(super) struct Keys {
    pub(super) exact: u64,
    pub(super) loose: u64,
    pub(super) target: u64,
}

pub(super) fn of(
    action: &Action<'_>,
    args: &Args<'_>,
    kind: Kind,
    parts: &Effects,
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
    if parts.canon.is_empty() {
        let skip = |key: &str| {
            is_one_of(key, &VOLATILE) || is_one_of(key, &EXPLANATIONS) || is_one_of(key, &LIMITS)
        };
        args.canonical_into(scratch, Level::Spacing, skip);
    } else {
        // The folder counts where paths are relative to it.
        scratch.push_str(&parts.base);
        scratch.push(';');
        strip_into(scratch, &parts.canon, Level::Spacing);
    }
    let loose = text::fingerprint(scratch);
    Keys { exact, loose, target: target(kind, parts, scratch).unwrap_or(loose) }
}

/// What the act is about; `None` when it names nothing.
fn target(kind: Kind, parts: &Effects, scratch: &mut String) -> Option<u64> {
    scratch.clear();
    let _ = write!(scratch, "{kind:?}");
    let before = scratch.len();
    let mut add = |sort: char, name: &str| {
        scratch.push(sort);
        strip_into(scratch, name, Level::Spacing);
    };
    let files =
        if kind == Kind::Edit && !parts.writes.is_empty() { &parts.writes } else { &parts.reads };
    for file in files {
        add('\u{1d}', &file.path);
    }
    if let Some(query) = &parts.query {
        add('\u{1e}', query);
    }
    for target in &parts.targets {
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
