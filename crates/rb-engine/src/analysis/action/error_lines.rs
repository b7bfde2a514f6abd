//! Recognises lines that report an error, and the exit code that a host or a shell adds to the output.
//!
//! A line reports an error by its *start* or by a fixed form (`file:3:5: error: …`). The word alone is not enough:
//! source code, documentation and "0 errors" contain it too.

/// Type of an error report, from the most to the least specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Report {
    /// An exception with its type: `ValueError: bad`.
    Exception,
    /// A compiler's or linter's finding: `error[E0308]: …`, `a.c:3:5: error: …`.
    Compiler,
    /// A failed assertion or test: `E   assert …`, `FAIL: test_a`.
    Test,
    /// A complaint of a program: `cat: x: No such file or directory`, `fatal: …`.
    Program,
}

/// Returns the type of error that a line reports. The line contains no colour codes.
///
/// Reports are not indented. Indented lines are source code, listings or quotations.
pub(super) fn report(line: &str) -> Option<Report> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let line = bare(line);
    if let Some(found) = by_prefix(line) {
        return Some(found);
    }
    if is_exception(line) {
        return Some(Report::Exception);
    }
    if line.len() > 400 {
        return None;
    }
    if is_located_error(line) {
        return Some(Report::Compiler);
    }
    is_program_complaint(line).then_some(Report::Program)
}

/// Removes prefixes that hosts add to a line.
pub(super) fn bare(line: &str) -> &str {
    let line = line.trim_ascii();
    let mut line =
        line.strip_prefix("STDERR:").or_else(|| line.strip_prefix("stderr:")).unwrap_or(line);
    while let Some(rest) = line.strip_prefix("<output>") {
        line = rest;
    }
    line.trim_ascii_start()
}

/// Starts of lines that report an error.
#[rustfmt::skip]
const PREFIXES: &[(Report, &[&str])] = &[
    (Report::Compiler, &["error[", "error: ", "error TS", "error:\t"]),
    (Report::Test, &["E   ", "FAIL: ", "FAIL ", "FAILED ", "Failures:"]),
    (Report::Program, &[
        "Error: ", "ERROR: ", "ERROR ", "ERR! ", "Error executing", "Error calling", "Error in ", "FATAL",
        "Fatal error", "Failed to ", "fatal: ", "fatal error", "npm ERR!", "npm error", "make: *** ",
        "make[1]: *** ", "Segmentation fault", "unknown command", "unknown option", "HTTP Error 4",
        "HTTP Error 5", "HTTP/1.1 4", "HTTP/1.1 5", "HTTP/2 4", "HTTP/2 5",
    ]),
    (Report::Exception, &[
        "panic: ", "Traceback (most recent call last)", "Uncaught ", "Unhandled exception",
    ]),
];

fn by_prefix(line: &str) -> Option<Report> {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| line.starts_with(prefix));
    if let Some((report, _)) = PREFIXES.iter().find(|(_, prefixes)| starts(prefixes)) {
        let is_count = starts(&["error", "Error", "ERR"]) && !counts(line);
        return (!is_count).then_some(*report);
    }
    if line.starts_with("thread '") && line.contains("' panicked at") {
        return Some(Report::Exception);
    }
    let names_command =
        starts(&["The last command", "The command", "Command", "Process", "Execution"]);
    (names_command && line.contains("timed out")).then_some(Report::Program)
}

/// Returns false for an error count such as `error: 0`.
fn counts(line: &str) -> bool {
    let rest = line.split_once(':').map_or("x", |(_, rest)| rest).trim().trim_end_matches('.');
    let number = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let status = rest.len() == 3 && rest.starts_with(['4', '5']);
    (!number || status) && !matches!(rest, "none" | "None" | "null" | "no")
}

/// Matches `ValueError: bad`, `pkg.mod.CustomException`, `java.lang.NullPointerException: …`: a type, then nothing or a
/// message.
fn is_exception(line: &str) -> bool {
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let last = name.rsplit('.').next().unwrap_or(name);
    if matches!(name, "re.error" | "socket.timeout" | "socket.gaierror" | "struct.error") {
        return rest.starts_with(": ");
    }
    let ends = ["Error", "Exception", "Failure", "Interrupt", "Exit", "DoesNotExist"];
    last.len() > 5
        && last.starts_with(|c: char| c.is_ascii_uppercase())
        && ends.iter().any(|end| last.ends_with(end) && last.len() > end.len())
        && (rest.is_empty() || rest.starts_with(": "))
}

/// Matches `src/a.c:3:5: error: …`, `a.ts(3,5): error TS2304: …`, `./a.go:3:5: undefined: x`, but not a lint such as
/// `a.py:1:1: F401 …`.
fn is_located_error(line: &str) -> bool {
    let prefix = line.split(' ').next().unwrap_or(line);
    let located = prefix.ends_with(':')
        && prefix.trim_end_matches([':', ')']).ends_with(|c: char| c.is_ascii_digit())
        && prefix.contains('.');
    if !located {
        return false;
    }
    let rest = line[prefix.len()..].trim_start();
    ["error", "fatal error", "undefined: ", "syntax error"]
        .iter()
        .any(|word| rest.starts_with(word))
}

/// Matches `cat: x: No such file or directory`, `bash: foo: command not found`, `sh: 1: foo: not found`.
fn is_program_complaint(line: &str) -> bool {
    #[rustfmt::skip]
    let ends = [
        "No such file or directory", "command not found", ": not found", "Permission denied", "Is a directory",
        "Not a directory", "Operation not permitted", "Connection refused", "No such process", "file not found",
        "File exists", "core dumped)",
    ];
    if ends.iter().any(|end| line.trim_end_matches('.').ends_with(end)) {
        // The line starts with the name of the program, a single word.
        return line
            .split(": ")
            .next()
            .is_some_and(|program| !program.contains(' ') || program.starts_with("/bin"))
            || line.contains("core dumped");
    }
    let Some((program, rest)) = line.split_once(": ") else { return false };
    let named = !program.is_empty() && program.len() < 60 && !program.contains(' ');
    #[rustfmt::skip]
    let says = [
        "syntax error", "can't ", "cannot ", "unrecognized ", "invalid ", "error: ", "unable to ", "line ",
        "missing ", "unknown ", "illegal ", "fatal", "parse error",
    ];
    named
        && !program.contains(['/', '"', '\'', '(', '='])
        && is_program_name(program)
        && says.iter().any(|start| rest.starts_with(start))
        && (!rest.starts_with("line ") || ends_with_complaint(rest))
}

/// Matches lower-case program names, but not `Note:` or `Warning:`.
fn is_program_name(name: &str) -> bool {
    name.bytes().all(|b| {
        b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.' | b'+')
    })
}

/// Reports whether the message after `line 3: ` is a complaint.
fn ends_with_complaint(rest: &str) -> bool {
    ["not found", "syntax error", "unexpected", "unbound", "No such", "error"]
        .iter()
        .any(|word| rest.contains(word))
}

/// Prefixes of refusals.
#[rustfmt::skip]
const REFUSALS: [&str; 41] = [
    "Error", "ERROR", "error", "Failed to", "Failed:", "Could not", "Couldn't", "Cannot ", "Can't ",
    "Unable to", "Invalid ", "Unknown tool", "Unknown action", "Tool not found", "No such ",
    "Permission denied", "Timed out", "Timeout", "Request failed", "Access denied", "Unauthorized", "Forbidden",
    "Not found", "404 ", "403 ", "500 ", "401 ", "429 ", "502 ", "503 ", "File not found", "Exception",
    "Tool execution failed", "Command timed out", "Command failed", "The command timed out",
    "InputValidationError", "<tool_use_error>", "String to replace not found", "No replacement was performed",
    "Input validation error",
];

/// Reports whether a line starts like a refusal. For the first line of a short output of a tool.
pub(super) fn is_refusal(line: &str) -> bool {
    let line = bare(line).trim_start_matches(['[', '(', '*', '❌', ' ']);
    let start = REFUSALS.iter().find(|start| line.starts_with(**start));
    let Some(start) = start else { return is_denial(line) };
    // `Errors found: 0` and `error_count = 0` report success, `Error handling` is a heading.
    let rest = &line[start.len()..];
    match *start {
        "Error" | "ERROR" | "error" | "Exception" | "Timeout" | "Not found" => {
            rest.is_empty()
                || (rest.starts_with([':', '!', '[']) && counts(line))
                || is_error_verb(rest)
        }
        _ => true,
    }
}

/// Matches a sentence that reports something as missing: `User not found.`, `Tool x does not exist`.
fn is_denial(line: &str) -> bool {
    #[rustfmt::skip]
    let ends = [
        "not found", "does not exist", "is not available", "is not a valid tool", "is not allowed", "timed out",
    ];
    line.len() < 160 && ends.iter().any(|end| line.trim_end_matches(['.', '!', '"']).ends_with(end))
}

fn is_error_verb(rest: &str) -> bool {
    [
        " executing",
        " calling",
        " during",
        " while",
        " occurred",
        " reading",
        " opening",
        " running",
        " in ",
    ]
    .iter()
    .any(|verb| rest.starts_with(verb))
}

/// Returns the exit code stated at the start or the end of the output.
pub(super) fn exit_code(text: &str) -> Option<i32> {
    let prefix = &text[..text.floor_char_boundary(400)];
    let suffix = &text[text.ceil_char_boundary(text.len().saturating_sub(600))..];
    let from_head = prefix.lines().take(4).find_map(line_exit_code);
    from_head.or_else(|| suffix.lines().rev().take(6).find_map(line_exit_code))
}

/// Parses `<returncode>1</returncode>`, `Exit code: 2`, `exitcode: 1 (execution failed)`, `"exit_code": 1`, `[The
/// command completed with exit code 0.]`, `Process exited with code 3`.
fn line_exit_code(line: &str) -> Option<i32> {
    #[rustfmt::skip]
    const NAMES: [&str; 8] = [
        "returncode", "return code", "exit code", "exitcode", "exit_code", "exit status", "exited with code",
        "return_code",
    ];
    if !has_code_word(line.as_bytes()) {
        return None;
    }
    let lowercased = line[..line.floor_char_boundary(400)].to_ascii_lowercase();
    let (at, name) = NAMES.iter().find_map(|name| lowercased.find(name).map(|at| (at, *name)))?;
    let before =
        lowercased[..at].trim_start_matches(['[', '<', '(', '"', '\'', '{', ' ', '*', '-', '_']);
    #[rustfmt::skip]
    let said = [
        "command", "process", "program", "execution", "finished", "completed", "exited", "failed", "script",
        "\"",
    ];
    if !before.is_empty() && (before.len() > 120 || !said.iter().any(|word| before.contains(word)))
    {
        return None;
    }
    // `exit_code=1` on its own line is source code.
    if before.is_empty() && lowercased[at + name.len()..].starts_with('=') {
        return None;
    }
    let rest =
        lowercased[at + name.len()..].trim_start_matches(['"', '\'', ':', '=', '>', ' ', '*', '`']);
    let rest = rest.strip_prefix("is ").unwrap_or(rest);
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let code: i32 = digits.get(..end)?.parse().ok()?;
    // In source code such as `exit_code=1;` more text follows; a statement of the exit code ends here.
    let after = digits[end..].trim_start_matches(['.', '"', '\'', '`', '*', ' ']);
    let ends = after.is_empty() || after.starts_with([']', ')', '<', ',', '}', '(', ':', '|']);
    ends.then_some(if rest.starts_with('-') { -code } else { code })
}

/// Prefilter: reports whether the line contains "exit" or "turn", one of which every name has.
fn has_code_word(line: &[u8]) -> bool {
    // Sets the bit that distinguishes lower-case from upper-case letters.
    const SMALL: u32 = u32::from_le_bytes([b' '; 4]);
    const EXIT: u32 = u32::from_le_bytes(*b"exit");
    const TURN: u32 = u32::from_le_bytes(*b"turn");
    line.array_windows().any(|four| matches!(u32::from_le_bytes(*four) | SMALL, EXIT | TURN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_lines_are_recognised() {
        for (line, want) in [
            ("ValueError: bad value", Some(Report::Exception)),
            ("django.core.exceptions.FieldError: x", Some(Report::Exception)),
            ("  django.core.exceptions.FieldError: x", None),
            ("re.error: bad escape", Some(Report::Exception)),
            ("ERROR: 3", None),
            ("cat: x: io error: file not found", Some(Report::Program)),
            ("java.lang.NullPointerException", Some(Report::Exception)),
            ("KeyboardInterrupt", Some(Report::Exception)),
            ("raise ValueError('x')", None),
            ("except ValueError:", None),
            ("class MyError(Exception):", None),
            ("Traceback (most recent call last):", Some(Report::Exception)),
            ("thread 'main' panicked at src/a.rs:3:5:", Some(Report::Exception)),
            ("panic: runtime error: index out of range", Some(Report::Exception)),
            ("error[E0308]: mismatched types", Some(Report::Compiler)),
            ("error: could not compile `a`", Some(Report::Compiler)),
            ("src/a.c:3:5: error: expected ';'", Some(Report::Compiler)),
            ("a.ts(3,5): error TS2304: Cannot find name", Some(Report::Compiler)),
            ("./a.go:3:5: undefined: x", Some(Report::Compiler)),
            ("src/a.py:12:    error = 3", Some(Report::Compiler)), // See `Outcome`: greps are not asked.
            ("E       assert 1 == 2", Some(Report::Test)),
            ("FAIL: test_a (tests.A)", Some(Report::Test)),
            ("FAILED tests/test_a.py::test_b - KeyError", Some(Report::Test)),
            ("fatal: not a git repository", Some(Report::Program)),
            ("cat: x.py: No such file or directory", Some(Report::Program)),
            ("bash: foo: command not found", Some(Report::Program)),
            ("/bin/sh: 1: foo: not found", Some(Report::Program)),
            ("bash: line 3: syntax error near unexpected token", Some(Report::Program)),
            ("sed: can't read x: No such file or directory", Some(Report::Program)),
            ("sed: -e expression #1, char 3: x", None),
            ("npm ERR! missing script: test", Some(Report::Program)),
            ("make: *** [all] Error 2", Some(Report::Program)),
            ("HTTP Error 404: Not Found", Some(Report::Program)),
            ("Error: boom", Some(Report::Program)),
            (
                "The last command <command>x</command> timed out and has been killed.",
                Some(Report::Program),
            ),
            ("error: 0", None),
            ("0 errors, 0 warnings", None),
            ("No errors found.", None),
            ("The word error: it is only mentioned", None),
            ("Handling of errors", None),
            ("errors = []", None),
            ("", None),
        ] {
            assert_eq!(report(line), want, "{line:?}");
        }
    }

    #[test]
    fn exit_codes_are_read() {
        for (text, want) in [
            ("<returncode>1</returncode>\n<output>\nx</output>", Some(1)),
            ("exitcode: 0 (execution succeeded)\nCode output: x", Some(0)),
            ("out\n\nExit code: 2", Some(2)),
            ("[The command completed with exit code 0.]", Some(0)),
            ("Process exited with code 127", Some(127)),
            ("{\"stdout\": \"\", \"exit_code\": 1}", Some(1)),
            ("{\"returncode\": 0, \"output\": \"x\"}", Some(0)),
            ("Command failed with exit status 3", Some(3)),
            ("exit code: -9", Some(-9)),
            ("    if exit_code == 1:", None),
            ("exit_code = 1;", None),
            ("exit_code=1", None),
            ("see the exit code 1 of the process", None),
            ("no code here", None),
        ] {
            assert_eq!(exit_code(text), want, "{text:?}");
        }
    }

    #[test]
    fn refusals_are_recognised() {
        for (line, want) in [
            ("Error: reservation not found", true),
            ("Error executing tool: x", true),
            ("Could not find [A]. Similar: []", true),
            ("404 Not Found", true),
            ("<tool_use_error>File has not been read yet", true),
            ("User not found.", true),
            ("Tool `x` does not exist", true),
            ("Errors found: 0", false),
            ("Error handling in Rust", false),
            ("errors: 0", false),
            ("The error was fixed", false),
            ("OK", false),
        ] {
            assert_eq!(is_refusal(line), want, "{line:?}");
        }
    }
}
