//! Random runs built from words that the monitors look for and from near misses.

use serde_json::{Map, Value, json};

/// `SplitMix64` generator: produces the same runs on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).expect("small")).expect("small")
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}

const THOUGHTS: &str = "maybe|Perhaps|possibly|might|could|not sure|uncertain|I think|probably|actually|wait|hmm|reconsider|\
    let me think|on second thought|await|mighty|\u{212a}|İ|ſ|MİGHT|error|fail|exception|bug|traceback|\
    broken|crash|wrong|issue|undefined|/usr/lib/x.so|C:\\Users\\me\\f.txt|src/main.rs|a.b.c|é.a|\
    'quoted text'|\"xy\"|`code here`|don't|½|Ⓐ|x\u{301}.y|e\u{301}|٣٤|日本語|_private.name|1.5|/a/b/c|\
    \\x\\y|D:/q/r|the|file|now|ok|so|then|run|it|again|done|step|look|and|done.|\u{85}|\u{2028}|\u{1f}|\n";

/// Retractions and near misses.
const RETRACTIONS: &str = "the bug is not|issue is actually|the  problem\u{a0}is not|fix is notable|debug is not|i was wrong|\
    I\u{1c}WAS\twrong|never mind|nevermind|never\u{2003}mind|Disregard that|disregard my  last|\
    disregard thatch|ı was wrong|DIſREGARD that";

const OBSERVATIONS: &str = "error|Error:|EXCEPTION|Traceback (most recent call last)|failed |FAILED|not found|assertion|\
    AssertionError|invalid|failures=|failures=2|test|tests passed|Teſt|ok|/tmp/abc/x.py|/tmp/|\
    C:\\Users\\me\\a|/var/folders/zz/1|c:\\users\\x|123e4567-e89b-12d3-a456-426614174000|\
    123E4567-E89B-12D3-A456-426614174001|x123e4567-e89b-12d3-a456-426614174000|0x7f3a|0XABC|0x7f3ag|\
    é0x12|pid=12|PID: 77|pid 9|pid  9|pıd=3|pid=٣٤|cupid=4|2024-01-02 03:04:05|2024-01-02T03:04:05.123Z|\
    ٢٠٢٤-01-02 03:04:05|2024-01-02_03:04:05|1234567890|12345678901234567890|123456789|١٢٣٤٥٦٧٨٩٠|\
    a1234567890|1234567890½|line|in|at|İ|K|\u{1c}|\u{301}|∎|ﬁnd|日本|Ⓐ";

const TOOLS: &str = "bash|read|edit|Edit|WRITE|str_replace|str_replace_editor|patch|apply_patch|create_file|overwrite|\
    pytest|run_tests|npm test|TEST|latest|editor| edit|edİt|teſt|overwrıte|test\u{212a}";

const PATHS: &str = "src/a.rs|src/b.py|a.rs|C:\\x\\y.txt|no path here|x.tar.gz|é/ü.md|-.a|...a|a.b1|file.longending|½.rs|\
    x\u{301}.rs|٣.py";

fn split(choices: &str) -> Vec<&str> {
    choices.split('|').collect()
}

fn words(random: &mut Random, choices: &str, max: usize) -> String {
    let (choices, mut text) = (split(choices), String::new());
    for _ in 0..random.below(max + 1) {
        text.push_str(random.of(&choices));
        text.push_str(
            random.of(&[" ", " ", " ", " ", "  ", "\n", "\t", "", "\u{1d}", "\u{a0}", ". "]),
        );
    }
    text
}

fn a_thought(random: &mut Random, retracts: bool) -> Value {
    if retracts && random.one_in(4) {
        return json!(words(random, RETRACTIONS, 3));
    }
    match random.below(12) {
        0 => Value::Null,
        1 => json!(random.of(&["", " ", "\n\t", "\u{1c}", "\u{2003}\u{85}", "\u{200b}"])),
        2 => json!([{ "type": "text", "text": "maybe" }]),
        3 => json!(words(random, THOUGHTS, 400)),
        4 => json!("look at it and then run it again so it is done"),
        _ => json!(words(random, THOUGHTS, 14)),
    }
}

fn an_input(random: &mut Random, last: &str) -> Value {
    match random.below(10) {
        0 => Value::Null,
        1 => json!({ "path": random.of(&split(PATHS)), "new": "x" }),
        2 => json!(random.below(100)),
        3 => json!(""),
        4 | 5 => json!(last),
        _ => json!(format!(
            "{} {}",
            random.of(&split(PATHS)),
            words(random, "let x = 1;|fn f()|a|b|é|😀", 6)
        )),
    }
}

fn an_observation(random: &mut Random, last: &str, fails: bool) -> Value {
    match if fails { random.below(10) } else { 9 - random.below(3) * random.below(2) } {
        0 => Value::Null,
        1 => json!({ "error": "failed" }),
        2 => json!(7),
        // The same failure with different volatile parts.
        3..=5 => {
            let number = random.next();
            let parts = [
                format!("/tmp/{number}/x"),
                format!("0x{number:x}"),
                format!("pid={}", number % 1000),
                format!("2024-01-02 03:04:{:02}", number % 60),
                format!("{}", 10_000_000_000 + number % 1_000_000_000),
            ];
            let volatile = &parts[random.below(parts.len())];
            json!(format!("test failed {volatile} in parse"))
        }
        6 => json!(last),
        7 => json!(words(random, OBSERVATIONS, 120)),
        _ => json!(words(random, OBSERVATIONS, 8)),
    }
}

struct Habits<'a> {
    tools: Vec<&'a str>,
    retracts: bool,
    fails: bool,
}

fn a_step(random: &mut Random, habits: &Habits<'_>, last: &mut (String, String)) -> Value {
    let tools = &habits.tools;
    let mut step = Map::new();
    let mut set = |key: &str, value: Value, leave_out: bool| {
        if !leave_out {
            step.insert(key.to_owned(), value);
        }
    };
    set("thought", a_thought(random, habits.retracts), random.one_in(10));
    let action = match random.below(12) {
        0 => Value::Null,
        1 => json!(""),
        2 => random.of(&[&json!(0), &json!(false), &json!([]), &json!({}), &json!(0.0)]).clone(),
        _ => json!(random.of(tools)),
    };
    set("action", action, random.one_in(8));
    let calls = match random.below(6) {
        0 => json!([]),
        1 => Value::Null,
        2 => json!([""]),
        3 => json!([null]),
        4 => json!([random.of(tools), "second"]),
        _ => json!([random.of(tools)]),
    };
    set("tool_calls", calls, !random.one_in(4));
    let input = an_input(random, &last.0);
    last.0 = input.as_str().unwrap_or(&last.0).to_owned();
    set("action_input", input, random.one_in(10));
    let observation = an_observation(random, &last.1, habits.fails);
    last.1 = observation.as_str().unwrap_or(&last.1).to_owned();
    set("observation", observation, random.one_in(10));
    let flags = [
        json!(true),
        json!(false),
        json!(null),
        json!(0),
        json!(1),
        json!(0.0),
        json!(-0.5),
        json!(""),
        json!("false"),
        json!([]),
        json!([0]),
        json!({}),
        json!({ "a": null }),
    ];
    let flag =
        if random.one_in(3) { flags[random.below(flags.len())].clone() } else { json!(false) };
    set("is_error", flag, random.one_in(4));
    set("step_index", json!(random.below(9)), random.one_in(2));
    Value::Object(step)
}

pub(crate) fn a_run(random: &mut Random) -> Vec<Value> {
    let count = match random.below(10) {
        0 => random.below(3),
        1 => random.below(61),
        _ => random.below(25),
    };
    // Few tools, so that streaks and low diversity occur.
    let pool = random.below(5) + 1;
    let habits = Habits {
        tools: (0..pool).map(|_| random.of(&split(TOOLS))).collect(),
        retracts: random.one_in(4),
        fails: random.one_in(2),
    };
    let mut last = (String::new(), String::new());
    (0..count).map(|_| a_step(random, &habits, &mut last)).collect()
}
