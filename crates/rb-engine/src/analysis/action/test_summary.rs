//! Parses the summaries that test runners print.

/// Result of a test run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestResult {
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed or could not run.
    pub failed: u32,
}

impl TestResult {
    /// Reports whether tests ran and none failed.
    pub fn is_green(self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

/// Finds the summary in the lines of an output, without colour codes.
///
/// Summaries are added if the runner prints one per part (cargo, go). Of several totals the last counts.
pub(super) fn find(lines: &[&str]) -> Option<TestResult> {
    let mut parser = SummaryParser::default();
    for line in lines {
        parser.line(line.trim_ascii());
    }
    parser.total.or(parser.parts)
}

#[derive(Default)]
struct SummaryParser {
    total: Option<TestResult>,
    parts: Option<TestResult>,
    /// From `Ran 5 tests`; the verdict follows.
    ran: Option<u32>,
    passing: u32,
}

impl SummaryParser {
    fn line(&mut self, line: &str) {
        let bytes = line.as_bytes();
        let Some(first) = bytes.first() else { return };
        // Nearly all lines are rejected by their first byte.
        match first {
            b'0'..=b'9' | b'=' => self.counted(line),
            b'R' => self.ran = number_after(line, "Ran ").or(self.ran),
            b'O' => self.verdict_ok(line),
            b'F' => self.verdict_failed(line),
            b't' => self.cargo(line),
            b'T' => self.labelled(line),
            b'o' if line.starts_with("ok  \t") || line.starts_with("ok \t") => self.add(1, 0),
            b'-' => {
                if line.starts_with("--- FAIL:") {
                    self.add(0, 1);
                } else if line.starts_with("--- PASS:") {
                    self.add(1, 0);
                }
            }
            b'#' => self.tap(line.trim_start_matches(['#', ' '])),
            b'P' if line.starts_with("Passed!") => self.labelled(line),
            b'[' if line.contains("Tests run:") => self.labelled(line),
            _ if line.starts_with("ℹ ") => self.tap(line.trim_start_matches(['ℹ', ' '])),
            _ => {}
        }
    }

    fn set(&mut self, passed: u32, failed: u32) {
        self.total = Some(TestResult { passed, failed });
    }

    fn add(&mut self, passed: u32, failed: u32) {
        let sum = self.parts.get_or_insert_default();
        sum.passed = sum.passed.saturating_add(passed);
        sum.failed = sum.failed.saturating_add(failed);
    }

    /// Parses `== 3 failed, 2 passed in 0.12s ==`, `5 passing (3ms)`, `2 examples, 1 failure`, `100% tests passed`.
    fn counted(&mut self, line: &str) {
        let core = line.trim_matches(['=', ' ']);
        if core.starts_with("tests finished: ") {
            self.cargo(core);
            return;
        }
        if core.starts_with("no tests ran") {
            self.set(0, 0);
            return;
        }
        if let Some(passing) = number_before(core, " passing") {
            self.passing = passing;
            self.set(passing, 0);
        } else if let Some(failing) = number_before(core, " failing") {
            self.set(self.passing, failing);
        } else if core.contains(" tests passed, ") && core.contains(" out of ") {
            let failed = number_before(core, " tests failed").unwrap_or(0);
            let all = number_after(core, "out of ").unwrap_or(0);
            self.set(all.saturating_sub(failed), failed);
        } else if let Some(examples) = number_before(core, " example") {
            let failed = number_before(core, " failure").unwrap_or(0);
            self.set(examples.saturating_sub(failed), failed);
        } else if core.contains(" in ") || line.starts_with("==") || core.len() < 40 {
            let passed = number_before(core, " passed");
            let failed = number_before(core, " failed");
            let errors = number_before(core, " error");
            let is_timed = core
                .split_once(" in ")
                .is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()));
            let starts_with_count = core.split(' ').nth(1).is_some_and(|word| {
                matches!(
                    word.trim_end_matches([',', ';']),
                    "passed"
                        | "failed"
                        | "error"
                        | "errors"
                        | "skipped"
                        | "deselected"
                        | "xfailed"
                        | "warnings"
                )
            });
            if starts_with_count
                && (passed.is_some() || failed.is_some() || (errors.is_some() && is_timed))
            {
                self.set(passed.unwrap_or(0), failed.unwrap_or(0) + errors.unwrap_or(0));
            }
        }
    }

    /// Parses `OK`, `OK (skipped=1)`, `OK (5 tests, 9 assertions)`.
    fn verdict_ok(&mut self, line: &str) {
        if line != "OK" && !line.starts_with("OK (") {
            return;
        }
        if let Some(ran) = self.ran.take().or_else(|| number_before(line, " test")) {
            self.set(ran, 0);
        }
    }

    /// Parses `FAILED (failures=1, errors=2)`, `FAIL\tpkg`, `Failed!  - Failed: 1, Passed: 2`.
    fn verdict_failed(&mut self, line: &str) {
        if line.starts_with("FAILED (") {
            let failed = number_after(line, "failures=").unwrap_or(0)
                + number_after(line, "errors=").unwrap_or(0);
            let ran = self.ran.take().unwrap_or(failed);
            self.set(ran.saturating_sub(failed), failed.max(1));
        } else if line.starts_with("FAIL\t") && self.parts.is_none_or(|parts| parts.failed == 0) {
            self.add(0, 1);
        } else if line.starts_with("Failed!") {
            self.labelled(line);
        }
    }

    /// Parses `test result: ok. 5 passed; 0 failed; …` and `tests finished: 5 passed, 1 failed, in 0.1 seconds`.
    fn cargo(&mut self, line: &str) {
        let rest =
            line.strip_prefix("test result: ").or_else(|| line.strip_prefix("tests finished: "));
        if let Some(rest) = rest {
            let failed = number_before(rest, " failed").unwrap_or(0)
                + number_before(rest, " exception").unwrap_or(0);
            self.add(number_before(rest, " passed").unwrap_or(0), failed);
        }
    }

    /// Parses `Tests: 1 failed, 5 passed, 6 total`, `Tests  1 failed | 5 passed (6)`, `Tests run: 5, Failures: 1,
    /// Errors: 0`.
    fn labelled(&mut self, line: &str) {
        if let Some(run) = number_after(line, "Tests run: ") {
            let failed = number_after(line, "Failures: ").unwrap_or(0)
                + number_after(line, "Errors: ").unwrap_or(0);
            self.set(run.saturating_sub(failed), failed);
        } else if let Some(passed) =
            number_after(line, "Passed: ").filter(|_| !line.starts_with('T'))
        {
            self.set(passed, number_after(line, "Failed: ").unwrap_or(0));
        } else if let Some(rest) = line.strip_prefix("Tests") {
            let passed = number_before(rest, " passed");
            let failed =
                number_before(rest, " failed").or_else(|| number_after(rest, "Failures: "));
            if passed.is_some() || failed.is_some() {
                self.set(passed.unwrap_or(0), failed.unwrap_or(0));
            }
        }
    }

    /// Parses `# pass 5`, `# fail 1`.
    fn tap(&mut self, rest: &str) {
        if let Some(passed) = rest.strip_prefix("pass ").and_then(|n| n.trim().parse().ok()) {
            self.set(passed, 0);
        } else if let Some(failed) = rest.strip_prefix("fail ").and_then(|n| n.trim().parse().ok())
        {
            let passed = self.total.unwrap_or_default().passed;
            self.set(passed, failed);
        }
    }
}

/// Returns the number directly before `word`.
fn number_before(text: &str, word: &str) -> Option<u32> {
    let end = text.find(word)?;
    let before = &text[..end];
    let start = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    before.get(start..)?.parse().ok()
}

/// Returns the number directly after `word`.
fn number_after(text: &str, word: &str) -> Option<u32> {
    let rest = &text[text.find(word)? + word.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_summaries_are_parsed() {
        for (text, want) in [
            ("=== 3 failed, 2 passed, 1 warning in 0.12s ===", Some((2, 3))),
            ("5 passed in 0.10s", Some((5, 0))),
            ("=== 1 error in 0.30s ===", Some((0, 1))),
            ("== 2 passed, 1 error in 1.2s ==", Some((2, 1))),
            ("=== no tests ran in 0.01s ===", Some((0, 0))),
            ("1 skipped, 4 passed in 2s", Some((4, 0))),
            ("Ran 12 tests in 0.4s\n\nOK", Some((12, 0))),
            ("Ran 12 tests in 0.4s\n\nFAILED (failures=1, errors=2)", Some((9, 3))),
            ("Ran 1 test in 0.0s\n\nOK (skipped=1)", Some((1, 0))),
            ("test result: ok. 5 passed; 0 failed; 0 ignored", Some((5, 0))),
            (
                "test result: ok. 5 passed; 0 failed;\ntest result: FAILED. 1 passed; 2 failed;",
                Some((6, 2)),
            ),
            ("Tests:       1 failed, 5 passed, 6 total", Some((5, 1))),
            ("      Tests  1 failed | 5 passed (6)", Some((5, 1))),
            ("  5 passing (12ms)\n  1 failing", Some((5, 1))),
            ("ok  \texample.com/a\t0.1s\nok  \texample.com/b\t0.2s", Some((2, 0))),
            ("--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/a\t0.1s", Some((0, 1))),
            ("FAIL\texample.com/a [build failed]", Some((0, 1))),
            ("Tests run: 5, Failures: 1, Errors: 1, Skipped: 0", Some((3, 2))),
            ("[ERROR] Tests run: 4, Failures: 1, Errors: 0", Some((3, 1))),
            ("tests finished: 5 passed, 1 failed, in 0.10 seconds", Some((5, 1))),
            (
                "=== tests finished: 82 passed, 3 expected to fail, in 2.56 seconds ===",
                Some((82, 0)),
            ),
            ("100% tests passed, 0 tests failed out of 7", Some((7, 0))),
            ("OK (5 tests, 9 assertions)", Some((5, 0))),
            ("7 examples, 2 failures", Some((5, 2))),
            ("# pass 5\n# fail 1", Some((5, 1))),
            ("ℹ pass 3\nℹ fail 0", Some((3, 0))),
            ("Passed!  - Failed: 0, Passed: 8, Skipped: 0", Some((8, 0))),
            ("Total: 12 | Passed: 9 | Failed: 3", None),
            ("all good", None),
            ("OK", None),
            ("3 errors were reported to the user in the past", None),
            ("2 files failed to open because the disk was full, in total", None),
        ] {
            let parser = find(&text.lines().collect::<Vec<_>>());
            assert_eq!(parser.map(|result| (result.passed, result.failed)), want, "{text:?}");
        }
    }
}
