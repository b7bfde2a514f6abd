//! Which steps change something, and which look at it: a coarse reading, good enough to choose places.
//!
//! It is deliberately not the engine's reading: a plant must not be chosen by the rules that look for it.

use super::hand::words_of;
use crate::corpus::OwnedStep;

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
/// Files that a run may leave unchecked: they are not the work.
const SCRATCH: [&str; 7] = ["repro", "/tmp/", "test_", "debug", "scratch", "verify", "check"];

/// Whether the step changes a file, or calls a tool that does.
pub(super) fn is_change(step: &OwnedStep) -> bool {
    let tool = step.tool.to_lowercase();
    if CHANGING_TOOLS.iter().any(|name| tool.contains(name)) {
        return true;
    }
    let words = words_of(&step.input);
    CHANGING_COMMANDS.iter().any(|command| words.contains(command)) || redirects(&words)
}

/// Whether a command writes to a file by `>`.
fn redirects(words: &str) -> bool {
    let to_file = |rest: &str| {
        let target = rest.trim_start_matches('>').trim_start();
        target.starts_with(|c: char| c.is_alphanumeric() || "/.~\"'$".contains(c))
            && !target.starts_with("/dev/")
    };
    words.match_indices(" >").any(|(at, found)| words.get(at + found.len()..).is_some_and(to_file))
}

/// Whether a text names a file that is not the work.
pub(super) fn is_scratch(text: &str) -> bool {
    SCRATCH.iter().any(|name| text.contains(name))
}

/// Whether the step changes the work and does not look at it in the same breath.
pub(super) fn is_bare_change(step: &OwnedStep) -> bool {
    let words = words_of(&step.input);
    // What stands in a here-document or a quoted script is content, not a command.
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

/// A command line without its first `sed -i …` or the like, whose script may contain anything.
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
    fn changes_are_told_from_looks() {
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
