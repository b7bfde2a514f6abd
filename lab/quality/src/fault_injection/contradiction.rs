//! Contradictions: a claim against the previous tool result or the previous statement.

use serde_json::Value;

use super::agent_style::{AgentStyle, object};
use super::{Fault, place};
use rb_quality::corpus::{LabelledRun, OwnedStep};
use rb_quality::rng::Rng;

/// Test commands and failing outputs.
const FAILING_TESTS: [(&str, &str); 10] = [
    (
        "python -m pytest -q tests",
        "..F..\n=== FAILURES ===\n    assert result == 3\nE   assert 2 == 3\n1 failed, 4 passed in 0.31s",
    ),
    (
        "npm test",
        "FAIL test/cart.test.js\n  ✕ adds an item (12 ms)\n\nTests: 2 failed, 9 passed, 11 total",
    ),
    (
        "cargo test",
        "test parse::empty ... FAILED\n\ntest result: FAILED. 17 passed; 1 failed; 0 ignored",
    ),
    ("go test ./...", "--- FAIL: TestMerge (0.01s)\n    merge_test.go:41: got 1, want 2\nFAIL"),
    (
        "mvn -q test",
        "[ERROR] Tests run: 24, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE",
    ),
    ("bundle exec rspec", "Failures:\n\n  1) Order totals the lines\n\n31 examples, 1 failure"),
    ("make check", "FAIL: t/07-encode\n1 of 12 tests failed\nmake: *** [check] Error 1"),
    (
        "python -m unittest",
        "FAIL: test_window (suite.TestRange)\nAssertionError: 7 != 8\n\nFAILED (failures=1)",
    ),
    ("ctest", "The following tests FAILED:\n\t  3 - codec (Failed)\nErrors while running CTest"),
    (
        "python runtests.py",
        "ERROR: test_basic\nTraceback (most recent call last):\nKeyError: 'size'\nFAILED (errors=1)",
    ),
];
const TESTING: [&str; 8] = [
    "Let me run the tests.",
    "Now the tests.",
    "Running the suite.",
    "Test it.",
    "I'll execute the test suite.",
    "Time to test.",
    "Let's see what the tests say.",
    "Checking with the tests.",
];
const CLAIMS_PASS: [&str; 12] = [
    "All tests pass now.",
    "The tests pass, so this part is settled.",
    "Great, every test succeeded.",
    "The test suite is green.",
    "Tests are passing. I can move on.",
    "The run shows that all checks passed.",
    "Good: no test fails any more.",
    "As the output shows, the tests were successful.",
    "All checks are green, continuing with the next part.",
    "The whole suite passes without failures.",
    "Perfect, the tests ran successfully.",
    "That worked: the tests all pass.",
];

/// Commands that show a file and their outputs, with `{}` for the file.
const SHOWN: [(&str, &str); 8] = [
    ("cat {}", "import os\n\nLIMIT = 20\n\ndef main():\n    return LIMIT"),
    ("ls -l {}", "-rw-r--r-- 1 user user 2318 May  4 10:12 {}"),
    ("head -n 5 {}", "# settings\nname = \"core\"\nversion = 2\n"),
    ("wc -l {}", "148 {}"),
    (
        "sed -n '1,6p' {}",
        "class Reader:\n    def __init__(self, source):\n        self.source = source",
    ),
    ("stat {}", "  File: {}\n  Size: 2318      \tBlocks: 8          regular file"),
    ("file {}", "{}: ASCII text"),
    ("grep -n 'def ' {}", "4:def main():\n19:def load():"),
];
const LOOKING: [&str; 8] = [
    "Let me look at it.",
    "I'll open the file.",
    "Looking at the file.",
    "View it.",
    "What does the file hold?",
    "I want to see this file.",
    "Let me inspect the file.",
    "Reading it first.",
];
const CLAIMS_MISSING: [&str; 10] = [
    "The file {} does not exist.",
    "{} does not exist, so I have to do this elsewhere.",
    "There is no file {} in this project.",
    "{} is missing.",
    "It turns out that {} doesn't exist here.",
    "I cannot find {}; the file does not exist.",
    "No such file as {} exists, moving on.",
    "Since {} is not there, another place has to be used.",
    "The project has no {}.",
    "{} was not found in the repository.",
];
const CLAIMS_UNKNOWN: [&str; 10] = [
    "There is no record of {}.",
    "{} does not exist.",
    "Nothing was found for {}.",
    "I could not find anything about {}.",
    "No entry for {} exists in the system.",
    "The lookup for {} returned nothing.",
    "{} could not be found.",
    "There are no results for {}.",
    "It appears that {} does not exist in the database.",
    "The search shows that {} is not there.",
];

/// Statements and their opposites, with `{}` for the subject.
const FLIPS: [(&str, &str); 14] = [
    ("The cause is {}.", "The cause is not {}."),
    ("{} is required for this.", "{} is not required for this."),
    ("{} is correct as it stands.", "{} is incorrect as it stands."),
    ("{} works as intended.", "{} does not work as intended."),
    ("{} is available.", "{} is not available."),
    ("The request for {} can be fulfilled.", "The request for {} cannot be fulfilled."),
    ("{} has been handled completely.", "{} has not been handled."),
    ("The answer depends on {}.", "The answer does not depend on {}."),
    ("{} is valid.", "{} is invalid."),
    ("I have already checked {}.", "I have never checked {}."),
    ("{} is the right place for the change.", "{} is not the right place for the change."),
    ("{} supports this.", "{} does not support this."),
    ("The value of {} is true.", "The value of {} is false."),
    ("There is a problem with {}.", "There is no problem with {}."),
];

pub(super) fn inject(run: &LabelledRun, style: &AgentStyle, rng: &mut Rng) -> Option<Fault> {
    let at = place(run, rng);
    match rng.below(3) {
        0 if style.edits_files() => claims_pass(run, at, style, rng),
        1 if style.edits_files() => claims_missing(run, at, style, rng),
        0 | 1 => claims_unknown(run, at, style, rng),
        _ => None,
    }
    .or_else(|| flips(run, at, style, rng))
}

/// The next step of the run with a claim prepended to its thought.
fn next_with(run: &LabelledRun, at: usize, thought: String) -> Option<OwnedStep> {
    let step = run.steps.get(at)?;
    Some(OwnedStep { thought, user_input: String::new(), ..step.clone() })
}

/// Inserts `shown` and replaces the next step by `claim`.
fn replace_step(
    variant: &'static str,
    run: &LabelledRun,
    at: usize,
    shown: OwnedStep,
    claim: OwnedStep,
) -> Option<Fault> {
    let mut steps = run.steps.get(..at)?.to_vec();
    steps.push(shown);
    steps.push(claim);
    steps.extend(run.steps.get(at + 1..)?.iter().cloned());
    Some(Fault { variant, steps, changed_from: at, start: at + 1 })
}

fn claims_pass(run: &LabelledRun, at: usize, style: &AgentStyle, rng: &mut Rng) -> Option<Fault> {
    let (command, output) = rng.pick(&FAILING_TESTS);
    let mut test = style.command(command, output, true)?;
    test.thought = style.thought(rng.pick(&TESTING));
    let claim = next_with(run, at, style.thought(rng.pick(&CLAIMS_PASS)))?;
    replace_step("tests pass", run, at, test, claim)
}

fn claims_missing(
    run: &LabelledRun,
    at: usize,
    style: &AgentStyle,
    rng: &mut Rng,
) -> Option<Fault> {
    let path = style.path(rng);
    let (command, output) = rng.pick(&SHOWN);
    let mut show =
        style.command(&command.replace("{}", &path), &output.replace("{}", &path), false)?;
    show.thought = style.thought(rng.pick(&LOOKING));
    let claim = next_with(run, at, style.thought(&rng.pick(&CLAIMS_MISSING).replace("{}", &path)))?;
    replace_step("file missing", run, at, show, claim)
}

/// Claims after a successful lookup that nothing was found.
fn claims_unknown(
    run: &LabelledRun,
    at: usize,
    style: &AgentStyle,
    rng: &mut Rng,
) -> Option<Fault> {
    let found = |(_, step): &(usize, &OwnedStep)| {
        let answer = step.observation.to_lowercase();
        !step.tool.is_empty()
            && step.observation.len() > 40
            && !["error", "not find", "no result", "not found"].iter().any(|no| answer.contains(no))
            && subject(&step.input).is_some()
    };
    let (seen, step) =
        run.steps.iter().enumerate().take(at).skip(super::MIN_PREFIX - 1).rfind(found)?;
    let words = rng.pick(&CLAIMS_UNKNOWN).replace("{}", &subject(&step.input)?);
    let claim = OwnedStep { thought: style.thought(&words), ..OwnedStep::default() };
    Some(Fault::inserted("record missing", run, seen + 1, &[claim]))
}

/// The short argument of a call.
fn subject(input: &str) -> Option<String> {
    let text = match object(input) {
        Some(fields) => fields.values().find_map(Value::as_str)?.to_owned(),
        None => input.to_owned(),
    };
    ((3..60).contains(&text.len()) && !text.contains('\n') && !text.contains('(')).then_some(text)
}

/// States something, and its opposite in the next step.
fn flips(run: &LabelledRun, at: usize, style: &AgentStyle, rng: &mut Rng) -> Option<Fault> {
    let about = style.name(rng);
    let (claim, denial) = rng.pick(&FLIPS);
    let statement =
        OwnedStep { thought: style.thought(&claim.replace("{}", &about)), ..OwnedStep::default() };
    let claim = next_with(run, at, style.thought(&denial.replace("{}", &about)))?;
    replace_step("says the opposite", run, at, statement, claim)
}
