//! What the semantic monitors look at: the step, understood, in the light of what the run has shown so far.
//!
//! All of them ask the same questions (is this answer new, was this asked before, how alike are these acts), so the
//! answers are found once a step, here, and the past is kept once a run, in [`History`]. Its memory is bounded: the last
//! [`RECENT_MAX`] acts, three filters for what was ever seen, and a few counters.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::analysis::action::{ActionSummary, Kind, ToolPolicies, entities, understand};
use crate::analysis::embedding::{Embedder, Vector};
use crate::analysis::identifiers::{Name, each_name};
use crate::analysis::phrases::{Cue, CueSet};
use crate::analysis::recency_filter::RecencyFilter;
use crate::analysis::text::{any_in, fingerprint, fnv1a, prefix, searchable, word_count};
use crate::step::{Step, StepIndex};

/// How many acts back monitors look.
pub(crate) const RECENT_MAX: usize = 20;
/// An answer with a smaller share of new lines tells nothing new.
pub(crate) const STALE_BELOW: f64 = 0.12;
/// A thought is compared by its beginning.
const THOUGHT_CHARS: usize = 600;
/// Shorter thoughts say too little to be compared.
const THOUGHT_WORDS_MIN: u32 = 4;
/// Lines of an answer that are looked at, from either end.
const LINES_MAX: usize = 200;
/// An answer of so many lines says little; nothing new in it is no surprise.
const SHORT_LINES: u32 = 1;

/// One step, understood.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one step, each asked for by name"
)]
pub(crate) struct StepContext {
    pub(crate) act: ActionSummary,
    /// The share of the answer's lines that the run has not shown before; `None` when nothing came back.
    pub(crate) novelty: Option<f64>,
    /// The answer says that there is nothing.
    pub(crate) found_nothing: bool,
    /// The answer is one line long.
    pub(crate) is_short: bool,
    /// The same was asked before in this run.
    pub(crate) asked_before: bool,
    /// What the act is about; for a search, what it looks for.
    pub(crate) meaning: Vector,
    /// What the thought is about; `None` where it says too little.
    pub(crate) thought: Option<Vector>,
    /// How close the step is to the task, the closer of act and thought; `None` without a task.
    pub(crate) on_task: Option<f64>,
    /// The share of the names in the act that the run has shown before; `None` when it names nothing.
    pub(crate) familiar: Option<f64>,
    /// The names in the texts of the step.
    pub(crate) names: Names,
    /// The texts that an edit takes out and puts in, as fingerprints in order; empty for anything else.
    pub(crate) edit: Vec<u64>,
    /// The act writes a file that was written before.
    pub(crate) rewrites: bool,
    /// The act changed something, and it worked.
    pub(crate) changes: bool,
}

/// The names in the beginning of each text of a step, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// In the argument.
    pub(crate) done: Vec<Name>,
    /// In the thought.
    pub(crate) said: Vec<Name>,
    /// In what came back.
    pub(crate) answered: Vec<Name>,
}

impl StepContext {
    /// It brought nothing new: a failure, nothing found, or an answer that was known already.
    pub(crate) fn is_fruitless(&self) -> bool {
        let stale = self.novelty.is_none_or(|new| new < STALE_BELOW);
        self.act.outcome.failed || self.found_nothing || stale
    }

    /// Like [`Self::is_fruitless`], but a short answer to a new question is taken for what it is.
    pub(crate) fn is_no_news(&self) -> bool {
        self.is_fruitless() && (self.asked_before || !(self.is_short || self.novelty.is_none()))
    }

    /// It showed something new, be it that there is nothing where nobody had looked.
    pub(crate) fn is_evidence(&self) -> bool {
        let new = self.novelty.is_some_and(|new| new >= STALE_BELOW);
        self.changes || new || (self.found_nothing && !self.asked_before)
    }

    /// How close the step is to a direction, the closer of act and thought.
    pub(crate) fn closeness(&self, to: &Vector) -> f64 {
        to.closest([&self.meaning].into_iter().chain(&self.thought))
    }

    /// A fingerprint of the places the act looks at.
    pub(crate) fn scope(&self) -> u64 {
        let places: Vec<&str> = self.act.reads.iter().map(|file| file.path.as_str()).collect();
        fingerprint(&places.join("\n"))
    }
}

/// What is kept of an earlier act.
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
    /// Where it looked.
    pub(crate) scope: u64,
    pub(crate) result_key: u64,
    /// The error itself, and the sort of error.
    pub(crate) error: Option<u64>,
    pub(crate) error_class: Option<u64>,
    pub(crate) failed: bool,
    pub(crate) no_news: bool,
    pub(crate) found_nothing: bool,
    pub(crate) poll: bool,
    /// How many changes had been made before it.
    pub(crate) changes_before: u32,
    pub(crate) query: Option<Box<str>>,
    pub(crate) meaning: Vector,
    pub(crate) thought: Option<Vector>,
}

/// What the run has shown so far.
pub(crate) struct History {
    embedder: Arc<dyn Embedder>,
    policies: ToolPolicies,
    task: Option<Vector>,
    /// What the user asked for last, after the task.
    asked_for: Option<Vector>,
    task_text: Box<str>,
    /// The newest acts, oldest first; the current one is not among them while monitors look.
    pub(crate) recent: VecDeque<PastStep>,
    /// Acts so far, messages and thinking left out.
    pub(crate) acts: u32,
    /// Changes so far, of files or elsewhere.
    pub(crate) changes: u32,
    lines: RecencyFilter,
    asked: RecencyFilter,
    names: RecencyFilter,
    written: RecencyFilter,
}

/// So much of a query is kept, for comparing words and asking for a second opinion.
const QUERY_CHARS: usize = 120;
/// So much of the task is kept.
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
            acts: 0,
            changes: 0,
            lines: RecencyFilter::default(),
            asked: RecencyFilter::default(),
            names: RecencyFilter::default(),
            written: RecencyFilter::default(),
        }
    }

    /// What the agent was asked to do, its beginning.
    pub(crate) fn task(&self) -> &str {
        &self.task_text
    }

    /// Whether a second opinion says that two texts, which look alike, ask for different things.
    pub(crate) fn denies(&self, a: &str, b: &str) -> bool {
        self.embedder.second_opinion(prefix(a, QUERY_CHARS), prefix(b, QUERY_CHARS)) == Some(false)
    }

    /// Understands the next step in the light of what came before; `heard` is what its answer says.
    pub(crate) fn look(&mut self, step: &Step<'_>, heard: CueSet) -> StepContext {
        let mut act = understand(step, &self.policies);
        act.poll |= waits(step, &act, heard);
        act.stateful |= !act.outcome.failed && is_by_hand(step.tool());
        let about = act.query.as_deref().filter(|_| act.kind == Kind::Search);
        let meaning = self.embedder.embed(about.unwrap_or(&act.text_for_meaning));
        let said = prefix(step.thought, THOUGHT_CHARS);
        let thought = (word_count(said) >= THOUGHT_WORDS_MIN).then(|| self.embedder.embed(said));
        if word_count(step.user_input) >= THOUGHT_WORDS_MIN {
            self.asked_for = Some(self.embedder.embed(prefix(step.user_input, THOUGHT_CHARS)));
        }
        let near = |wanted: &Vector| wanted.closest([&meaning].into_iter().chain(&thought));
        let asked = self.asked_for.as_ref().map_or(0.0, near);
        let on_task = self.task.as_ref().map(|task| near(task).max(asked));
        let familiar = self.familiar(step, &act);
        let names = self.note_names(step);
        let edit = if act.edits {
            edited_texts(step.action.map_or("", |action| action.input.text()))
        } else {
            Vec::new()
        };
        let (novelty, is_short) = self.novelty(step.observation, &act);
        let rewrites = act
            .writes
            .iter()
            .fold(false, |again, file| again | !self.written.insert(fingerprint(&file.path)));
        let asked_before = !self.asked.insert(act.target_key);
        let found_nothing = says_nothing_found(step.observation, &act, heard);
        let changes = (act.edits || act.kind.is_effect() || installs(&act)) && !act.outcome.failed;
        StepContext {
            act,
            novelty,
            found_nothing,
            is_short,
            asked_before,
            meaning,
            thought,
            on_task,
            familiar,
            names,
            edit,
            rewrites,
            changes,
        }
    }

    /// Keeps the step once every monitor has looked at it.
    pub(crate) fn keep(&mut self, at: StepIndex, scene: StepContext) {
        let (scope, no_news) = (scene.scope(), scene.is_no_news());
        let StepContext { act, meaning, thought, found_nothing, changes, .. } = scene;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        let changes_before = self.changes;
        self.acts =
            self.acts.saturating_add(u32::from(!matches!(act.kind, Kind::Message | Kind::Think)));
        self.changes = self.changes.saturating_add(u32::from(changes));
        self.recent.push_back(PastStep {
            at,
            kind: act.kind,
            loose_key: act.loose_key,
            target_key: act.target_key,
            scope,
            result_key: act.outcome.result_key,
            error: act.outcome.signature,
            error_class: act.outcome.signature_class,
            failed: act.outcome.failed,
            no_news,
            found_nothing,
            poll: act.poll || act.stateful,
            changes_before,
            query: act.query.map(|query| prefix(&query, QUERY_CHARS).into()),
            meaning,
            thought,
        });
    }

    /// The share of the act's names that were mentioned before.
    fn familiar(&self, step: &Step<'_>, act: &ActionSummary) -> Option<f64> {
        let (mut unknown, mut all) = (0, 0);
        let files = act.reads.iter().chain(&act.writes).map(|file| file.path.as_str());
        let input = step.action.map_or("", |action| action.input.text());
        for text in files.chain(act.query.as_deref()).chain(entities(input, step.thought)) {
            let counted = unknown_names(text, &self.names);
            (unknown, all) = (unknown + counted.0, all + counted.1);
        }
        (all > 0).then(|| 1.0 - f64::from(unknown) / f64::from(all))
    }

    /// Notes all names of the step.
    fn note_names(&mut self, step: &Step<'_>) -> Names {
        let input = step.action.map_or("", |action| action.input.text());
        // About every eighth byte begins a name.
        let room = |text: &str| Vec::with_capacity(text.len().min(NAMES_BYTES_MAX) / 8);
        let mut names =
            Names { done: room(input), said: room(step.thought), answered: room(step.observation) };
        note_names(&mut self.names, step.user_input, |_| {});
        note_names(&mut self.names, step.thought, |name| names.said.push(name));
        note_names(&mut self.names, input, |name| names.done.push(name));
        note_names(&mut self.names, step.observation, |name| names.answered.push(name));
        names
    }

    /// The share of lines not shown before, and whether there are only a few; notes them.
    fn novelty(&mut self, answer: &str, act: &ActionSummary) -> (Option<f64>, bool) {
        if act.outcome.is_empty {
            return (None, true);
        }
        let (mut lines, mut new) = (0_u32, 0_u32);
        let ends = answer.bytes().filter(|byte| *byte == b'\n').count();
        let count = ends + usize::from(!answer.ends_with('\n'));
        let shown = answer
            .lines()
            .enumerate()
            .filter(|(at, _)| *at < LINES_MAX || *at + LINES_MAX >= count);
        for print in shown.filter_map(|(_, line)| line_print(line)) {
            lines += 1;
            new += u32::from(self.lines.insert(print));
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

/// A fingerprint of a line, without the line number that tools put before it; `None` for lines that say nothing.
fn line_print(line: &str) -> Option<u64> {
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

/// Asks how far something is, and is told to wait.
fn waits(step: &Step<'_>, act: &ActionSummary, heard: CueSet) -> bool {
    const ASKS: [&str; 8] =
        ["status", "progress", "logs", "job", "build", "wait", "poll", "deploy"];
    if step.observation.len() > 400 || matches!(act.kind, Kind::Message | Kind::Edit | Kind::Search)
    {
        return false;
    }
    heard.has(Cue::Waiting)
        && (any_in(&ASKS, &searchable(step.tool()))
            || act.commands.iter().any(|command| any_in(&ASKS, command)))
}

/// Works a page by hand: the same press may lead somewhere else each time.
fn is_by_hand(tool: &str) -> bool {
    const HANDS: [&str; 9] =
        ["click", "press", "type", "scroll", "tap", "swipe", "hover", "drag", "screenshot"];
    let tool = tool.to_lowercase();
    tool.split(|c: char| !c.is_alphanumeric()).any(|word| HANDS.contains(&word))
}

/// Brings in a package: the same error afterwards is another one.
pub(crate) fn installs(act: &ActionSummary) -> bool {
    act.commands.iter().any(|command| {
        let mut words = command.split(' ');
        let tool = words.next().unwrap_or_default();
        matches!(words.next(), Some("install" | "add" | "sync")) && !matches!(tool, "git")
    })
}

/// Short answers that say there is nothing.
fn says_nothing_found(answer: &str, act: &ActionSummary, heard: CueSet) -> bool {
    if !matches!(act.kind, Kind::Read | Kind::Search | Kind::Run) {
        return false;
    }
    let short = answer.trim();
    if short.is_empty() || act.outcome.is_empty {
        return act.kind == Kind::Search;
    }
    let bare = matches!(short, "[]" | "{}" | "null" | "None");
    bare || (short.len() < 300 && heard.has(Cue::NothingFound))
}

/// Names are taken from so much of a text.
pub(crate) const NAMES_BYTES_MAX: usize = 6_000;

/// Notes every name of a text, of its beginning, and calls back with it.
fn note_names(names: &mut RecencyFilter, text: &str, mut noted: impl FnMut(Name)) {
    each_name(&text[..text.floor_char_boundary(NAMES_BYTES_MAX)], |name| {
        names.insert(name.print);
        noted(name);
    });
}

/// An edit of more pieces is a rewrite, not a replacement.
const EDIT_TEXTS_MAX: usize = 14;
/// An edit is read this far.
const EDIT_BYTES_MAX: usize = 3_000;

/// The pieces of an edit between quotation marks, slashes and line ends, in order, each once: among them stand the text
/// that is taken out and the one that is put in, whatever tool does it.
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
            let print = fnv1a(text.bytes());
            if !texts.contains(&print) {
                texts.push(print);
            }
            if texts.len() > EDIT_TEXTS_MAX {
                return Vec::new();
            }
        }
    }
    texts
}

/// The names in a text that no name so far equals, and how many names there are.
pub(crate) fn unknown_names(text: &str, known: &RecencyFilter) -> (u32, u32) {
    let (mut unknown, mut all) = (0_u32, 0_u32);
    each_name(text, |name| {
        all += 1;
        unknown += u32::from(!known.contains(name.print));
    });
    (unknown, all)
}
