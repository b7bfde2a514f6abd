//! Classifies the action of a step: kind, files, outcome.
//!
//! The monitors ask the same questions: does the step edit, test or only read? Which file, lines or query? Does it
//! repeat an earlier action in other words? Did it fail with the same error? They are answered once per step, also if
//! everything is inside a single `bash` tool.
//!
//! A compound command has several parts. The kind of the action is that of its most consequential part
//! (`Kind::BY_PRIORITY`). The flags cover the other parts, so `sed -i … && pytest` is an edit that also tests.
//!
//! **Limits.** Every list has at most sixteen entries and every text a maximum length. The time is linear in the size
//! of the step.
//!
//! **Blind spots.** Shell variables are not expanded, code is analysed by its calls only, and an unknown tool is
//! classified by its name.

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
use fingerprints::Keys;
use outcome::Source;
use tools::ToolKind;

/// Bytes of the argument that are analysed. The rest affects only the exact fingerprint.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Submits the work or gives the final answer.
    Finish,
    /// Changes files.
    Edit,
    /// Changes something other than files: books, cancels, sends, posts.
    Change,
    /// Runs tests.
    Test,
    /// Runs something else, or something unknown.
    Run,
    /// Searches.
    Search,
    /// Reads.
    Read,
    /// Waits or asks for progress.
    Poll,
    /// Thinks or plans with a tool.
    Think,
    /// Sends a message: no tool, or a tool that only sends text.
    Message,
}

impl Kind {
    /// Order in which the parts of a compound action determine its kind: first what cannot be undone, then changes,
    /// then checks, then reads.
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

    /// Reports whether the action cannot have changed anything.
    pub fn is_look(self) -> bool {
        matches!(self, Self::Search | Self::Read | Self::Poll)
    }

    /// Reports whether the action changes files or something else.
    pub fn is_effect(self) -> bool {
        matches!(self, Self::Edit | Self::Change)
    }
}

/// The analysed action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one act, each asked for by name"
)]
pub struct ActionSummary {
    /// The kind of the most consequential part.
    pub kind: Kind,
    /// A part changes files.
    pub edits: bool,
    /// A part runs tests.
    pub tests: bool,
    /// A part shows whether the work is correct: it tests, builds, lints, runs a program, shows a diff, or reads a file
    /// that it has just written.
    pub verifies: bool,
    /// Reverts earlier work (`git checkout -- f`, `git stash`, `undo_edit`).
    pub reverts: bool,
    /// Repeated calls are normal: a wait, or a tool that the host declares as polling.
    pub poll: bool,
    /// The host declares that the same call may return different results.
    pub stateful: bool,
    /// Files that it reads, with line ranges if known; also folders and pages.
    pub reads: Vec<FileRef>,
    /// Files that it writes.
    pub writes: Vec<FileRef>,
    /// Files that it removes or moves away. Removing alone is not an edit: it is mostly clean-up.
    pub removes: Vec<FileRef>,
    /// Programs with their subcommands (`git diff`, `cargo test`).
    pub commands: Vec<String>,
    /// Selected tests, if known.
    pub test_targets: Vec<String>,
    /// The search query.
    pub query: Option<String>,
    /// Fingerprint of tool and arguments, independent of order and spacing.
    pub key: u64,
    /// Fingerprint without explanations, decoration (`cd`, `echo`, comments) and limits on time or output.
    pub loose_key: u64,
    /// Fingerprint of the kind and the files, query or test targets only.
    pub target_key: u64,
    /// Short description for embedding.
    pub text_for_meaning: String,
    /// The outcome of the step.
    pub outcome: Outcome,
}

/// Analyses the action of a step.
pub fn analyse(step: &Step<'_>, policies: &ToolPolicies) -> ActionSummary {
    let mut scratch = String::new();
    let Some(action) = step.action else { return message_only(step, &mut scratch) };
    let policy = policies.of(action.tool);
    let input = action.input.text();
    let read = &input[..input.floor_char_boundary(INPUT_BYTES_MAX)];
    let args = Args::read(read);
    let mut effects = Effects::default();
    let tool_kind = tools::kind_of(action.tool);
    collect_effects(tool_kind, &args, &mut effects);

    let kind = policy.kind.or_else(|| effects.primary()).unwrap_or(Kind::Run);
    if let Some(kind) = policy.kind {
        effects.add_kind(kind);
    }
    let keys = fingerprints::of(&action, &args, kind, &effects, &mut scratch);
    let source = Source {
        is_printed: matches!(tool_kind, ToolKind::Shell | ToolKind::Code),
        compares: effects
            .commands
            .iter()
            .any(|name| matches!(name.as_str(), "diff" | "cmp" | "git diff")),
    };
    let outcome = Outcome::of(step, kind, source, &mut scratch);
    let text_for_meaning = describe::meaning(&action, &args, kind, &effects);
    ActionSummary {
        poll: policy.poll || kind == Kind::Poll || effects.polls,
        stateful: policy.stateful,
        text_for_meaning,
        ..ActionSummary::new(kind, effects, &keys, outcome)
    }
}

impl ActionSummary {
    fn new(kind: Kind, effects: Effects, keys: &Keys, outcome: Outcome) -> Self {
        Self {
            kind,
            edits: effects.edits,
            tests: effects.tests,
            verifies: effects.verifies,
            reverts: effects.reverts,
            poll: false,
            stateful: false,
            reads: effects.reads,
            writes: effects.writes,
            removes: effects.removes,
            commands: effects.commands,
            test_targets: effects.targets,
            query: effects.query,
            key: keys.exact,
            loose_key: keys.loose,
            target_key: keys.target,
            text_for_meaning: String::new(),
            outcome,
        }
    }
}

fn collect_effects(tool_kind: ToolKind, args: &Args<'_>, effects: &mut Effects) {
    match tool_kind {
        ToolKind::Shell => {
            let (line, polls) = command_line(args);
            command::walk(&line, effects, 0);
            if polls {
                effects.add_kind(Kind::Poll);
            }
        }
        ToolKind::Code => {
            let given =
                args.get(&["code", "python_code", "script", "source", "input", "query", "command"]);
            let text = given.or_else(|| args.plain()).unwrap_or("");
            code::walk(text, effects, 0);
        }
        ToolKind::Editor => structured_tools::editor(args, effects),
        ToolKind::Patch => {
            let given = args.get(&["input", "patch", "diff", "command[1]", "content"]);
            patch::walk(given.or_else(|| args.plain()).unwrap_or(""), effects);
        }
        ToolKind::Sql => {
            let given = args.get(&["sql", "query", "statement", "command"]);
            let statement = given.or_else(|| args.plain()).unwrap_or("");
            effects.add_kind(tools::sql_kind(statement));
            effects.add_query(statement);
        }
        ToolKind::Plain(kind) => structured_tools::walk(args, kind, effects),
    }
}

/// Returns the command line of a shell tool, and whether it is empty. An empty one polls a running command.
fn command_line<'s>(args: &'s Args<'_>) -> (std::borrow::Cow<'s, str>, bool) {
    #[rustfmt::skip]
    const NAMES: [&str; 9] = [
        "command", "commands", "cmd", "script", "bash_command", "shell_command", "code", "input", "keystrokes",
    ];
    if let Some(line) = args.get(&NAMES).or_else(|| args.plain()) {
        return (line.into(), false);
    }
    // `["bash", "-lc", "…"]`: the words of one command, of which the last may be a script.
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

/// Joins words into a command line, with quotes where necessary.
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

/// Analyses a step without a tool call.
fn message_only(step: &Step<'_>, scratch: &mut String) -> ActionSummary {
    let text = &step.thought[..step.thought.floor_char_boundary(INPUT_BYTES_MAX)];
    let key = normalize::fingerprint(scratch, text, normalize::Level::Spacing);
    let keys = Keys { exact: key, loose: key, target: key };
    let outcome = Outcome::of(step, Kind::Message, Source::default(), scratch);
    ActionSummary {
        text_for_meaning: describe::short(text),
        ..ActionSummary::new(Kind::Message, Effects::default(), &keys, outcome)
    }
}

#[cfg(test)]
mod tests;
