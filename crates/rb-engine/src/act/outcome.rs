//! How a step came out: whether it failed and why, what its tests say, and whether the answer is new.
//!
//! Evidence is weighed in this order: a test summary, the exit code, then the text. The text is asked
//! only as far as the act allows: what a file *says* is no failure of reading it, so for reads and
//! searches only the beginning of a short answer counts.

use super::Kind;
use super::args::Args;
use super::failure::{self, Report};
use super::summary::{self, TestResult};
use super::volatile::{self, Level};
use crate::step::Step;
use crate::text;

/// The text of an answer is looked at this far from either end.
const WINDOW_BYTES: usize = 4 * 1024;
/// The fingerprint of an answer covers this much from its beginning, and a quarter of it from its end.
const PRINT_BYTES: usize = 48 * 1024;
/// An answer of a tool that is longer than this is content, not a refusal.
const REFUSAL_BYTES_MAX: usize = 1_000;
/// What is kept of the line that names the error.
const SIGNATURE_CHARS_MAX: usize = 160;

/// What told us that a step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The host marked the step.
    Host,
    /// A test summary with failures.
    Tests,
    /// An exit code other than zero.
    ExitCode,
    /// The text reports an error.
    Text,
    /// The answer is a structure that says so (`"error": …`, `"ok": false`, a status of 400 or more).
    Structure,
}

/// How a step came out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The step did not do what it was meant to do.
    pub failed: bool,
    /// What told us so; `None` when it did not fail.
    pub why: Option<Why>,
    /// There is positive evidence of success: exit code zero, or tests that pass.
    pub succeeded: bool,
    /// The exit code the answer states.
    pub exit_code: Option<i32>,
    /// What the tests say, when a summary was recognised.
    pub tests: Option<TestResult>,
    /// Fingerprint of the error, its numbers and ids taken away; equal for the same error again.
    pub signature: Option<u64>,
    /// Fingerprint of the error without its quoted values; equal for the same sort of error about something else.
    pub signature_class: Option<u64>,
    /// The line that names the error, short; empty when there is none.
    pub signature_text: String,
    /// Fingerprint of the answer, its volatile parts taken away; equal when the answer tells nothing new.
    pub result_key: u64,
    /// Nothing came back.
    pub is_empty: bool,
}

impl Outcome {
    /// Reads the answer of a step that was an act of `kind`; `asks` tells whether it only looked for something.
    pub(super) fn of(step: &Step<'_>, kind: Kind, scratch: &mut String) -> Self {
        let answer = step.observation;
        let (head, tail) = windows(answer);
        let (head, tail) = (volatile::without_escapes(head), volatile::without_escapes(tail));
        let lines = || head.lines().chain(tail.lines());
        let is_empty = lines().all(is_wrapper);
        let exit_code = if answer.is_empty() { None } else { failure::exit_code(answer) };
        let runs =
            !matches!(kind, Kind::Read | Kind::Search | Kind::Message | Kind::Think | Kind::Finish);
        let tests = if runs { summary::find(lines()) } else { None };

        // A search that finds nothing exits with 1 and says nothing: an answer, not a failure.
        let found_nothing =
            kind == Kind::Search && is_empty && exit_code.is_none_or(|code| code == 1);
        let why = if found_nothing {
            None
        } else if tests.is_some_and(|tests| tests.failed > 0) {
            Some(Why::Tests)
        } else if exit_code.is_some_and(|code| code != 0) {
            Some(Why::ExitCode)
        } else if step.is_error {
            Some(Why::Host)
        } else {
            from_text(kind, answer, &head, &tail, exit_code)
        };

        let mut outcome = Self {
            failed: why.is_some(),
            why,
            succeeded: why.is_none()
                && (exit_code == Some(0) || tests.is_some_and(TestResult::is_green)),
            exit_code,
            tests,
            result_key: result_key(answer, scratch),
            is_empty,
            ..Self::default()
        };
        if outcome.failed
            && let Some(line) = essential_line(&head, &tail, runs)
        {
            let line = text::head(line, 4 * SIGNATURE_CHARS_MAX);
            outcome.signature_class = Some(volatile::fingerprint(scratch, line, Level::Class));
            outcome.signature = Some(volatile::fingerprint(scratch, line, Level::Error));
            text::head(line, SIGNATURE_CHARS_MAX).clone_into(&mut outcome.signature_text);
        }
        outcome
    }
}

/// The beginning and the end of an answer, without a gap or an overlap when it is short.
fn windows(answer: &str) -> (&str, &str) {
    if answer.len() <= 2 * WINDOW_BYTES {
        return (answer, "");
    }
    let head = answer.floor_char_boundary(WINDOW_BYTES);
    let tail = answer.ceil_char_boundary(answer.len() - WINDOW_BYTES);
    (&answer[..head], &answer[tail..])
}

fn result_key(answer: &str, scratch: &mut String) -> u64 {
    if answer.len() <= PRINT_BYTES {
        return volatile::fingerprint(scratch, answer, Level::Answer);
    }
    scratch.clear();
    let head = answer.floor_char_boundary(PRINT_BYTES);
    let tail = answer.ceil_char_boundary(answer.len().saturating_sub(PRINT_BYTES / 4)).max(head);
    volatile::strip_into(scratch, &answer[..head], Level::Answer);
    volatile::strip_into(scratch, &answer[tail..], Level::Answer);
    text::fingerprint(scratch)
}

/// Lines that hosts put around an answer, and blank ones.
fn is_wrapper(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || line.starts_with("<returncode>")
        || matches!(
            line,
            "<output>"
                | "</output>"
                | "(no output)"
                | "Exit code: 0"
                | "Exit code: 1"
                | "Code output:"
                | "None"
                | "null"
                | "No output"
                | "<stdout>"
                | "</stdout>"
                | "[]"
                | "{}"
                | "Execution logs:"
        )
        || (line.starts_with("exitcode: ") && line.ends_with(')'))
        || line.starts_with("Your command ran successfully and did not produce any output")
        || line.starts_with("Tool ran without output")
        || line.starts_with("[The command completed with exit code")
}

/// What the text says, as far as this kind of act lets it speak.
fn from_text(
    kind: Kind,
    answer: &str,
    head: &str,
    tail: &str,
    exit_code: Option<i32>,
) -> Option<Why> {
    if answer.is_empty() || matches!(kind, Kind::Message | Kind::Think | Kind::Finish) {
        return None;
    }
    let first = head.lines().map(failure::bare).find(|line| !is_wrapper(line)).unwrap_or("");
    if first.starts_with('{') {
        if let Some(said) = structure_fails(head) {
            return said.then_some(Why::Structure);
        }
    }
    let short = answer.len() <= REFUSAL_BYTES_MAX;
    let looks = matches!(kind, Kind::Read | Kind::Search | Kind::Poll);
    if exit_code == Some(0) && looks {
        return None;
    }
    if looks {
        // A file may be full of errors; the complaint about the file is all there is.
        let lines = head.lines().filter(|line| !is_wrapper(line)).count();
        let complains = failure::is_refusal(first)
            || matches!(failure::report(first), Some(Report::Program | Report::Exception));
        return (short && lines <= 4 && complains).then_some(Why::Text);
    }
    if exit_code != Some(0) && short && failure::is_refusal(first) {
        return Some(Why::Text);
    }
    // With exit code zero a later command may have succeeded after one that broke off: only
    // what cannot be a mere mention counts, which is a traceback that reached its end.
    let strict = exit_code == Some(0);
    let all = || head.lines().chain(tail.lines());
    if all().any(|line| failure::bare(line).starts_with("Traceback (most recent call last)"))
        && ends_with_exception(if tail.is_empty() { head } else { tail })
    {
        return Some(Why::Text);
    }
    let reports = |line: &str| matches!(failure::report(line), Some(found) if !strict || found == Report::Compiler);
    let quiet = strict && !matches!(kind, Kind::Test | Kind::Run);
    (!quiet && all().any(reports)).then_some(Why::Text)
}

/// The last lines name an exception: the traceback ended the program.
fn ends_with_exception(text: &str) -> bool {
    let last = text.lines().rev().filter(|line| !is_wrapper(line)).take(4);
    last.into_iter().any(|line| failure::report(line) == Some(Report::Exception))
}

/// What a structured answer says about its own success, if it says anything.
fn structure_fails(head: &str) -> Option<bool> {
    let start = head.find('{')?;
    let args = Args::read(&head[start..]);
    let is_no =
        |value: &str| matches!(value, "" | "null" | "false" | "0" | "{}" | "[]" | "none" | "None");
    for (key, value) in args.pairs() {
        let top = key.split(['.', '[']).next().unwrap_or(key);
        match top {
            "error" | "errors" | "exception" | "error_message" | "errorMessage"
                if !is_no(value) =>
            {
                return Some(true);
            }
            "isError" | "is_error" => return Some(value == "true"),
            "success" | "ok" if value == "false" => return Some(true),
            "success" | "ok" if value == "true" => return Some(false),
            "status" if key == "status" => {
                let bad = matches!(value, "error" | "failed" | "failure" | "ERROR" | "FAILED");
                if bad || is_http_error(value) {
                    return Some(true);
                }
            }
            "status_code" | "statusCode" | "code" if is_http_error(value) => return Some(true),
            _ => {}
        }
    }
    None
}

fn is_http_error(value: &str) -> bool {
    value.len() == 3 && value.starts_with(['4', '5']) && value.bytes().all(|b| b.is_ascii_digit())
}

/// The line that names the error best.
fn essential_line<'t>(head: &'t str, tail: &'t str, runs: bool) -> Option<&'t str> {
    let mut best: Option<(Report, &str)> = None;
    let mut first_line = None;
    for line in head.lines().chain(tail.lines()) {
        if is_wrapper(line) {
            continue;
        }
        first_line = first_line.or(Some(line));
        let Some(found) = failure::report(line) else { continue };
        let line = failure::bare(line);
        if line.starts_with("Traceback") || line == "Failures:" || line.starts_with("FAIL ") {
            continue; // Announces an error and does not name it.
        }
        let better = match best {
            None => true,
            // An exception is raised from the one before it: the last counts. Elsewhere the first caused the rest.
            Some((Report::Exception, _)) => found == Report::Exception,
            Some((known, _)) => found < known,
        };
        if better {
            best = Some((found, line));
        }
    }
    if let Some((_, line)) = best {
        return Some(line.strip_prefix("E   ").unwrap_or(line).trim());
    }
    if let Some(message) = structure_message(head) {
        return Some(message);
    }
    // Content that was read names no error; a program that broke off may say why in its first line.
    let line = failure::bare(first_line?);
    (runs || failure::is_refusal(line)).then_some(line)
}

/// The value behind `"error":` or `"message":`.
fn structure_message(head: &str) -> Option<&str> {
    let start = head.find(['{'])?;
    ["\"message\"", "\"error\"", "\"detail\""].iter().find_map(|name| {
        let at = head[start..].find(name)? + start + name.len();
        let value = head[at..].trim_start_matches([':', ' ']).strip_prefix('"')?;
        let end = value.find('"').unwrap_or(value.len());
        value.get(..end).filter(|value| !value.is_empty())
    })
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
