//! Made-up runs of coding agents, the same on every machine: about 2 KB of text a step.
//!
//! Every twenty steps have the same mix of tools, so that any window of twenty is comparable with any other. Thoughts
//! never take anything back, because after that `hedge` has nothing left to do. Shares of thought, argument and
//! observation are those of a recorded coding agent, once over all its steps and once over those with long thoughts
//! (see [`Mix`]); so are, about, the words of doubt and trouble in a thought and the marks of named things, and how often
//! an observation speaks of errors and tests.

/// One step, owning its texts.
pub(super) struct OwnedStep {
    pub(super) thought: String,
    pub(super) tool: &'static str,
    pub(super) input: String,
    pub(super) observation: String,
}

/// Where the text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mix {
    /// Most of it in thoughts, as in the steps in which an agent thinks aloud.
    Talkative,
    /// Half of it in what comes back, as over all steps of a run.
    Terse,
}

impl Mix {
    pub(super) const ALL: [Self; 2] = [Self::Talkative, Self::Terse];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Talkative => "a talkative",
            Self::Terse => "a terse",
        }
    }

    /// Bytes of a thought, and of what comes back.
    fn sizes(self) -> (usize, usize) {
        match self {
            Self::Talkative => (1_350, 520),
            Self::Terse => (700, 1_150),
        }
    }
}

/// How many steps repeat their mix of tools.
pub(super) const PERIOD: usize = 20;

/// What the agent does in the steps of one period.
const MIX: [Act; PERIOD] = [
    Act::Read,
    Act::Search,
    Act::Read,
    Act::Read,
    Act::Edit,
    Act::Test,
    Act::Read,
    Act::Edit,
    Act::Shell,
    Act::Test,
    Act::Search,
    Act::Read,
    Act::Edit,
    Act::Test,
    Act::Shell,
    Act::Read,
    Act::Edit,
    Act::Edit,
    Act::Test,
    Act::Think,
];

#[derive(Clone, Copy)]
enum Act {
    Read,
    Search,
    Edit,
    Test,
    Shell,
    Think,
}

/// The first `steps` steps of the run.
pub(super) fn trace(mix: Mix, steps: usize) -> Vec<OwnedStep> {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    MIX.into_iter().cycle().take(steps).map(|act| step(act, mix, &mut dice)).collect()
}

/// Bytes of an edit; what comes back is shorter by as much.
const EDIT_BYTES: usize = 620;

fn step(act: Act, mix: Mix, dice: &mut Dice) -> OwnedStep {
    let (thought_bytes, bytes) = mix.sizes();
    let file = file(dice);
    if let Act::Think = act {
        let thought = prose(dice, thought_bytes + bytes);
        return OwnedStep { thought, tool: "", input: String::new(), observation: String::new() };
    }
    let thought = prose(dice, thought_bytes);
    let (tool, input, observation) = match act {
        Act::Read | Act::Think => {
            ("read_file", format!("{{\"path\": \"{file}\"}}"), code(dice, bytes))
        }
        Act::Search => {
            let input = format!("{{\"pattern\": \"{}\", \"path\": \"src\"}}", name(dice));
            ("grep", input, hits(dice, bytes))
        }
        Act::Edit => {
            let input = format!("{file}\n{}", code(dice, EDIT_BYTES));
            let more = prose(dice, bytes.saturating_sub(EDIT_BYTES));
            ("str_replace_editor", input, format!("The file {file} has been edited. {more}"))
        }
        Act::Test => ("run_tests", format!("pytest -q {file}"), test_output(dice, bytes)),
        Act::Shell => {
            ("bash", format!("git diff --stat && sed -n '1,80p' {file}"), code(dice, bytes))
        }
    };
    OwnedStep { thought, tool, input, observation }
}

const OPENINGS: [&str; 12] = [
    "The change in",
    "Before going on, I look at",
    "The test for",
    "According to the output,",
    "Next comes",
    "The definition of",
    "Maybe",
    "What matters here is",
    "Reading",
    "The only caller of",
    "I now understand why",
    "Searching for",
];
const MIDDLES: [&str; 12] = [
    "the request handler keeps the old value of",
    "the cache is filled before",
    "only one caller passes",
    "the parser never reaches",
    "two threads could both hold",
    "the error is raised after",
    "the default hides",
    "the fixture builds its own",
    "the second argument replaces",
    "the loop ends one line before",
    "the decorator wraps",
    "the base class already defines",
];
const ENDINGS: [&str; 12] = [
    "so the order of the two calls has to change.",
    "which explains the second failure.",
    "and the first assertion does not see it.",
    "so I keep the signature and change the body.",
    "because the lock is released too early.",
    "and nothing else depends on that.",
    "which might be the reason for the timeout.",
    "so the smallest fix is one line.",
    "and the documentation says the same.",
    "so I will read the rest of that function first.",
    "which is what the issue asks for.",
    "and the other branch returns early.",
];
const NAMES: [&str; 16] = [
    "session", "token", "parser", "buffer", "window", "router", "handler", "schema", "index",
    "cursor", "batch", "retry", "limit", "digest", "worker", "signal",
];
const VERBS: [&str; 8] =
    ["load", "merge", "apply", "flush", "check", "split", "collect", "resolve"];

/// English about code, at least this many bytes.
fn prose(dice: &mut Dice, bytes: usize) -> String {
    fill(bytes, || {
        let (opening, middle, ending) = (dice.of(&OPENINGS), dice.of(&MIDDLES), dice.of(&ENDINGS));
        let (what, other) = (name(dice), dice.of(&NAMES));
        format!(
            "{opening} `{what}` in {} shows that {middle} `self.{other}`, {ending} ",
            file(dice)
        )
    })
}

/// Python-like source, at least this many bytes.
fn code(dice: &mut Dice, bytes: usize) -> String {
    fill(bytes, || {
        let (what, other, verb) = (dice.of(&NAMES), dice.of(&NAMES), dice.of(&VERBS));
        let number = dice.below(4_000);
        match dice.below(5) {
            0 => format!("def {verb}_{what}({other}, limit={number}):\n"),
            1 => format!("    {what} = self.{other}.{verb}({other}_id, timeout={number})\n"),
            2 => format!(
                "    if {what} is None or len({what}) > {number}:\n        return {other}.{verb}()\n"
            ),
            3 => format!("        raise ValueError(f\"invalid {what}: {{{other}!r}}\")\n"),
            _ => format!("    # {verb} the {what} of this {other}, see {}\n", file(dice)),
        }
    })
}

/// The output of a search, at least this many bytes.
fn hits(dice: &mut Dice, bytes: usize) -> String {
    fill(bytes, || {
        let (folder, line) = (dice.of(&["src", "tests"]), dice.below(900));
        let path = format!("{folder}/{}/test_{}.py", dice.of(&NAMES), dice.of(&NAMES));
        format!("{path}:{line}:    {} = {}  # not found\n", name(dice), name(dice))
    })
}

/// The output of a test run that failed or passed, at least this many bytes.
fn test_output(dice: &mut Dice, bytes: usize) -> String {
    let failed = dice.below(3) > 0;
    let mut text = String::from(
        "============================= test session starts ==============================\n",
    );
    let lines = fill(bytes - 150, || {
        let outcome = if failed && dice.below(8) == 0 { "FAILED" } else { "PASSED" };
        format!("{}::test_{} {outcome}\n", file(dice), name(dice))
    });
    text.push_str(&lines);
    let verdict = if failed {
        let (left, right) = (dice.below(90), dice.below(90));
        let address = dice.below(1 << 30);
        format!("E   AssertionError: assert {left} == {right} at 0x7f3a{address:08x}\n")
    } else {
        "all passed\n".to_owned()
    };
    text + &verdict
}

fn fill(bytes: usize, mut more: impl FnMut() -> String) -> String {
    let mut text = String::with_capacity(bytes + 200);
    while text.len() < bytes {
        text.push_str(&more());
    }
    text
}

fn name(dice: &mut Dice) -> String {
    format!("{}_{}", dice.of(&VERBS), dice.of(&NAMES))
}

fn file(dice: &mut Dice) -> String {
    format!("src/{}/{}.py", dice.of(&NAMES), dice.of(&NAMES))
}

/// Numbers that look thrown and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 33) % u64::from(end.max(1))).unwrap_or_default()
    }

    fn of(&mut self, list: &[&'static str]) -> &'static str {
        let len = u32::try_from(list.len()).unwrap_or(u32::MAX);
        list.get(self.below(len) as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(step: &OwnedStep) -> usize {
        step.thought.len() + step.input.len() + step.observation.len()
    }

    #[test]
    fn every_period_has_two_kilobytes_a_step_and_the_same_mix() {
        for (mix, share) in [(Mix::Talkative, 64..=74), (Mix::Terse, 34..=44)] {
            for period in trace(mix, 200).chunks(PERIOD) {
                let all: usize = period.iter().map(bytes).sum();
                let mean = all / PERIOD;
                assert!((1_900..=2_200).contains(&mean), "{mix:?} {mean}");
                let thought: usize = period.iter().map(|step| step.thought.len()).sum();
                assert!(share.contains(&(thought * 100 / all)), "{mix:?} {thought} of {all}");
                let edits = period.iter().filter(|step| step.tool == "str_replace_editor").count();
                assert_eq!(edits, 5);
            }
        }
    }

    #[test]
    fn a_shorter_run_is_the_beginning_of_a_longer_one() {
        for (short, long) in trace(Mix::Terse, 25).iter().zip(trace(Mix::Terse, 60)) {
            assert_eq!((&short.thought, &short.observation), (&long.thought, &long.observation));
        }
    }
}
