//! How a step came out: whether it failed and why, what its tests say, and whether the answer is new.
//!
//! Evidence is weighed in this order: a test summary, the exit code, then the text. The text is asked
//! only as far as the act allows: what a file *says* is no failure of reading it, so for reads and
//! searches only the beginning of a short answer counts.

use super::Kind;
use super::args::Args;
use super::error_lines::{self, Report};
use super::normalize::{self, Level};
use super::test_summary::{self, TestResult};
use crate::analysis::text;
use crate::step::Step;

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

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Source {
    /// Printed by a program, not written by the tool itself.
    pub(super) prints: bool,
    /// Of a command that compares, and exits with 1 when it finds a difference.
    pub(super) compares: bool,
}

impl Outcome {
    /// Reads the answer of a step that was an act of `kind`.
    pub(super) fn of(step: &Step<'_>, kind: Kind, source: Source, scratch: &mut String) -> Self {
        let answer = step.observation;
        // Some shells answer with a structure; what was printed stands in one of its values.
        let (printed, stated) =
            if source.prints { printed_in_structure(answer) } else { (None, None) };
        let (prefix, suffix) = windows(printed.as_deref().unwrap_or(answer));
        let (prefix, suffix) =
            (normalize::without_escapes(prefix), normalize::without_escapes(suffix));
        let lines = prefix.lines().chain(suffix.lines()).filter(|line| !is_wrapper(line));
        let lines: Vec<&str> = lines.collect();
        let is_empty = lines.is_empty();
        let exit_code = stated.or_else(|| error_lines::exit_code(answer));
        let runs =
            !matches!(kind, Kind::Read | Kind::Search | Kind::Message | Kind::Think | Kind::Finish);
        let tests = if runs { test_summary::find(&lines) } else { None };

        // A search that finds nothing exits with 1, as a comparison does that finds something: an answer, not a failure.
        let asks = kind == Kind::Search || (source.compares && kind == Kind::Read);
        let complains = || {
            let mut lines = lines.iter();
            lines.any(|line| line.starts_with("STDERR:") || error_lines::report(line).is_some())
        };
        let found_nothing = match exit_code {
            Some(1) => asks && (is_empty || !complains()),
            None => asks && is_empty,
            Some(_) => false,
        };
        let why = if found_nothing {
            None
        } else if tests.is_some_and(|tests| tests.failed > 0) {
            Some(Why::Tests)
        } else if exit_code.is_some_and(|code| code != 0) {
            Some(Why::ExitCode)
        } else if step.is_error {
            Some(Why::Host)
        } else {
            let text = Text {
                prefix: &prefix,
                lines: &lines,
                is_short: answer.len() <= REFUSAL_BYTES_MAX,
            };
            from_text(kind, source.prints, text, exit_code)
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
            && let Some(line) = essential_line(&prefix, &lines, runs || kind == Kind::Message)
        {
            let line = text::prefix(line, 4 * SIGNATURE_CHARS_MAX);
            outcome.signature_class = Some(normalize::fingerprint(scratch, line, Level::Class));
            outcome.signature = Some(normalize::fingerprint(scratch, line, Level::Error));
            text::prefix(line, SIGNATURE_CHARS_MAX).clone_into(&mut outcome.signature_text);
        }
        outcome
    }
}

/// The beginning and the end of an answer, without a gap or an overlap when it is short.
fn windows(answer: &str) -> (&str, &str) {
    if answer.len() <= 2 * WINDOW_BYTES {
        return (answer, "");
    }
    let prefix = answer.floor_char_boundary(WINDOW_BYTES);
    let suffix = answer.ceil_char_boundary(answer.len() - WINDOW_BYTES);
    (&answer[..prefix], &answer[suffix..])
}

fn result_key(answer: &str, scratch: &mut String) -> u64 {
    if answer.len() <= PRINT_BYTES {
        return normalize::fingerprint(scratch, answer, Level::Answer);
    }
    scratch.clear();
    let prefix = answer.floor_char_boundary(PRINT_BYTES);
    let suffix =
        answer.ceil_char_boundary(answer.len().saturating_sub(PRINT_BYTES / 4)).max(prefix);
    normalize::strip_into(scratch, &answer[..prefix], Level::Answer);
    normalize::strip_into(scratch, &answer[suffix..], Level::Answer);
    text::fingerprint(scratch)
}

/// Lines that hosts put around an answer, and blank ones.
fn is_wrapper(line: &str) -> bool {
    let line = line.trim_ascii();
    let Some(first) = line.as_bytes().first() else { return true };
    match first {
        b'<' => {
            line.starts_with("<returncode>")
                || matches!(
                    line,
                    "<output>" | "</output>" | "<stdout>" | "</stdout>" | "<stderr>" | "</stderr>"
                )
        }
        b'(' => line == "(no output)",
        b'[' => line == "[]" || line.starts_with("[The command completed with exit code"),
        b'{' => line == "{}",
        b'C' => line == "Code output:",
        b'E' => line == "Execution logs:" || (line.starts_with("Exit code: ") && line.len() < 16),
        b'e' => line.starts_with("exitcode: ") && line.ends_with(')'),
        b'L' => line == "Last output from code snippet:",
        b'N' => is_nothing(line),
        b'n' => line == "null",
        b'T' => line.starts_with("Tool ran without output"),
        b'Y' => line.starts_with("Your command ran successfully and did not produce any output"),
        _ => false,
    }
}

/// Words for nothing.
fn is_nothing(line: &str) -> bool {
    let starts =
        ["No results", "No Results", "No matches", "No files found", "No output", "No data found"];
    line == "None" || (line.len() < 40 && starts.iter().any(|start| line.starts_with(start)))
}

/// What a program printed, and its exit code, when the answer is `{"output": …, "exit_code": …}`.
fn printed_in_structure(answer: &str) -> (Option<String>, Option<i32>) {
    if !answer.trim_ascii_start().starts_with('{') {
        return (None, None);
    }
    let end = answer.floor_char_boundary(PRINT_BYTES);
    let args = Args::read(&answer[..end]);
    let mut printed: Option<String> = None;
    let mut code = None;
    for (key, value) in args.pairs() {
        match key.rsplit('.').next().unwrap_or(key) {
            "output" | "stdout" | "stderr" | "aggregated_output" | "combined_output" => {
                let text = printed.get_or_insert_default();
                text.push_str(value);
                text.push('\n');
            }
            "exit_code" | "exitCode" | "returncode" | "return_code" | "exit_status" => {
                code = value.parse().ok().or(code);
            }
            _ => {}
        }
    }
    (printed, code)
}

/// The text of an answer, as far as it is looked at.
#[derive(Clone, Copy)]
struct Text<'t> {
    prefix: &'t str,
    /// Its lines but for those that a host added.
    lines: &'t [&'t str],
    /// Short enough to be all there is.
    is_short: bool,
}

/// What the text says, as far as this kind of act lets it speak.
fn from_text(kind: Kind, prints: bool, text: Text<'_>, exit_code: Option<i32>) -> Option<Why> {
    let first = *text.lines.first()?;
    if matches!(kind, Kind::Message | Kind::Think | Kind::Finish) {
        return None;
    }
    if error_lines::bare(first).starts_with('{')
        && let Some(said) = structure_fails(text.prefix)
    {
        return said.then_some(Why::Structure);
    }
    if matches!(kind, Kind::Read | Kind::Search | Kind::Poll) {
        // A file may be full of errors; the complaint about the file is all there is.
        let complains = exit_code.is_none()
            && text.is_short
            && text.lines.len() <= 4
            && (error_lines::is_refusal(first)
                || matches!(error_lines::report(first), Some(Report::Program | Report::Exception)));
        return complains.then_some(Why::Text);
    }
    if !prints && exit_code.is_none() && text.is_short && error_lines::is_refusal(first) {
        return Some(Why::Text);
    }
    program_fails(kind, text.lines, exit_code == Some(0)).then_some(Why::Text)
}

/// A program reports an error. After exit code zero a later command may have gone well after one that broke off: then only
/// a traceback that ends the answer counts, and what a compiler found.
fn program_fails(kind: Kind, lines: &[&str], went_well: bool) -> bool {
    let mut traceback = false;
    for (index, line) in lines.iter().enumerate() {
        let Some(found) = error_lines::report(line) else { continue };
        let counts = match found {
            Report::Exception => {
                traceback |= line.contains("Traceback (");
                !went_well && !line.contains("Traceback (")
            }
            Report::Compiler => !went_well || matches!(kind, Kind::Test | Kind::Run),
            Report::Test => !went_well,
            // Programs print such lines also while they do what they should: the edge of the answer counts.
            Report::Program => !went_well && (index == 0 || index + 3 >= lines.len()),
        };
        if counts {
            return true;
        }
    }
    let ends = || {
        let mut last = lines.iter().rev().take(4);
        last.any(|line| error_lines::report(line) == Some(Report::Exception))
    };
    traceback && ends()
}

/// What a structured answer says about its own success, if it says anything.
fn structure_fails(prefix: &str) -> Option<bool> {
    let start = prefix.find('{')?;
    let args = Args::read(&prefix[start..]);
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
fn essential_line<'t>(prefix: &'t str, lines: &[&'t str], runs: bool) -> Option<&'t str> {
    let mut best: Option<(Report, &str)> = None;
    let mut in_traceback = false;
    for &line in lines {
        if line.starts_with("Traceback (") {
            in_traceback = true;
            continue;
        }
        let mut found = error_lines::report(line);
        // The first line at the edge after a traceback names the exception, whatever it is called.
        if in_traceback && !line.starts_with([' ', '\t']) {
            in_traceback = false;
            found = Some(Report::Exception);
        }
        let Some(found) = found else { continue };
        if line.starts_with("FAIL ") || line.starts_with("Failures:") {
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
        let line = error_lines::bare(line);
        return Some(line.strip_prefix("E   ").unwrap_or(line).trim());
    }
    if let Some(message) = structure_message(prefix) {
        return Some(message);
    }
    if let Some(line) = lines.iter().rev().take(8).find(|line| line.starts_with("STDERR:")) {
        return Some(error_lines::bare(line));
    }
    // Content that was read names no error; a program that broke off may say why in its first line.
    let first = error_lines::bare(lines.first()?);
    let brief = lines.len() <= 3;
    (runs || brief || error_lines::is_refusal(first)).then_some(first)
}

/// The value behind `"error":` or `"message":`.
fn structure_message(prefix: &str) -> Option<&str> {
    let start = prefix.find(['{'])?;
    ["\"message\"", "\"error\"", "\"detail\""].iter().find_map(|name| {
        let at = prefix[start..].find(name)? + start + name.len();
        let value = prefix[at..].trim_start_matches([':', ' ']).strip_prefix('"')?;
        let end = value.find('"').unwrap_or(value.len());
        value.get(..end).filter(|value| !value.is_empty())
    })
}

#[cfg(test)]
mod tests;
