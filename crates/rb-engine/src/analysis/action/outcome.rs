//! Outcome of a step: failure and its cause, test results, and a fingerprint of the output.
//!
//! Evidence is used in this order: test summary, exit code, text. The kind of the action limits the use of the text:
//! the content of a file is no failure of reading it, so for reads and searches only the start of a short output
//! counts.

use super::Kind;
use super::args::Args;
use super::error_lines::{self, Report};
use super::normalize::{self, Level};
use super::test_summary::{self, TestResult};
use crate::analysis::text;
use crate::step::Step;

/// Bytes at the start and the end of an output that are analysed.
const WINDOW_BYTES: usize = 4 * 1024;
/// Bytes at the start of an output that its fingerprint covers, in addition to a quarter as many at the end.
const PRINT_BYTES: usize = 48 * 1024;
/// Maximum size of a refusal by a tool; longer outputs are content.
const REFUSAL_BYTES_MAX: usize = 1_000;
/// Maximum length of the stored error line.
const SIGNATURE_CHARS_MAX: usize = 160;

/// Evidence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The host marked the step as failed.
    Host,
    /// A test summary with failures.
    Tests,
    /// A non-zero exit code.
    ExitCode,
    /// The text reports an error.
    Text,
    /// A field of a structured output (`"error": …`, `"ok": false`, a status of 400 or more).
    Structure,
}

/// Outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The step failed.
    pub failed: bool,
    /// The evidence of the failure; `None` if the step did not fail.
    pub why: Option<Why>,
    /// There is positive evidence of success: exit code zero, or passing tests.
    pub succeeded: bool,
    /// The exit code that the output states.
    pub exit_code: Option<i32>,
    /// The test results, if a summary was recognised.
    pub tests: Option<TestResult>,
    /// Fingerprint of the error without numbers and ids; equal if the same error occurs again.
    pub signature: Option<u64>,
    /// Fingerprint of the error without quoted values; equal for the same type of error about something else.
    pub signature_class: Option<u64>,
    /// The line that names the error, shortened; empty if there is none.
    pub signature_text: String,
    /// Fingerprint of the output without volatile parts; equal if the output contains nothing new.
    pub result_key: u64,
    /// The output is empty.
    pub is_empty: bool,
}

/// Source of an output.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Source {
    /// Printed by a program rather than by the tool itself.
    pub(super) is_printed: bool,
    /// From a command that compares and exits with 1 if it finds a difference.
    pub(super) compares: bool,
}

impl Outcome {
    /// Determines the outcome of a step whose action has this kind.
    pub(super) fn of(step: &Step<'_>, kind: Kind, source: Source, scratch: &mut String) -> Self {
        let answer = step.observation;
        // Some shells return a structure with the printed text in one of its fields.
        let (printed, stated) =
            if source.is_printed { printed_in_structure(answer) } else { (None, None) };
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

        // Exit code 1 of a search without results or of a comparison with a difference is not a failure.
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
            from_text(kind, source.is_printed, text, exit_code)
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

/// Returns the start and the end of an output, without a gap or an overlap if it is short.
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

/// Reports whether a line is blank or was added by a host.
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

/// Matches phrases for an empty result.
fn is_nothing(line: &str) -> bool {
    let starts =
        ["No results", "No Results", "No matches", "No files found", "No output", "No data found"];
    line == "None" || (line.len() < 40 && starts.iter().any(|start| line.starts_with(start)))
}

/// Returns the printed text and the exit code of `{"output": …, "exit_code": …}`.
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

/// The analysed text of an output.
#[derive(Clone, Copy)]
struct Text<'t> {
    prefix: &'t str,
    /// Lines of `prefix` except those added by a host.
    lines: &'t [&'t str],
    /// The output is short.
    is_short: bool,
}

/// Returns the evidence in the text, as far as the kind of the action allows.
fn from_text(kind: Kind, is_printed: bool, text: Text<'_>, exit_code: Option<i32>) -> Option<Why> {
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
        // A file may be full of errors; a complaint about the file is the whole output.
        let complains = exit_code.is_none()
            && text.is_short
            && text.lines.len() <= 4
            && (error_lines::is_refusal(first)
                || matches!(error_lines::report(first), Some(Report::Program | Report::Exception)));
        return complains.then_some(Why::Text);
    }
    if !is_printed && exit_code.is_none() && text.is_short && error_lines::is_refusal(first) {
        return Some(Why::Text);
    }
    program_fails(kind, text.lines, exit_code == Some(0)).then_some(Why::Text)
}

/// Reports whether a program failed. With exit code zero, a later command may have succeeded after one that failed;
/// then only a traceback at the end and compiler errors count.
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
            // Successful programs print such lines too: only the first and the last lines count.
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

/// Returns the failure status in a structured output, if it has one.
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

/// Returns the line that names the error best.
fn essential_line<'t>(prefix: &'t str, lines: &[&'t str], runs: bool) -> Option<&'t str> {
    let mut best: Option<(Report, &str)> = None;
    let mut in_traceback = false;
    for &line in lines {
        if line.starts_with("Traceback (") {
            in_traceback = true;
            continue;
        }
        let mut found = error_lines::report(line);
        // The first unindented line after a traceback names the exception.
        if in_traceback && !line.starts_with([' ', '\t']) {
            in_traceback = false;
            found = Some(Report::Exception);
        }
        let Some(found) = found else { continue };
        if line.starts_with("FAIL ") || line.starts_with("Failures:") {
            continue; // Announces an error without naming it.
        }
        let better = match best {
            None => true,
            // Of several exceptions the last counts: it was raised from the earlier ones. Of other errors the first
            // counts: it caused the rest.
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
    // Content that was read names no error. A program that failed may give the reason in its first line.
    let first = error_lines::bare(lines.first()?);
    let brief = lines.len() <= 3;
    (runs || brief || error_lines::is_refusal(first)).then_some(first)
}

/// Returns the value of `"error":` or `"message":`.
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
