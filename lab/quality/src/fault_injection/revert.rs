//! Reverts: an edit that is undone and redone.

use serde_json::Value;

use super::agent_style::{AgentStyle, object};
use super::{Fault, place};
use rb_quality::corpus::{LabelledRun, OwnedStep};
use rb_quality::rng::Rng;

/// Two versions of a line.
const PAIRS: [(&str, &str); 12] = [
    ("timeout = 30", "timeout = 60"),
    ("if value is None:", "if not value:"),
    ("return result", "return list(result)"),
    ("strict=True", "strict=False"),
    ("retries: 3", "retries: 5"),
    ("< limit", "<= limit"),
    ("encoding=None", "encoding=ENCODING"),
    ("sorted(items)", "items"),
    ("self.cache = {}", "self.cache = None"),
    ("def load(path):", "def load(path, mode=MODE):"),
    ("DEBUG = False", "DEBUG = True"),
    ("axis=0", "axis=1"),
];

const FORTH: [&str; 10] = [
    "I'll apply the change here.",
    "This line needs to be adjusted.",
    "Let me switch this to the other form.",
    "The new form should handle the case.",
    "I think the adjusted line is the right one after all.",
    "Changing this should resolve it.",
    "Let me edit the line.",
    "Going with the modified version.",
    "I will update this part of the file.",
    "The modified condition is what we want.",
];
const BACK: [&str; 10] = [
    "Actually, the earlier form was better. Putting it back.",
    "That is not right; I'll restore the previous line.",
    "Let me undo that.",
    "I will return this line to what it was.",
    "This breaks something else, so back to the original.",
    "Reverting this edit.",
    "On reflection the first version is correct.",
    "Let me set it back.",
    "The old line was fine, restoring it.",
    "I'd rather keep what was there before.",
];
const CHECKS: [(&str, &str); 8] = [
    ("python -m pytest -q", "1 failed, 12 passed in 0.84s"),
    ("make test", "FAIL: case_7\nmake: *** [test] Error 1"),
    ("npm test", "Tests: 1 failed, 20 passed, 21 total"),
    ("go test ./...", "--- FAIL: TestLoad (0.00s)\nFAIL"),
    ("cargo test", "test result: FAILED. 30 passed; 1 failed"),
    ("python check.py", "AssertionError: expected 4, got 5"),
    ("./run_checks.sh", "check 3 of 9: not ok"),
    ("python -m unittest", "Ran 14 tests in 0.210s\n\nFAILED (failures=1)"),
];

pub(super) fn inject(run: &LabelledRun, style: &AgentStyle, rng: &mut Rng) -> Option<Fault> {
    let start = place(run, rng);
    let (variant, edits) = if style.edits_files() {
        file_edits(style, rng)?
    } else {
        ("call", call_edits(run, start, rng)?)
    };
    // The fault begins with the second edit.
    let second = if variant == "with checks" { 2 } else { 1 };
    let fault = Fault::inserted(variant, run, start, &edits);
    Some(Fault { start: start + second, ..fault })
}

/// Edits of a file, with or without a check after each.
fn file_edits(style: &AgentStyle, rng: &mut Rng) -> Option<(&'static str, Vec<OwnedStep>)> {
    let path = style.path(rng);
    let (old, new) = rng.pick(&PAIRS);
    let (mut way, mixed) = (rng.below(WAYS), (rng.below(3) == 0));
    let check = rng.pick(&CHECKS);
    let checked = style.runs_commands() && rng.below(2) == 0;
    let mut steps = Vec::new();
    for nth in 0..if checked { 4 } else { 6 } {
        let forth = nth % 2 == 0;
        let (from, to) = if forth { (old, new) } else { (new, old) };
        if mixed {
            way = rng.below(WAYS);
        }
        let mut step = match &style.edit {
            Some(edit) => edit.act(&path, from, to),
            None => style.command(&shell_edit(way, &path, from, to), "", false)?,
        };
        step.thought = style.thought(rng.pick(if forth { &FORTH } else { &BACK }));
        steps.push(step);
        if checked {
            let mut step = style.command(check.0, check.1, true)?;
            step.thought =
                style.thought(rng.pick(&["Let me run it.", "Check.", "Running the checks.", ""]));
            steps.push(step);
        }
    }
    Some((if checked { "with checks" } else { "bare" }, steps))
}

const WAYS: usize = 8;

/// A shell command that replaces `from` by `to`.
fn shell_edit(way: usize, path: &str, from: &str, to: &str) -> String {
    match way {
        0 => format!("sed -i 's|{from}|{to}|' {path}"),
        1 => format!("sed -i -e \"s#{from}#{to}#g\" {path}"),
        2 => format!("perl -pi -e 's/\\Q{from}\\E/{to}/' {path}"),
        3 => format!(
            "python - <<'EOF'\np = '{path}'\ns = open(p).read()\nopen(p, 'w').write(s.replace('''{from}''', '''{to}'''))\nEOF"
        ),
        4 => format!(
            "python3 -c \"import pathlib; p = pathlib.Path('{path}'); p.write_text(p.read_text().replace('''{from}''', '''{to}'''))\""
        ),
        5 => format!(
            "git apply <<'EOF'\n--- a/{path}\n+++ b/{path}\n@@ -10,1 +10,1 @@\n-{from}\n+{to}\nEOF"
        ),
        6 => format!(
            "awk '{{ sub(\"{from}\", \"{to}\"); print }}' {path} > {path}.new && mv {path}.new {path}"
        ),
        _ => format!(
            "patch -p0 <<'EOF'\n--- {path}\n+++ {path}\n@@ -10,1 +10,1 @@\n-{from}\n+{to}\nEOF"
        ),
    }
}

const CHANGING: [&str; 9] =
    ["update", "set", "edit", "modify", "change", "write", "assign", "move", "rename"];

/// Calls that switch one value of a record back and forth.
fn call_edits(run: &LabelledRun, start: usize, rng: &mut Rng) -> Option<Vec<OwnedStep>> {
    let changes = |step: &&OwnedStep| {
        let tool = step.tool.to_lowercase();
        CHANGING.iter().any(|name| tool.contains(name)) && object(&step.input).is_some()
    };
    let source = run.steps.get(..start)?.iter().rev().find(changes)?;
    let fields = object(&source.input)?;
    let key = fields.iter().find(|(key, value)| flipped(key, value).is_some())?.0.clone();
    let other = flipped(&key, fields.get(&key)?)?;
    let step = |nth: usize| {
        let mut fields = fields.clone();
        let forth = nth.is_multiple_of(2);
        if forth {
            fields.insert(key.clone(), other.clone());
        }
        let words = rng.pick(if forth { &FORTH } else { &BACK }).replace("line", "entry");
        OwnedStep {
            thought: if source.thought.is_empty() { String::new() } else { words },
            input: Value::Object(fields).to_string(),
            user_input: String::new(),
            ..source.clone()
        }
    };
    Some((0..6).map(step).collect())
}

/// Another value for a field; `None` for ids.
fn flipped(key: &str, value: &Value) -> Option<Value> {
    if key.ends_with("id") {
        return None;
    }
    match value {
        Value::Bool(flag) => Some(Value::from(!flag)),
        Value::Number(number) => Some(Value::from(number.as_i64()?.wrapping_add(1))),
        Value::String(text) => Some(Value::from(match text.as_str() {
            "economy" => "business".to_owned(),
            "business" => "economy".to_owned(),
            "open" => "closed".to_owned(),
            "high" => "low".to_owned(),
            other => format!("{other} (revised)"),
        })),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
