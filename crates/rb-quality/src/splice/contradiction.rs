//! Contradictions: a statement against what was just seen, or against what was just said.

use serde_json::Value;

use super::hand::{Hand, object};
use super::{Plant, place};
use crate::corpus::{LabelledRun, OwnedStep};
use crate::dice::Dice;

/// A test command and how it fails.
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

/// A command that shows a file, with `{}` for the file, and what it shows.
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

/// A statement and its opposite, with `{}` for what they are about.
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

pub(super) fn plant(run: &LabelledRun, hand: &Hand, dice: &mut Dice) -> Option<Plant> {
    let at = place(run, dice);
    match dice.below(3) {
        0 if hand.edits_files() => claims_pass(run, at, hand, dice),
        1 if hand.edits_files() => claims_missing(run, at, hand, dice),
        0 | 1 => claims_unknown(run, at, hand, dice),
        _ => None,
    }
    .or_else(|| flips(run, at, hand, dice))
}

/// The next step of the run, begun with other words.
fn next_with(run: &LabelledRun, at: usize, thought: String) -> Option<OwnedStep> {
    let step = run.steps.get(at)?;
    Some(OwnedStep { thought, user_input: String::new(), ..step.clone() })
}

/// The steps before, what is planted, the steps after the one that was begun with other words.
fn planted(
    variant: &'static str,
    run: &LabelledRun,
    at: usize,
    shown: OwnedStep,
    claim: OwnedStep,
) -> Option<Plant> {
    let mut steps = run.steps.get(..at)?.to_vec();
    steps.push(shown);
    steps.push(claim);
    steps.extend(run.steps.get(at + 1..)?.iter().cloned());
    Some(Plant { variant, steps, changed_from: at, start: at + 1 })
}

fn claims_pass(run: &LabelledRun, at: usize, hand: &Hand, dice: &mut Dice) -> Option<Plant> {
    let (command, output) = dice.pick(&FAILING_TESTS);
    let mut test = hand.command(command, output, true)?;
    test.thought = hand.say(dice.pick(&TESTING));
    let claim = next_with(run, at, hand.say(dice.pick(&CLAIMS_PASS)))?;
    planted("tests pass", run, at, test, claim)
}

fn claims_missing(run: &LabelledRun, at: usize, hand: &Hand, dice: &mut Dice) -> Option<Plant> {
    let path = hand.path(dice);
    let (command, output) = dice.pick(&SHOWN);
    let mut show =
        hand.command(&command.replace("{}", &path), &output.replace("{}", &path), false)?;
    show.thought = hand.say(dice.pick(&LOOKING));
    let claim = next_with(run, at, hand.say(&dice.pick(&CLAIMS_MISSING).replace("{}", &path)))?;
    planted("file missing", run, at, show, claim)
}

/// Right after a call that found something: it was not found.
fn claims_unknown(run: &LabelledRun, at: usize, hand: &Hand, dice: &mut Dice) -> Option<Plant> {
    let found = |(_, step): &(usize, &OwnedStep)| {
        let answer = step.observation.to_lowercase();
        !step.tool.is_empty()
            && step.observation.len() > 40
            && !["error", "not find", "no result", "not found"].iter().any(|no| answer.contains(no))
            && subject(&step.input).is_some()
    };
    let (seen, step) =
        run.steps.iter().enumerate().take(at).skip(super::MIN_PREFIX - 1).rfind(found)?;
    let words = dice.pick(&CLAIMS_UNKNOWN).replace("{}", &subject(&step.input)?);
    let claim = OwnedStep { thought: hand.say(&words), ..OwnedStep::default() };
    Some(Plant::inserted("record missing", run, seen + 1, &[claim]))
}

/// What a call is about: its short argument.
fn subject(input: &str) -> Option<String> {
    let text = match object(input) {
        Some(fields) => fields.values().find_map(Value::as_str)?.to_owned(),
        None => input.to_owned(),
    };
    ((3..60).contains(&text.len()) && !text.contains('\n') && !text.contains('(')).then_some(text)
}

/// Says it, and says the opposite at the next step.
fn flips(run: &LabelledRun, at: usize, hand: &Hand, dice: &mut Dice) -> Option<Plant> {
    let about = hand.name(dice);
    let (said, denied) = dice.pick(&FLIPS);
    let statement =
        OwnedStep { thought: hand.say(&said.replace("{}", &about)), ..OwnedStep::default() };
    let claim = next_with(run, at, hand.say(&denied.replace("{}", &about)))?;
    planted("says the opposite", run, at, statement, claim)
}
