//! `semantic_loop`: repeated actions, possibly in other words, without new results.
//!
//! **Rule.** The strongest of seven signs counts. *Again*: the same action with the same result and no change in
//! between; the fourth in a row fires. *Reworded*: searches for the same thing in other words that find nothing new;
//! the third fires, unless the host's second model finds that too few of them ask for the same thing. *Back and forth*:
//! an edit inserts what the previous one removed; the second reversal fires. *Cycle*: two to five actions with their
//! results, three rounds. *Same error*: the same type of error from different actions in a row; the fifth fires,
//! earlier if nothing was changed in between. *No news*: seven reads in a row without new content. *Said again*: the
//! same message four times. Otherwise a small score grows with failures, stale results and rewritten files.
//!
//! **Fires at** 0.6.
//!
//! **Not a loop.** A changed result is progress. Polling is excluded (tools declared as polling or stateful).
//! Processing a list of files shows something new each time, and so does another part of a file. A test run after a
//! change is a check. A user message and a shown advice reset the count.
//!
//! **State.** The last eight edits as fingerprints and a few counters; the recent actions are shared by all monitors.
//! Cost per step: the window.
//!
//! **Blind spots.** A loop longer than five actions, or one whose rounds show something new without progress.

mod advice;

use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, Signal, Suite};
use crate::analysis::action::Kind;
use crate::analysis::features::StepFeatures;
use crate::analysis::history::{History, PastStep, StepContext};
use crate::analysis::text::{fingerprint, is_blank};
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "semantic_loop",
    suite: Suite::Semantic,
    summary: "The same act again, perhaps in other words, without anything new.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "semantic_loop",
    build: |_| Box::new(SemanticLoop::default()),
    advice: advice::advice,
};

/// Minimum similarity of actions about the same thing.
const SAME_MEANING: f64 = 0.55;
/// Number of recent actions in which rewordings are searched.
const REWORDED_ACTIONS: usize = 8;
/// Minimum similarity of equal messages.
const SAME_MESSAGE: f64 = 0.90;
/// Maximum number of steps between reversals that count together.
const REVERSAL_STEPS_MAX: u32 = 8;
/// Maximum length of a cycle in actions.
const CYCLE_ACTIONS_MAX: usize = 5;
/// Maximum of the small score, below the threshold.
const TROUBLE_MAX: f64 = 0.45;
/// Number of steps without trouble that are added to the actual ones.
const QUIET_STEPS: f64 = 10.0;

/// Scores by number of occurrences.
const AGAIN: [f64; 7] = [0.0, 0.0, 0.20, 0.35, 0.50, 0.70, 1.0];
const IN_A_ROW: [f64; 7] = [0.0, 0.0, 0.25, 0.45, 0.65, 0.85, 1.0];
const REWORDED: [f64; 6] = [0.0, 0.0, 0.30, 0.62, 0.80, 1.0];
const SAME_ERROR: [f64; 7] = [0.0, 0.0, 0.20, 0.40, 0.55, 0.70, 0.90];
const NO_NEWS: [f64; 10] = [0.0, 0.0, 0.0, 0.15, 0.25, 0.35, 0.50, 0.65, 0.80, 1.0];

/// Number of recent edits in which a reversal is searched.
const EDITS_MAX: usize = 8;

#[derive(Default)]
struct SemanticLoop {
    /// Recent edits: position, file, and the hashes of removed and inserted texts.
    edits: VecDeque<(StepIndex, u64, Vec<u64>)>,
    /// Positions of reversals.
    reversals: Vec<StepIndex>,
    /// Position from which actions count.
    counts_from: StepIndex,
    /// Position from which searches count as rewordings, set after a negative second opinion.
    rewordings_from: StepIndex,
    /// The latest search of a reworded loop that the second opinion confirmed; a continued loop is not checked again.
    confirmed_at: Option<StepIndex>,
    steps: f64,
    trouble: f64,
}

impl Monitor for SemanticLoop {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        let Some((context, past)) = features.context else { return Signal::none() };
        if !is_blank(features.step.user_input) {
            self.counts_from = at;
        }
        self.steps += 1.0;
        self.trouble += trouble(context);
        let window: VecDeque<&PastStep> =
            past.recent.iter().filter(|action| action.at >= self.counts_from).collect();
        let findings = self.findings(at, context, past, &window);
        let mut found: Vec<Finding> = findings.into_iter().flatten().collect();
        found.extend(self.back_and_forth(at, context));
        let strongest = found.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let trouble = (self.trouble / (self.steps + QUIET_STEPS)).min(TROUBLE_MAX);
        match strongest {
            Some((score, evidence)) if score > trouble => {
                Signal::new(score, || evidence.tool(features.step.tool()))
            }
            _ => Signal::new(trouble, || Evidence::new("trouble", 1).at([at])),
        }
    }

    fn advised(&mut self, at: StepIndex) {
        self.counts_from = StepIndex(at.0.saturating_add(1));
        self.reversals.clear();
    }

    fn heap_bytes(&self) -> usize {
        let texts: usize =
            self.edits.iter().map(|(.., texts)| texts.capacity() * size_of::<u64>()).sum();
        texts + self.edits.capacity() * size_of::<(StepIndex, u64, Vec<u64>)>()
    }
}

impl SemanticLoop {
    fn findings(
        &mut self,
        at: StepIndex,
        context: &StepContext,
        past: &History,
        window: &VecDeque<&PastStep>,
    ) -> [Option<Finding>; 5] {
        let action = &context.action;
        if action.poll || action.stateful || matches!(action.kind, Kind::Think | Kind::Finish) {
            return Default::default();
        }
        if action.kind == Kind::Message {
            return [repeated_message(at, context, window), None, None, None, None];
        }
        [
            again(at, context, past, window),
            self.reworded(at, context, past, window),
            cycle(at, context, window),
            same_error(at, context, past, window),
            no_news(at, context, window),
        ]
    }

    /// Detects reworded searches in the same place with an empty or equal result. If the alarm depends on it, requests
    /// a second opinion, once per loop.
    fn reworded(
        &mut self,
        at: StepIndex,
        context: &StepContext,
        past: &History,
        window: &VecDeque<&PastStep>,
    ) -> Option<Finding> {
        let query = context.action.query.as_deref()?;
        let mut earlier = rewordings(context, past, window);
        earlier.retain(|action| action.at >= self.rewordings_from);
        let fires = |earlier: &[&PastStep]| level(&REWORDED, earlier.len() + 1) >= SPEC.fire_at;
        if fires(&earlier) {
            let goes_on = earlier.iter().any(|action| Some(action.at) == self.confirmed_at);
            if !goes_on {
                earlier = confirmed(earlier, query, past);
            }
            if fires(&earlier) {
                self.confirmed_at = Some(at);
            } else {
                self.rewordings_from = at;
            }
        }
        let steps: Vec<StepIndex> = earlier.iter().map(|action| action.at).collect();
        found("reworded", &REWORDED, at, &steps)
            .map(|(score, evidence)| (score, evidence.phrase(query)))
    }

    /// Detects edits that insert what the previous edit removed.
    fn back_and_forth(&mut self, at: StepIndex, context: &StepContext) -> Option<Finding> {
        let file = context.action.writes.first().filter(|_| !context.edit.is_empty())?;
        let file = fingerprint(file.path.rsplit('/').next().unwrap_or(&file.path));
        let before = self.edits.iter().rev().find(|(_, known, _)| *known == file);
        if before.is_some_and(|(.., texts)| is_reversal(texts, &context.edit)) {
            self.reversals.push(at);
        }
        self.reversals.retain(|reversal| at.0 - reversal.0 <= REVERSAL_STEPS_MAX);
        if self.edits.len() == EDITS_MAX {
            self.edits.pop_front();
        }
        self.edits.push_back((at, file, context.edit.clone()));
        let (score, count) = match self.reversals.len() {
            0 => return None,
            1 => (0.35, 1),
            2 => (0.65, 2),
            more => (0.85, u32::try_from(more).unwrap_or(u32::MAX)),
        };
        let path = context.action.writes.first().map_or("", |file| &file.path);
        Some((
            score,
            Evidence::new("back_and_forth", count).at(self.reversals.iter().copied()).path(path),
        ))
    }
}

/// Reports whether two texts occur in both edits, in opposite order.
fn is_reversal(before: &[u64], after: &[u64]) -> bool {
    let shared: Vec<usize> =
        after.iter().filter_map(|text| before.iter().position(|known| known == text)).collect();
    shared.windows(2).any(|pair| pair[0] > pair[1])
}

/// Returns the trouble of one step, from 0 to about 2.
fn trouble(context: &StepContext) -> f64 {
    let actions = !matches!(context.action.kind, Kind::Message | Kind::Think);
    let failed = if context.action.outcome.failed { 1.0 } else { 0.0 };
    let stale = context.novelty.filter(|_| !context.action.poll).map_or(0.0, |new| 1.0 - new);
    let again = if actions && context.rewrites { 0.5 } else { 0.0 };
    failed + 0.8 * stale + again
}

type Finding = (f64, Evidence);

fn level(scores: &[f64], count: usize) -> f64 {
    scores.get(count).or(scores.last()).copied().unwrap_or(0.0)
}

fn found(
    kind: &'static str,
    scores: &[f64],
    at: StepIndex,
    before: &[StepIndex],
) -> Option<Finding> {
    let count = before.len() + 1;
    let score = level(scores, count);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    (score > 0.0)
        .then(|| (score, Evidence::new(kind, count).at(before.iter().copied().chain([at]))))
}

/// Detects the same action with the same result, with no change in between.
fn again(
    at: StepIndex,
    context: &StepContext,
    past: &History,
    window: &VecDeque<&PastStep>,
) -> Option<Finding> {
    let action = &context.action;
    let is_change = action.edits || action.kind.is_effect();
    let is_same = |p: &&&PastStep| {
        // Independent of the wording: the same target and the same result.
        let asked = if is_change {
            p.loose_key == action.loose_key
        } else {
            p.target_key == action.target_key
        };
        let answered = p.result_key == action.outcome.result_key;
        asked && answered && (is_change || p.changes_before == past.changes)
    };
    let same: Vec<StepIndex> = window.iter().filter(is_same).map(|p| p.at).collect();
    let in_a_row = window.iter().rev().take_while(is_same).count();
    let row = &same[same.len() - in_a_row.min(same.len())..];
    let (row, all) = (found("again", &IN_A_ROW, at, row), found("again", &AGAIN, at, &same));
    if row.as_ref().map_or(0.0, |finding| finding.0) > all.as_ref().map_or(0.0, |finding| finding.0)
    {
        row
    } else {
        all
    }
}

/// Returns earlier searches for the same thing in the same place, in other words and without a different result; oldest
/// first, each wording once.
fn rewordings<'a>(
    context: &StepContext,
    past: &History,
    window: &VecDeque<&'a PastStep>,
) -> Vec<&'a PastStep> {
    let action = &context.action;
    let query = action
        .query
        .as_deref()
        .filter(|_| action.kind == Kind::Search && context.has_no_new_result());
    let Some(query) = query else { return Vec::new() };
    let scope = context.scope();
    let mut wordings = vec![action.loose_key];
    let mut before = Vec::new();
    for p in window.iter().rev().take(REWORDED_ACTIONS) {
        let same_place =
            p.kind == Kind::Search && p.scope == scope && p.changes_before == past.changes;
        let same_answer =
            p.result_key == action.outcome.result_key || (p.found_nothing && context.found_nothing);
        let same_thing = || p.meaning.cosine(&context.meaning) >= SAME_MEANING;
        let other_words = || p.query.as_deref().is_some_and(|earlier| words_differ(earlier, query));
        if same_place
            && same_answer
            && same_thing()
            && other_words()
            && !wordings.contains(&p.loose_key)
        {
            wordings.push(p.loose_key);
            before.insert(0, *p);
        }
    }
    before
}

/// Keeps the searches that a second opinion does not distinguish from the latest one, directly or through another
/// search.
fn confirmed<'a>(mut left: Vec<&'a PastStep>, query: &str, past: &History) -> Vec<&'a PastStep> {
    let text = |action: &&'a PastStep| action.query.as_deref().unwrap_or_default();
    let mut chain: Vec<&PastStep> = Vec::new();
    let mut links = 0;
    let mut link = Some(query);
    while let Some(newer) = link {
        let (same, others) = left
            .into_iter()
            .partition(|action| !past.is_denied_by_second_opinion(text(action), newer));
        left = others;
        chain.extend::<Vec<_>>(same);
        link = chain.get(links).map(text);
        links += 1;
    }
    chain.sort_by_key(|action| action.at);
    chain
}

/// Reports whether queries differ in words. If they differ only in numbers, dates or codes, they are a list.
fn words_differ(earlier: &str, query: &str) -> bool {
    let is_word =
        |word: &&str| word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let split = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(is_word).map(str::to_owned).collect()
    };
    let (earlier, query) = (split(earlier), split(query));
    query.iter().any(|word| !earlier.contains(word))
        || earlier.iter().any(|word| !query.contains(word))
}

/// Detects cycles of two to five actions with their results.
fn cycle(at: StepIndex, context: &StepContext, window: &VecDeque<&PastStep>) -> Option<Finding> {
    let action = &context.action;
    let round = |back: usize| -> Option<(u64, u64)> {
        if back == 0 {
            return Some((action.loose_key, action.outcome.result_key));
        }
        let actions = window.len().checked_sub(back).and_then(|at| window.get(at))?;
        (!actions.poll).then_some((actions.loose_key, actions.result_key))
    };
    (2..=CYCLE_ACTIONS_MAX).find_map(|length| {
        let same = (0..=window.len())
            .take_while(|back| round(*back).is_some() && round(*back) == round(back + length))
            .count();
        let rounds = 1 + same / length;
        let distinct = (1..length).any(|back| round(back) != round(0));
        let score = match rounds {
            2 if same >= length => 0.45,
            3.. => 0.80,
            _ => 0.0,
        };
        let first =
            at.0.saturating_sub(u32::try_from(rounds * length).unwrap_or(0).saturating_sub(1));
        (distinct && score > 0.0).then(|| {
            let count = u32::try_from(rounds).unwrap_or(u32::MAX);
            let limit = u32::try_from(length).unwrap_or(u32::MAX);
            (score, Evidence::new("cycle", count).of(limit).at([StepIndex(first), at]))
        })
    })
}

/// Detects the same error after different actions.
fn same_error(
    at: StepIndex,
    context: &StepContext,
    past: &History,
    window: &VecDeque<&PastStep>,
) -> Option<Finding> {
    let outcome = &context.action.outcome;
    let class = outcome.signature_class.filter(|_| outcome.failed)?;
    let mut steps = Vec::new();
    let mut changes_between = 0_u32;
    let mut others = 0;
    for p in window.iter().rev() {
        // After a change, the same type of error about something else is progress.
        let changed = p.changes_before != past.changes;
        let same =
            if changed { p.error == outcome.signature } else { p.error_class == Some(class) };
        if p.failed && same {
            changes_between = past.changes.saturating_sub(p.changes_before);
            steps.insert(0, p.at);
            others = 0;
        } else if p.failed || !p.kind.is_effect() {
            others += 1;
        }
        // A success in between starts a new series.
        if others > 3 {
            break;
        }
    }
    // Attempts to fix an error are normal; each pair of them allows one more.
    let patience = (changes_between as usize / 2).min(2);
    let counted = steps.len().saturating_sub(patience);
    let from = steps.len() - counted;
    found("same_error", &SAME_ERROR, at, &steps[from..])
}

/// Detects consecutive reads without new content.
fn no_news(at: StepIndex, context: &StepContext, window: &VecDeque<&PastStep>) -> Option<Finding> {
    if !context.is_stale() || !context.action.kind.is_look() {
        return None;
    }
    let stale =
        window.iter().rev().take_while(|p| p.is_stale && !p.poll && (p.kind.is_look() || p.failed));
    let mut before: Vec<StepIndex> = stale.map(|p| p.at).collect();
    before.reverse();
    found("no_news", &NO_NEWS, at, &before)
}

/// Detects equal or nearly equal messages with nothing in between.
fn repeated_message(
    at: StepIndex,
    context: &StepContext,
    window: &VecDeque<&PastStep>,
) -> Option<Finding> {
    let thought = context.thought.as_ref().filter(|_| context.novelty.is_none())?;
    let alike = |p: &&&PastStep| {
        let same =
            p.thought.as_ref().is_some_and(|earlier| earlier.cosine(thought) >= SAME_MESSAGE);
        p.kind == Kind::Message && same
    };
    let mut before: Vec<StepIndex> = window.iter().rev().take_while(alike).map(|p| p.at).collect();
    before.reverse();
    found("said_again", &IN_A_ROW, at, &before)
}
