//! Coarse detection of edits and checks, to choose places for faults.
//!
//! Independent of the engine's analysis: the place of a fault must not be chosen by the rules that detect it.

use super::agent_style::words_of;
use rb_quality::corpus::OwnedStep;

const CHANGING_TOOLS: [&str; 9] =
    ["edit", "write", "replace", "patch", "create", "insert", "update", "modify", "apply"];
const CHANGING_COMMANDS: [&str; 10] = [
    "sed -i",
    "perl -pi",
    "perl -i",
    "git apply",
    "patch -p",
    "tee ",
    ".write(",
    "write_text(",
    "cat >",
    "cat <<",
];
const LOOKING_COMMANDS: [&str; 22] = [
    "test",
    "python ",
    "python3 ",
    "node ",
    "cargo ",
    "make",
    "npm ",
    "go run",
    "git diff",
    "git status",
    "git show",
    "grep",
    "ls ",
    "diff ",
    "./",
    "bash ",
    "sh ",
    "head ",
    "tail ",
    "wc ",
    "mypy",
    "ruff",
];
/// Marks of scratch files, which need no check.
const SCRATCH: [&str; 7] = ["repro", "/tmp/", "test_", "debug", "scratch", "verify", "check"];

/// Returns true if the step edits a file or calls an editing tool.
pub(super) fn is_change(step: &OwnedStep) -> bool {
    let tool = step.tool.to_lowercase();
    if CHANGING_TOOLS.iter().any(|name| tool.contains(name)) {
        return true;
    }
    let words = words_of(&step.input);
    CHANGING_COMMANDS.iter().any(|command| words.contains(command)) || redirects(&words)
}

/// Returns true if a command redirects its output to a file.
fn redirects(words: &str) -> bool {
    let to_file = |rest: &str| {
        let target = rest.trim_start_matches('>').trim_start();
        target.starts_with(|c: char| c.is_alphanumeric() || "/.~\"'$".contains(c))
            && !target.starts_with("/dev/")
    };
    words.match_indices(" >").any(|(at, found)| words.get(at + found.len()..).is_some_and(to_file))
}

/// Returns true if the text names a scratch file.
pub(super) fn is_scratch(text: &str) -> bool {
    SCRATCH.iter().any(|name| text.contains(name))
}

/// Returns true if the step edits a file and does not check it in the same call.
pub(super) fn is_bare_change(step: &OwnedStep) -> bool {
    let words = words_of(&step.input);
    // The text of a here-document is content, not a command.
    let commands = words.split("<<").next().unwrap_or_default();
    let after =
        words.rsplit("\nEOF").next().filter(|_| words.contains("\nEOF")).unwrap_or_default();
    let looks = |text: &str| LOOKING_COMMANDS.iter().any(|command| text.contains(command));
    is_change(step)
        && !step.is_error
        && !is_scratch(&words)
        && !looks(after)
        && !looks(&without_edit(commands))
}

/// A command line without a leading `sed -i …` or similar, whose script is arbitrary text.
fn without_edit(commands: &str) -> String {
    let rest = commands.split_once("&&").or_else(|| commands.split_once('\n'));
    let head = commands.split_whitespace().next().unwrap_or_default();
    match head {
        "sed" | "perl" | "cat" | "echo" | "printf" | "tee" => {
            rest.map_or_else(String::new, |(_, rest)| rest.to_owned())
        }
        _ => commands.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_and_checks_are_distinguished() {
        for (tool, input, change, bare) in [
            ("bash", "sed -i 's/a/b/' src/a.py", true, true),
            ("bash", "sed -i 's/a/b/' src/a.py && python -m pytest", true, false),
            ("bash", "cat > src/a.py <<'EOF'\nimport test\nEOF", true, true),
            ("bash", "cat > src/a.py <<'EOF'\nx\nEOF\npytest", true, false),
            ("bash", "cat src/a.py", false, false),
            ("bash", "grep -rn x . 2>/dev/null", false, false),
            ("bash", "echo hello > notes.txt", true, true),
            ("bash", "cat > reproduce.py <<'EOF'\nx\nEOF", true, false),
            ("str_replace_editor", r#"{"path":"a.py","old_str":"x","new_str":"y"}"#, true, true),
            ("read_file", r#"{"path":"a.py"}"#, false, false),
        ] {
            let step = OwnedStep { tool: tool.into(), input: input.into(), ..OwnedStep::default() };
            assert_eq!((is_change(&step), is_bare_change(&step)), (change, bare), "{tool} {input}");
        }
    }
}
