//! Analysis of a step in the context of its run, for the semantic monitors.
//!
//! The monitors ask the same questions (is the result new, was it requested before, how similar are the actions), so
//! the answers are computed once per step, and the past is stored once per run, in `History`. Its memory is bounded:
//! the last `RECENT_MAX` actions, four filters, and a few counters.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::analysis::action::{ActionSummary, Kind, ToolPolicies, analyse, entities};
use crate::analysis::embedding::{Embedder, Vector};
use crate::analysis::identifiers::each_name;
use crate::analysis::phrases::{Cue, CueSet};
use crate::analysis::recency_filter::RecencyFilter;
use crate::analysis::text::{any_in, fingerprint, fnv1a, prefix, searchable, word_count};
use crate::step::{Step, StepIndex};

/// Number of recent actions that are stored.
pub(crate) const RECENT_MAX: usize = 20;
/// A result with a smaller share of new lines is stale.
pub(crate) const STALE_BELOW: f64 = 0.12;
/// Characters of a thought that are embedded.
const THOUGHT_CHARS: usize = 600;
/// Minimum number of words of a thought that is embedded.
const THOUGHT_WORDS_MIN: u32 = 4;
/// Lines at the start and at the end of a result that are checked for novelty.
const LINES_MAX: usize = 200;
/// Maximum number of lines of a short result.
const SHORT_LINES: u32 = 1;

/// The analysed step.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one step, each asked for by name"
)]
pub(crate) struct StepContext {
    pub(crate) action: ActionSummary,
    /// Share of the result's lines that are new in this run; `None` if the result is empty.
    pub(crate) novelty: Option<f64>,
    /// The result reports that nothing was found.
    pub(crate) found_nothing: bool,
    /// The result is one line long.
    pub(crate) is_short: bool,
    /// An action with the same target occurred before in this run.
    pub(crate) asked_before: bool,
    /// Embedding of the action; for a search, of its query.
    pub(crate) meaning: Vector,
    /// Embedding of the thought; `None` if it is too short.
    pub(crate) thought: Option<Vector>,
    /// Similarity of the action or the thought to the task, whichever is higher; `None` without a task.
    pub(crate) on_task: Option<f64>,
    /// Share of the names in the action that are known in this run; `None` if it contains none.
    pub(crate) familiar: Option<f64>,
    /// Fingerprints of the texts that an edit removes and inserts, in order; empty for other actions.
    pub(crate) edit: Vec<u64>,
    /// The action writes a file that was written before.
    pub(crate) rewrites: bool,
    /// The action changed something successfully.
    pub(crate) changes: bool,
}

impl StepContext {
    /// Reports whether the step brought no new result: a failure, nothing found, or a stale result.
    pub(crate) fn has_no_new_result(&self) -> bool {
        let stale = self.novelty.is_none_or(|new| new < STALE_BELOW);
        self.action.outcome.failed || self.found_nothing || stale
    }

    /// Like [`Self::has_no_new_result`], but accepts a short result of a new request.
    pub(crate) fn is_stale(&self) -> bool {
        self.has_no_new_result()
            && (self.asked_before || !(self.is_short || self.novelty.is_none()))
    }

    /// Reports whether the step showed something new, including that something does not exist.
    pub(crate) fn has_new_information(&self) -> bool {
        let new = self.novelty.is_some_and(|new| new >= STALE_BELOW);
        self.changes || new || (self.found_nothing && !self.asked_before)
    }

    /// Returns the similarity of the action or the thought to a vector, whichever is higher.
    pub(crate) fn similarity_to(&self, to: &Vector) -> f64 {
        to.closest([&self.meaning].into_iter().chain(&self.thought))
    }

    /// Returns a fingerprint of the places that the action reads.
    pub(crate) fn scope(&self) -> u64 {
        let places: Vec<&str> = self.action.reads.iter().map(|file| file.path.as_str()).collect();
        fingerprint(&places.join("\n"))
    }
}

/// A stored earlier action.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one act, each asked for by name"
)]
pub(crate) struct PastStep {
    pub(crate) at: StepIndex,
    pub(crate) kind: Kind,
    pub(crate) loose_key: u64,
    pub(crate) target_key: u64,
    /// Fingerprint of the places that it read.
    pub(crate) scope: u64,
    pub(crate) result_key: u64,
    /// Fingerprints of the error and of its type.
    pub(crate) error: Option<u64>,
    pub(crate) error_class: Option<u64>,
    pub(crate) failed: bool,
    pub(crate) is_stale: bool,
    pub(crate) found_nothing: bool,
    pub(crate) poll: bool,
    /// Number of changes before the action.
    pub(crate) changes_before: u32,
    pub(crate) query: Option<Box<str>>,
    pub(crate) meaning: Vector,
    pub(crate) thought: Option<Vector>,
}

/// State of the run so far, for the semantic monitors.
pub(crate) struct History {
    embedder: Arc<dyn Embedder>,
    policies: ToolPolicies,
    task: Option<Vector>,
    /// Embedding of the latest user message after the task.
    asked_for: Option<Vector>,
    task_text: Box<str>,
    /// Recent actions, oldest first, without the current one.
    pub(crate) recent: VecDeque<PastStep>,
    /// Number of actions so far, without messages and thinking.
    pub(crate) actions: u32,
    /// Number of changes so far, of files or elsewhere.
    pub(crate) changes: u32,
    lines: RecencyFilter,
    asked: RecencyFilter,
    names: RecencyFilter,
    written: RecencyFilter,
}

/// Characters of a query that are stored for comparisons.
const QUERY_CHARS: usize = 120;
/// Characters of the task that are stored.
const TASK_CHARS: usize = 2_400;

impl History {
    pub(crate) fn new(embedder: Arc<dyn Embedder>, policies: ToolPolicies, task: &str) -> Self {
        let task_text: Box<str> = prefix(task, TASK_CHARS).into();
        let task = Some(embedder.embed(&task_text)).filter(|task| !task.is_zero());
        Self {
            embedder,
            policies,
            task,
            asked_for: None,
            task_text,
            recent: VecDeque::new(),
            actions: 0,
            changes: 0,
            lines: RecencyFilter::default(),
            asked: RecencyFilter::default(),
            names: RecencyFilter::default(),
            written: RecencyFilter::default(),
        }
    }

    /// Returns the start of the task.
    pub(crate) fn task(&self) -> &str {
        &self.task_text
    }

    /// Reports whether the embedder's second opinion is that two similar texts ask for different things.
    pub(crate) fn is_denied_by_second_opinion(&self, a: &str, b: &str) -> bool {
        self.embedder.second_opinion(prefix(a, QUERY_CHARS), prefix(b, QUERY_CHARS)) == Some(false)
    }

    /// Analyses the next step. `cues` are those of its observation.
    pub(crate) fn analyse(&mut self, step: &Step<'_>, cues: CueSet) -> StepContext {
        let mut action = analyse(step, &self.policies);
        action.poll |= is_polling(step, &action, cues);
        action.stateful |= !action.outcome.failed && is_ui_tool(step.tool());
        let about = action.query.as_deref().filter(|_| action.kind == Kind::Search);
        let meaning = self.embedder.embed(about.unwrap_or(&action.text_for_meaning));
        let thought = prefix(step.thought, THOUGHT_CHARS);
        let thought =
            (word_count(thought) >= THOUGHT_WORDS_MIN).then(|| self.embedder.embed(thought));
        if word_count(step.user_input) >= THOUGHT_WORDS_MIN {
            self.asked_for = Some(self.embedder.embed(prefix(step.user_input, THOUGHT_CHARS)));
        }
        let near = |wanted: &Vector| wanted.closest([&meaning].into_iter().chain(&thought));
        let asked = self.asked_for.as_ref().map_or(0.0, near);
        let on_task = self.task.as_ref().map(|task| near(task).max(asked));
        let familiar = self.familiar(step, &action);
        self.record_names(step);
        let edit = if action.edits {
            edited_texts(step.action.map_or("", |action| action.input.text()))
        } else {
            Vec::new()
        };
        let (novelty, is_short) = self.novelty(step.observation, &action);
        let rewrites = action
            .writes
            .iter()
            .fold(false, |again, file| again | !self.written.insert(fingerprint(&file.path)));
        let asked_before = !self.asked.insert(action.target_key);
        let found_nothing = reports_nothing_found(step.observation, &action, cues);
        let changes = (action.edits || action.kind.is_effect() || installs_package(&action))
            && !action.outcome.failed;
        StepContext {
            action,
            novelty,
            found_nothing,
            is_short,
            asked_before,
            meaning,
            thought,
            on_task,
            familiar,
            edit,
            rewrites,
            changes,
        }
    }

    /// Stores the step after all monitors have seen it.
    pub(crate) fn record(&mut self, at: StepIndex, context: StepContext) {
        let (scope, is_stale) = (context.scope(), context.is_stale());
        let StepContext { action, meaning, thought, found_nothing, changes, .. } = context;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        let changes_before = self.changes;
        self.actions = self
            .actions
            .saturating_add(u32::from(!matches!(action.kind, Kind::Message | Kind::Think)));
        self.changes = self.changes.saturating_add(u32::from(changes));
        self.recent.push_back(PastStep {
            at,
            kind: action.kind,
            loose_key: action.loose_key,
            target_key: action.target_key,
            scope,
            result_key: action.outcome.result_key,
            error: action.outcome.signature,
            error_class: action.outcome.signature_class,
            failed: action.outcome.failed,
            is_stale,
            found_nothing,
            poll: action.poll || action.stateful,
            changes_before,
            query: action.query.map(|query| prefix(&query, QUERY_CHARS).into()),
            meaning,
            thought,
        });
    }

    /// Returns the share of known names in the action.
    fn familiar(&self, step: &Step<'_>, action: &ActionSummary) -> Option<f64> {
        let (mut unknown, mut all) = (0, 0);
        let files = action.reads.iter().chain(&action.writes).map(|file| file.path.as_str());
        let input = step.action.map_or("", |action| action.input.text());
        for text in files.chain(action.query.as_deref()).chain(entities(input, step.thought)) {
            let counted = unknown_names(text, &self.names);
            (unknown, all) = (unknown + counted.0, all + counted.1);
        }
        (all > 0).then(|| 1.0 - f64::from(unknown) / f64::from(all))
    }

    /// Records all names of the step.
    fn record_names(&mut self, step: &Step<'_>) {
        let input = step.action.map_or("", |action| action.input.text());
        for text in [step.user_input, step.thought, input, step.observation] {
            each_name(&text[..text.floor_char_boundary(NAMES_BYTES_MAX)], |name| {
                self.names.insert(name.hash);
            });
        }
    }

    /// Returns the share of new lines and whether the result is short, and records the lines.
    fn novelty(&mut self, answer: &str, action: &ActionSummary) -> (Option<f64>, bool) {
        if action.outcome.is_empty {
            return (None, true);
        }
        let (mut lines, mut new) = (0_u32, 0_u32);
        let ends = answer.bytes().filter(|byte| *byte == b'\n').count();
        let count = ends + usize::from(!answer.ends_with('\n'));
        let shown = answer
            .lines()
            .enumerate()
            .filter(|(at, _)| *at < LINES_MAX || *at + LINES_MAX >= count);
        for hash in shown.filter_map(|(_, line)| line_hash(line)) {
            lines += 1;
            new += u32::from(self.lines.insert(hash));
        }
        ((lines > 0).then(|| f64::from(new) / f64::from(lines)), lines <= SHORT_LINES)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let vector = crate::analysis::embedding::DIMS * size_of::<f32>();
        self.recent.len() * (size_of::<PastStep>() + 2 * vector + QUERY_CHARS)
            + self.lines.heap_bytes()
            + self.asked.heap_bytes()
            + self.names.heap_bytes()
            + self.written.heap_bytes()
            + self.task_text.len()
    }
}

/// Returns a hash of a line without the line number that tools add; `None` for blank lines.
fn line_hash(line: &str) -> Option<u64> {
    let line = line.trim();
    let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = after.len() < line.len() && after.starts_with(['\t', ':', ' ', '|', '-']);
    let line = if numbered && after.len() > 2 {
        after.trim_start_matches([':', ' ', '\t', '|', '-'])
    } else {
        line
    };
    (!line.is_empty()).then(|| fnv1a(line.bytes()))
}

/// Reports whether the action polls something that is not ready yet.
fn is_polling(step: &Step<'_>, action: &ActionSummary, cues: CueSet) -> bool {
    const ASKS: [&str; 8] =
        ["status", "progress", "logs", "job", "build", "wait", "poll", "deploy"];
    if step.observation.len() > 400
        || matches!(action.kind, Kind::Message | Kind::Edit | Kind::Search)
    {
        return false;
    }
    cues.has(Cue::Waiting)
        && (any_in(&ASKS, &searchable(step.tool()))
            || action.commands.iter().any(|command| any_in(&ASKS, command)))
}

/// Reports whether the tool operates a user interface, where the same call may have a different effect each time.
fn is_ui_tool(tool: &str) -> bool {
    const HANDS: [&str; 9] =
        ["click", "press", "type", "scroll", "tap", "swipe", "hover", "drag", "screenshot"];
    let tool = tool.to_lowercase();
    tool.split(|c: char| !c.is_alphanumeric()).any(|word| HANDS.contains(&word))
}

/// Reports whether the action installs a package. The same error afterwards is a new one.
pub(crate) fn installs_package(action: &ActionSummary) -> bool {
    action.commands.iter().any(|command| {
        let mut words = command.split(' ');
        let tool = words.next().unwrap_or_default();
        matches!(words.next(), Some("install" | "add" | "sync")) && !matches!(tool, "git")
    })
}

/// Returns `true` for a short result that contains no findings.
fn reports_nothing_found(answer: &str, action: &ActionSummary, cues: CueSet) -> bool {
    if !matches!(action.kind, Kind::Read | Kind::Search | Kind::Run) {
        return false;
    }
    let short = answer.trim();
    if short.is_empty() || action.outcome.is_empty {
        return action.kind == Kind::Search;
    }
    let bare = matches!(short, "[]" | "{}" | "null" | "None");
    bare || (short.len() < 300 && cues.has(Cue::NothingFound))
}

/// Bytes of a text in which names are searched.
pub(crate) const NAMES_BYTES_MAX: usize = 6_000;

/// Maximum number of pieces of an edit; larger edits are rewrites.
const EDIT_TEXTS_MAX: usize = 14;
/// Bytes of an edit that are read.
const EDIT_BYTES_MAX: usize = 3_000;

/// Returns hashes of the pieces of an edit between quotes, slashes and line ends, in order and without duplicates. The
/// removed and the inserted text are among them for every tool.
fn edited_texts(input: &str) -> Vec<u64> {
    let mut texts: Vec<u64> = Vec::new();
    let mut after_backslash = false;
    let separators = ['\'', '"', '`', '/', '#', '|', '\n', '\\', ','];
    for piece in input[..input.floor_char_boundary(EDIT_BYTES_MAX)].split_inclusive(separators) {
        let ended_by_backslash = piece.ends_with('\\');
        let mut text = piece.trim_end_matches(separators);
        if after_backslash {
            text = text.strip_prefix(['n', 't', 'r', 'Q', 'E']).unwrap_or(text);
        }
        after_backslash = ended_by_backslash;
        let text = text.trim_start_matches(['+', '-', ' ', '\t']).trim_end();
        if text.len() >= 4 && text.chars().any(char::is_alphabetic) {
            let hash = fnv1a(text.bytes());
            if !texts.contains(&hash) {
                texts.push(hash);
            }
            if texts.len() > EDIT_TEXTS_MAX {
                return Vec::new();
            }
        }
    }
    texts
}

/// Counts the unknown names and all names in a text.
pub(crate) fn unknown_names(text: &str, known: &RecencyFilter) -> (u32, u32) {
    let (mut unknown, mut all) = (0_u32, 0_u32);
    each_name(text, |name| {
        all += 1;
        unknown += u32::from(!known.contains(name.hash));
    });
    (unknown, all)
}
