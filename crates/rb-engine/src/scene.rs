//! What the semantic monitors look at: the step, understood, in the light of what the run has shown so far.
//!
//! All of them ask the same questions (is this answer new, is this file known, how alike are these acts), so the
//! answers are found once a step, here, and the past is kept once a run, in [`Past`]. Its memory is bounded: the last
//! [`RECENT_MAX`] acts, two filters for what was ever seen, and a few counters.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::act::{Act, Kind, ToolPolicies, understand};
use crate::meaning::{Embedder, Vector};
use crate::seen::SeenOnce;
use crate::step::{Step, StepIndex};
use crate::text::{fingerprint, head, word_count};

/// How many acts back monitors look.
pub(crate) const RECENT_MAX: usize = 20;
/// A thought is compared by its beginning.
const THOUGHT_CHARS: usize = 600;
/// Shorter thoughts say too little to be compared.
const THOUGHT_WORDS_MIN: u32 = 4;
/// Lines of an answer that are looked at, from either end.
const LINES_MAX: usize = 200;
/// Names are taken from so much of an answer.
const NAMES_BYTES_MAX: usize = 6_000;

/// One step, understood.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) act: Act,
    /// The share of the answer's lines that the run has not shown before; `None` when nothing came back.
    pub(crate) novelty: Option<f64>,
    /// The answer says that there is nothing.
    pub(crate) found_nothing: bool,
    /// What the act is about.
    pub(crate) meaning: Vector,
    /// What the thought is about; `None` where it says too little.
    pub(crate) thought: Option<Vector>,
    /// How close the step is to the task, the closer of act and thought; `None` without a task.
    pub(crate) on_task: Option<f64>,
    /// The share of the names in the act that the run has shown before; `None` when it names nothing.
    pub(crate) familiar: Option<f64>,
    /// The act writes a file that was written before.
    pub(crate) rewrites: bool,
}

impl Scene {
    /// It brought nothing new: an empty answer, none of it new, or a failure.
    pub(crate) fn is_fruitless(&self) -> bool {
        self.act.outcome.failed
            || self.found_nothing
            || self.novelty.is_none_or(|new| new < STALE_BELOW)
    }
}

impl Scene {
    /// A fingerprint of the places the act looks at.
    pub(crate) fn scope(&self) -> u64 {
        let places: Vec<&str> = self.act.reads.iter().map(|file| file.path.as_str()).collect();
        fingerprint(&places.join("\n"))
    }
}

/// An answer with a smaller share of new lines tells nothing new.
pub(crate) const STALE_BELOW: f64 = 0.12;

/// What is kept of an earlier act.
#[derive(Debug, Clone)]
pub(crate) struct PastAct {
    pub(crate) at: StepIndex,
    pub(crate) kind: Kind,
    pub(crate) loose_key: u64,
    /// Where it looked.
    pub(crate) scope: u64,
    pub(crate) result_key: u64,
    pub(crate) error_class: Option<u64>,
    pub(crate) failed: bool,
    pub(crate) fruitless: bool,
    pub(crate) found_nothing: bool,
    pub(crate) poll: bool,
    /// How many changes had been made before it.
    pub(crate) changes_before: u32,
    pub(crate) meaning: Vector,
    pub(crate) thought: Option<Vector>,
}

/// What the run has shown so far.
pub(crate) struct Past {
    embedder: Arc<dyn Embedder>,
    policies: ToolPolicies,
    task: Option<Vector>,
    /// The newest acts, oldest first; the current one is not among them while monitors look.
    pub(crate) recent: VecDeque<PastAct>,
    /// Acts so far, messages and thinking left out.
    pub(crate) acts: u32,
    /// Changes so far, of files or elsewhere.
    pub(crate) changes: u32,
    lines: SeenOnce,
    names: SeenOnce,
    written: SeenOnce,
}

impl Past {
    pub(crate) fn new(embedder: Arc<dyn Embedder>, policies: ToolPolicies, task: &str) -> Self {
        let mut names = SeenOnce::default();
        note_names(&mut names, task);
        let task =
            Some(embedder.embed(head(task, 4 * THOUGHT_CHARS))).filter(|task| !task.is_zero());
        Self {
            embedder,
            policies,
            task,
            recent: VecDeque::new(),
            acts: 0,
            changes: 0,
            lines: SeenOnce::default(),
            names,
            written: SeenOnce::default(),
        }
    }

    /// Understands the next step in the light of what came before.
    pub(crate) fn look(&mut self, step: &Step<'_>) -> Scene {
        let act = understand(step, &self.policies);
        let meaning = self.embedder.embed(&act.text_for_meaning);
        let said = head(step.thought, THOUGHT_CHARS);
        let thought = (word_count(said) >= THOUGHT_WORDS_MIN).then(|| self.embedder.embed(said));
        let on_task = self.task.as_ref().map(|task| {
            let thinks = thought.as_ref().map_or(0.0, |thought| thought.cosine(task));
            meaning.cosine(task).max(thinks)
        });
        let familiar = self.familiar(&act);
        note_names(&mut self.names, step.user_input);
        note_names(&mut self.names, step.thought);
        note_names(&mut self.names, act.query.as_deref().unwrap_or(""));
        let files = act.reads.iter().chain(&act.writes);
        files.for_each(|file| note_names(&mut self.names, &file.path));
        let novelty = self.novelty(step.observation, &act);
        let mut rewrites = false;
        for file in &act.writes {
            rewrites |= !self.written.is_new(fingerprint(&file.path));
        }
        let found_nothing = says_nothing_found(step.observation, &act);
        Scene { act, novelty, found_nothing, meaning, thought, on_task, familiar, rewrites }
    }

    /// Keeps the step once every monitor has looked at it.
    pub(crate) fn keep(&mut self, at: StepIndex, scene: Scene) {
        let fruitless = scene.is_fruitless();
        let scope = scene.scope();
        let Scene { act, meaning, thought, found_nothing, .. } = scene;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        let changes_before = self.changes;
        self.acts =
            self.acts.saturating_add(u32::from(!matches!(act.kind, Kind::Message | Kind::Think)));
        self.changes = self.changes.saturating_add(u32::from(act.edits || act.kind.is_effect()));
        self.recent.push_back(PastAct {
            at,
            kind: act.kind,
            loose_key: act.loose_key,
            scope,
            result_key: act.outcome.result_key,
            error_class: act.outcome.signature_class,
            failed: act.outcome.failed,
            fruitless,
            found_nothing,
            poll: act.poll || act.stateful,
            changes_before,
            meaning,
            thought,
        });
    }

    fn familiar(&self, act: &Act) -> Option<f64> {
        let mut names = 0_u32;
        let mut known = 0_u32;
        let files = act.reads.iter().chain(&act.writes).map(|file| file.path.as_str());
        for text in files.chain(act.query.as_deref()) {
            each_name(text, |name| {
                names += 1;
                known += u32::from(self.names.has(name));
            });
        }
        (names > 0).then(|| f64::from(known) / f64::from(names))
    }

    /// The share of lines not shown before; notes them, and the names in them.
    fn novelty(&mut self, answer: &str, act: &Act) -> Option<f64> {
        if act.outcome.is_empty {
            return None;
        }
        note_names(&mut self.names, &answer[..answer.floor_char_boundary(NAMES_BYTES_MAX)]);
        let (mut lines, mut new) = (0_u32, 0_u32);
        let count = answer.lines().count();
        let shown = answer.lines().enumerate();
        for (_, line) in shown.filter(|(at, _)| *at < LINES_MAX || *at + LINES_MAX >= count) {
            let Some(print) = line_print(line) else { continue };
            lines += 1;
            new += u32::from(self.lines.is_new(print));
        }
        (lines > 0).then(|| f64::from(new) / f64::from(lines))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let vector = crate::meaning::DIMS * size_of::<f32>();
        self.recent.len() * (size_of::<PastAct>() + 2 * vector)
            + self.lines.heap_bytes()
            + self.names.heap_bytes()
            + self.written.heap_bytes()
    }
}

/// A fingerprint of a line, its numbers taken away; `None` for lines that say nothing.
fn line_print(line: &str) -> Option<u64> {
    let line = line.trim();
    if line.len() < 4 {
        return None;
    }
    let mut in_number = false;
    Some(print_of(line.bytes().filter_map(|byte| {
        let more = std::mem::replace(&mut in_number, byte.is_ascii_digit()) && in_number;
        (!more).then_some(if in_number { b'#' } else { byte })
    })))
}

/// A quick fingerprint of short texts; it only ever meets others of its kind.
fn print_of(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |print, byte| {
        (print ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Calls back with a fingerprint of every name in a text: words of at least four letters that are no plain ones.
fn each_name(text: &str, mut found: impl FnMut(u64)) {
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
        if word.len() >= 4 && !word.bytes().all(|byte| byte.is_ascii_digit()) {
            found(print_of(word.bytes().map(|byte| byte.to_ascii_lowercase())));
        }
    }
}

fn note_names(names: &mut SeenOnce, text: &str) {
    each_name(text, |name| {
        names.is_new(name);
    });
}

/// Short answers that say there is nothing.
fn says_nothing_found(answer: &str, act: &Act) -> bool {
    const SIGNS: [&str; 14] = [
        "no results",
        "no result",
        "no match",
        "not found",
        "nothing found",
        "0 results",
        "0 matches",
        "no such",
        "could not find",
        "couldn't find",
        "no files",
        "no records",
        "no data",
        "does not exist",
    ];
    if !matches!(act.kind, Kind::Read | Kind::Search | Kind::Run) {
        return false;
    }
    let short = answer.trim();
    if short.is_empty() || act.outcome.is_empty {
        return act.kind == Kind::Search;
    }
    let bare = matches!(short, "[]" | "{}" | "null" | "None" | "0");
    let low = head(short, 300).to_lowercase();
    bare || (short.len() < 300 && SIGNS.iter().any(|sign| low.contains(sign)))
}
