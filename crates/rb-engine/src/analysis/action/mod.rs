//! Understanding a step: what kind of act it is, what it touches, and how it came out.
//!
//! Monitors that reason about meaning all need the same answers: did the agent edit, test, or only look?
//! Which file, which lines, which question? Is this the same act as before in other words? Did it fail, and with
//! the same error? They are given here, once per step, also when everything hides inside one `bash` tool.
//!
//! A compound command has several parts. The kind of the act is that of its most consequential part
//! (`Kind::BY_PRIORITY`); the flags tell about the others, so `sed -i … && pytest` is an edit that also tests.
//!
//! **Limits.** Every list has at most sixteen entries, every text a maximal length; the time is linear in the step.
//!
//! **Blind spots.** Variables of the shell are not followed; code is read by its calls, not by its flow; an unknown
//! tool is judged by its name.

mod args;
mod code;
mod command;
mod describe;
mod effects;
mod error_lines;
mod file_refs;
mod fingerprints;
mod normalize;
mod outcome;
mod patch;
mod programs;
mod read_commands;
mod shell;
mod structured_tools;
mod test_summary;
mod tools;

pub(crate) use describe::entities;
pub use file_refs::{FileRef, Lines};
pub use outcome::{Outcome, Why};
pub use test_summary::TestResult;
pub use tools::{ToolPolicies, ToolPolicy};

use crate::step::Step;
use args::Args;
use effects::Effects;
use outcome::Source;
use tools::ToolKind;

/// Arguments are read this far; what follows counts only in the exact key.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// What kind of act a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Hands in the work, or gives the final answer.
    Finish,
    /// Changes files.
    Edit,
    /// Changes something else than files: books, cancels, sends, posts.
    Change,
    /// Runs tests.
    Test,
    /// Runs something else, or does what we do not know.
    Run,
    /// Looks for something.
    Search,
    /// Looks at something.
    Read,
    /// Waits, or asks how far something is.
    Poll,
    /// Thinks or plans by means of a tool.
    Think,
    /// Speaks; no tool, or one that only speaks.
    Message,
}

impl Kind {
    /// Which part of a compound act decides: what cannot be undone first, then what changes the work, then what
    /// tells about the work, then what only looks.
    pub const BY_PRIORITY: [Self; 10] = [
        Self::Finish,
        Self::Edit,
        Self::Change,
        Self::Test,
        Self::Run,
        Self::Search,
        Self::Read,
        Self::Poll,
        Self::Think,
        Self::Message,
    ];

    /// The act only looks: it cannot have changed anything.
    pub fn is_look(self) -> bool {
        matches!(self, Self::Search | Self::Read | Self::Poll)
    }

    /// The act changes something, in files or elsewhere.
    pub fn is_effect(self) -> bool {
        matches!(self, Self::Edit | Self::Change)
    }
}

/// A step, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one act, each asked for by name"
)]
pub struct ActionSummary {
    /// What decides about the act.
    pub kind: Kind,
    /// Some part of it changes files.
    pub edits: bool,
    /// Some part of it runs tests.
    pub tests: bool,
    /// Some part of it shows whether the work is right: tests, builds, lints, runs a program, looks at a diff, or reads
    /// again what it has just written.
    pub verifies: bool,
    /// Takes back earlier work (`git checkout -- f`, `git stash`, `undo_edit`).
    pub reverts: bool,
    /// Calling it again and again is how it is used: a wait, or a tool the host calls so.
    pub poll: bool,
    /// The host says that the same call may answer differently each time.
    pub stateful: bool,
    /// Files it reads, with the lines where they are known; also folders and pages.
    pub reads: Vec<FileRef>,
    /// Files it writes.
    pub writes: Vec<FileRef>,
    /// Files it removes or moves away. Removing alone is no edit: it is mostly tidying up.
    pub removes: Vec<FileRef>,
    /// Programs with their sub-commands (`git diff`, `cargo test`).
    pub commands: Vec<String>,
    /// Which tests it runs, where it says so.
    pub test_targets: Vec<String>,
    /// What it looks for.
    pub query: Option<String>,
    /// The exact act: tool and arguments, whatever their order and spacing.
    pub key: u64,
    /// The act without explanations, decoration (`cd`, `echo`, comments) and limits of time or output.
    pub loose_key: u64,
    /// What the act is about: its kind and its files, question or targets, whatever else it says.
    pub target_key: u64,
    /// A short text that says what the act is about, for comparing meanings.
    pub text_for_meaning: String,
    /// How it came out.
    pub outcome: Outcome,
}

/// Understands a step.
pub fn understand(step: &Step<'_>, policies: &ToolPolicies) -> ActionSummary {
    let mut scratch = String::new();
    let Some(action) = step.action else { return spoken(step, &mut scratch) };
    let policy = policies.of(action.tool);
    let input = action.input.text();
    let read = &input[..input.floor_char_boundary(INPUT_BYTES_MAX)];
    let args = Args::read(read);
    let mut parts = Effects::default();
    let manner = tools::manner(action.tool);
    take_apart(manner, &args, &mut parts);

    let kind = policy.kind.or_else(|| parts.primary()).unwrap_or(Kind::Run);
    if let Some(kind) = policy.kind {
        parts.note(kind);
    }
    let keys = fingerprints::of(&action, &args, kind, &parts, &mut scratch);
    let source = Source {
        prints: matches!(manner, ToolKind::Shell | ToolKind::Code),
        compares: parts
            .commands
            .iter()
            .any(|name| matches!(name.as_str(), "diff" | "cmp" | "git diff")),
    };
    let outcome = Outcome::of(step, kind, source, &mut scratch);
    ActionSummary {
        kind,
        edits: parts.edits,
        tests: parts.tests,
        verifies: parts.verifies,
        reverts: parts.reverts,
        poll: policy.poll || kind == Kind::Poll || parts.waits,
        stateful: policy.stateful,
        text_for_meaning: describe::meaning(&action, &args, kind, &parts),
        key: keys.exact,
        loose_key: keys.loose,
        target_key: keys.target,
        reads: parts.reads,
        writes: parts.writes,
        removes: parts.removes,
        commands: parts.commands,
        test_targets: parts.targets,
        query: parts.query,
        outcome,
    }
}

fn take_apart(manner: ToolKind, args: &Args<'_>, parts: &mut Effects) {
    match manner {
        ToolKind::Shell => {
            let (line, waits) = command_line(args);
            command::walk(&line, parts, 0);
            if waits {
                parts.note(Kind::Poll);
            }
        }
        ToolKind::Code => {
            let given =
                args.get(&["code", "python_code", "script", "source", "input", "query", "command"]);
            let text = given.or_else(|| args.plain()).unwrap_or("");
            code::walk(text, parts, 0);
        }
        ToolKind::Editor => structured_tools::editor(args, parts),
        ToolKind::Patch => {
            let given = args.get(&["input", "patch", "diff", "command[1]", "content"]);
            patch::walk(given.or_else(|| args.plain()).unwrap_or(""), parts);
        }
        ToolKind::Sql => {
            let given = args.get(&["sql", "query", "statement", "command"]);
            let statement = given.or_else(|| args.plain()).unwrap_or("");
            parts.note(tools::sql_kind(statement));
            parts.ask(statement);
        }
        ToolKind::Plain(kind) => structured_tools::walk(args, kind, parts),
    }
}

/// The command line of a shell tool, and whether it is empty, which asks a running command for more.
fn command_line<'s>(args: &'s Args<'_>) -> (std::borrow::Cow<'s, str>, bool) {
    const NAMES: [&str; 9] = [
        "command",
        "commands",
        "cmd",
        "script",
        "bash_command",
        "shell_command",
        "code",
        "input",
        "keystrokes",
    ];
    if let Some(line) = args.get(&NAMES).or_else(|| args.plain()) {
        return (line.into(), false);
    }
    // `["bash", "-lc", "…"]`: the words of one command, the last of which may be a whole script.
    let list = |name: &str| args.all(name).map(str::to_owned).collect::<Vec<String>>();
    let words = NAMES
        .iter()
        .map(|name| list(name))
        .chain([list("")])
        .find(|words| words.iter().any(|w| !w.is_empty()));
    match words {
        Some(words) => match words.as_slice() {
            [shell, flag, script, ..]
                if flag.starts_with('-') && flag.ends_with('c') && shell.ends_with("sh") =>
            {
                (script.clone().into(), false)
            }
            _ => (quoted(&words).into(), false),
        },
        None => ("".into(), true),
    }
}

/// Words as one command line, each still one word.
fn quoted(words: &[String]) -> String {
    let mut line = String::new();
    for word in words {
        let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,+@".contains(&b));
        if plain {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', "'\\''"));
            line.push('\'');
        }
        line.push(' ');
    }
    line
}

/// A step without a tool: the agent speaks.
fn spoken(step: &Step<'_>, scratch: &mut String) -> ActionSummary {
    let said = &step.thought[..step.thought.floor_char_boundary(INPUT_BYTES_MAX)];
    let key = normalize::fingerprint(scratch, said, normalize::Level::Spacing);
    ActionSummary {
        kind: Kind::Message,
        edits: false,
        tests: false,
        verifies: false,
        reverts: false,
        poll: false,
        stateful: false,
        reads: Vec::new(),
        writes: Vec::new(),
        removes: Vec::new(),
        commands: Vec::new(),
        test_targets: Vec::new(),
        query: None,
        key,
        loose_key: key,
        target_key: key,
        text_for_meaning: describe::short(said),
        outcome: Outcome::of(step, Kind::Message, Source::default(), scratch),
    }
}

#[cfg(test)]
mod tests;
