//! `semantic_loop`: the same act again, perhaps in other words, without anything new.
//!
//! **Rule.** Six signs, the strongest counts. *Again*: the same act with the same answer and no change between; the
//! fourth time in a row fires. *Reworded*: looks for the same thing in other words and finds nothing new; the third fires,
//! unless the host's second embedder, asked once in that moment, finds that too few of them mean the same.
//! *Back and forth*: one edit puts in what the one before took out; the second turn fires.
//! *Cycle*: two to five acts with their answers, three times round. *Same error*: the same kind of error from different
//! acts in a row; the fifth fires, sooner where nothing was changed between. *No news*: seven looks in a row that show
//! nothing new. Below that, a small score grows with failures, stale answers and files written again.
//!
//! **Fires at** 0.6.
//!
//! **Not a loop.** A changed answer is progress. Waiting is how a wait works (tools called polling or stateful are left
//! out). Going through a list of files shows something new each time. Reading another part of a file does too. A test
//! run again after a change is a check. What a user says begins a new count, and so does an advice that was shown.
//!
//! **State.** The last eight edits as fingerprints and a few counters; the acts are shared by all monitors. Cost per step:
//! the window.
//!
//! **Blind spots.** A loop longer than five acts, or whose every round shows something new without getting anywhere.

use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, ProfileWeights, Signal, Suite};
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
    weights: ProfileWeights { coding: 0.25, pr_review: 0.30, qa: 0.15 },
    build: |_| Box::new(SemanticLoop::default()),
    advice,
};

/// Acts this alike are about the same thing.
const SAME_MEANING: f64 = 0.55;
/// Rewordings are looked for this many acts back.
const REWORDED_ACTS: usize = 8;
/// Messages this alike are the same.
const SAME_MESSAGE: f64 = 0.90;
/// Edits that turn each other round count together within this many steps.
const TURNS_WITHIN: u32 = 8;
/// Cycles of two up to this many acts are looked for.
const CYCLE_ACTS_MAX: usize = 5;
/// The small score never reaches the threshold.
const TROUBLE_MAX: f64 = 0.45;
/// Trouble is a share of the steps so far, counted as if this many quiet ones had come before.
const QUIET_START: f64 = 10.0;

/// Scores by how often something has happened; index 0 and 1 are nothing.
const AGAIN: [f64; 7] = [0.0, 0.0, 0.20, 0.35, 0.50, 0.70, 1.0];
const IN_A_ROW: [f64; 7] = [0.0, 0.0, 0.25, 0.45, 0.65, 0.85, 1.0];
const REWORDED: [f64; 6] = [0.0, 0.0, 0.30, 0.62, 0.80, 1.0];
const SAME_ERROR: [f64; 7] = [0.0, 0.0, 0.20, 0.40, 0.55, 0.70, 0.90];
const NO_NEWS: [f64; 10] = [0.0, 0.0, 0.0, 0.15, 0.25, 0.35, 0.50, 0.65, 0.80, 1.0];

/// How many edits are remembered to see one undo the other.
const EDITS_MAX: usize = 8;

#[derive(Default)]
struct SemanticLoop {
    /// The newest edits: where, the file, and the texts taken out and put in.
    edits: VecDeque<(StepIndex, u64, Vec<u64>)>,
    /// Where one edit turned round the one before it.
    turns: Vec<StepIndex>,
    /// Acts before this one no longer count.
    since: StepIndex,
    /// Searches before this one are no rewordings of what comes: a second opinion has said so.
    reworded_since: StepIndex,
    /// The newest search of a reworded loop that stood the second opinion; as it goes on, nobody is asked again.
    stood: Option<StepIndex>,
    steps: f64,
    trouble: f64,
}

impl Monitor for SemanticLoop {
    fn observe(&mut self, at: StepIndex, facts: &StepFeatures<'_>) -> Signal {
        let Some((scene, past)) = facts.scene else { return Signal::none() };
        if !is_blank(facts.step.user_input) {
            self.since = at;
        }
        self.steps += 1.0;
        self.trouble += trouble(scene);
        let window: VecDeque<&PastStep> =
            past.recent.iter().filter(|act| act.at >= self.since).collect();
        let signs = self.signs(at, scene, past, &window);
        let mut found: Vec<Retrieved> = signs.into_iter().flatten().collect();
        found.extend(self.back_and_forth(at, scene));
        let strongest = found.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let trouble = (self.trouble / (self.steps + QUIET_START)).min(TROUBLE_MAX);
        match strongest {
            Some((score, evidence)) if score > trouble => {
                Signal::new(score, || evidence.tool(facts.step.tool()))
            }
            _ => Signal::new(trouble, || Evidence::new("trouble", 1).at([at])),
        }
    }

    fn advised(&mut self, at: StepIndex) {
        self.since = StepIndex(at.0.saturating_add(1));
        self.turns.clear();
    }

    fn heap_bytes(&self) -> usize {
        let texts: usize =
            self.edits.iter().map(|(.., texts)| texts.capacity() * size_of::<u64>()).sum();
        texts + self.edits.capacity() * size_of::<(StepIndex, u64, Vec<u64>)>()
    }
}

impl SemanticLoop {
    fn signs(
        &mut self,
        at: StepIndex,
        scene: &StepContext,
        past: &History,
        window: &VecDeque<&PastStep>,
    ) -> [Option<Retrieved>; 5] {
        let act = &scene.act;
        if act.poll || act.stateful || matches!(act.kind, Kind::Think | Kind::Finish) {
            return Default::default();
        }
        if act.kind == Kind::Message {
            return [said_again(at, scene, window), None, None, None, None];
        }
        [
            again(at, scene, past, window),
            self.reworded(at, scene, past, window),
            cycle(at, scene, window),
            same_error(at, scene, past, window),
            no_news(at, scene, window),
        ]
    }

    /// Looks for the same thing at the same place in other words, and each time there is nothing, or the same. Where the
    /// alarm depends on it, a second opinion is asked for, once a loop.
    fn reworded(
        &mut self,
        at: StepIndex,
        scene: &StepContext,
        past: &History,
        window: &VecDeque<&PastStep>,
    ) -> Option<Retrieved> {
        let query = scene.act.query.as_deref()?;
        let mut earlier = rewordings(scene, past, window);
        earlier.retain(|act| act.at >= self.reworded_since);
        let fires = |earlier: &[&PastStep]| level(&REWORDED, earlier.len() + 1) >= SPEC.fire_at;
        if fires(&earlier) {
            let goes_on = earlier.iter().any(|act| Some(act.at) == self.stood);
            if !goes_on {
                earlier = confirmed(earlier, query, past);
            }
            if fires(&earlier) {
                self.stood = Some(at);
            } else {
                self.reworded_since = at;
            }
        }
        let steps: Vec<StepIndex> = earlier.iter().map(|act| act.at).collect();
        found("reworded", &REWORDED, at, &steps)
            .map(|(score, evidence)| (score, evidence.phrase(query)))
    }

    /// One edit puts in what the one before took out, again and again.
    fn back_and_forth(&mut self, at: StepIndex, scene: &StepContext) -> Option<Retrieved> {
        let file = scene.act.writes.first().filter(|_| !scene.edit.is_empty())?;
        let file = fingerprint(file.path.rsplit('/').next().unwrap_or(&file.path));
        let before = self.edits.iter().rev().find(|(_, known, _)| *known == file);
        if before.is_some_and(|(.., texts)| turns_round(texts, &scene.edit)) {
            self.turns.push(at);
        }
        self.turns.retain(|turn| at.0 - turn.0 <= TURNS_WITHIN);
        if self.edits.len() == EDITS_MAX {
            self.edits.pop_front();
        }
        self.edits.push_back((at, file, scene.edit.clone()));
        let (score, count) = match self.turns.len() {
            0 => return None,
            1 => (0.35, 1),
            2 => (0.65, 2),
            more => (0.85, u32::try_from(more).unwrap_or(u32::MAX)),
        };
        let path = scene.act.writes.first().map_or("", |file| &file.path);
        Some((
            score,
            Evidence::new("back_and_forth", count).at(self.turns.iter().copied()).path(path),
        ))
    }
}

/// Two texts stand in both edits, in opposite order.
fn turns_round(before: &[u64], after: &[u64]) -> bool {
    let shared: Vec<usize> =
        after.iter().filter_map(|text| before.iter().position(|known| known == text)).collect();
    shared.windows(2).any(|pair| pair[0] > pair[1])
}

/// How much trouble one step is, from 0 to about 2.
fn trouble(scene: &StepContext) -> f64 {
    let acts = !matches!(scene.act.kind, Kind::Message | Kind::Think);
    let failed = if scene.act.outcome.failed { 1.0 } else { 0.0 };
    let stale = scene.novelty.filter(|_| !scene.act.poll).map_or(0.0, |new| 1.0 - new);
    let again = if acts && scene.rewrites { 0.5 } else { 0.0 };
    failed + 0.8 * stale + again
}

type Retrieved = (f64, Evidence);

fn level(scores: &[f64], count: usize) -> f64 {
    scores.get(count).or(scores.last()).copied().unwrap_or(0.0)
}

fn found(
    kind: &'static str,
    scores: &[f64],
    at: StepIndex,
    before: &[StepIndex],
) -> Option<Retrieved> {
    let count = before.len() + 1;
    let score = level(scores, count);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    (score > 0.0)
        .then(|| (score, Evidence::new(kind, count).at(before.iter().copied().chain([at]))))
}

/// The same act with the same answer, and nothing changed between.
fn again(
    at: StepIndex,
    scene: &StepContext,
    past: &History,
    window: &VecDeque<&PastStep>,
) -> Option<Retrieved> {
    let act = &scene.act;
    let is_change = act.edits || act.kind.is_effect();
    let is_same = |p: &&&PastStep| {
        // Whatever the wording: what is about the same and answered the same is the same.
        let asked =
            if is_change { p.loose_key == act.loose_key } else { p.target_key == act.target_key };
        let answered = p.result_key == act.outcome.result_key;
        asked && answered && (is_change || p.changes_before == past.changes)
    };
    let same: Vec<StepIndex> = window.iter().filter(is_same).map(|p| p.at).collect();
    let in_a_row = window.iter().rev().take_while(is_same).count();
    let row = &same[same.len() - in_a_row.min(same.len())..];
    let (row, all) = (found("again", &IN_A_ROW, at, row), found("again", &AGAIN, at, &same));
    if row.as_ref().map_or(0.0, |sign| sign.0) > all.as_ref().map_or(0.0, |sign| sign.0) {
        row
    } else {
        all
    }
}

/// The searches for the same thing at the same place in other words that found as little; oldest first, each wording once.
fn rewordings<'a>(
    scene: &StepContext,
    past: &History,
    window: &VecDeque<&'a PastStep>,
) -> Vec<&'a PastStep> {
    let act = &scene.act;
    let query = act.query.as_deref().filter(|_| act.kind == Kind::Search && scene.is_fruitless());
    let Some(query) = query else { return Vec::new() };
    let scope = scene.scope();
    let mut wordings = vec![act.loose_key];
    let mut before = Vec::new();
    for p in window.iter().rev().take(REWORDED_ACTS) {
        let same_place =
            p.kind == Kind::Search && p.scope == scope && p.changes_before == past.changes;
        let same_answer =
            p.result_key == act.outcome.result_key || (p.found_nothing && scene.found_nothing);
        let same_thing = || p.meaning.cosine(&scene.meaning) >= SAME_MEANING;
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

/// Those of the searches that a second opinion does not tell apart from the newest, be it by way of one another.
fn confirmed<'a>(mut left: Vec<&'a PastStep>, query: &str, past: &History) -> Vec<&'a PastStep> {
    let text = |act: &&'a PastStep| act.query.as_deref().unwrap_or_default();
    let mut chain: Vec<&PastStep> = Vec::new();
    let mut links = 0;
    let mut link = Some(query);
    while let Some(newer) = link {
        let (same, others) = left.into_iter().partition(|act| !past.denies(text(act), newer));
        left = others;
        chain.extend::<Vec<_>>(same);
        link = chain.get(links).map(text);
        links += 1;
    }
    chain.sort_by_key(|act| act.at);
    chain
}

/// Differ in words, not only in numbers, dates or codes: those make a list, not a rewording.
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

/// Two to five acts with their answers, round and round.
fn cycle(at: StepIndex, scene: &StepContext, window: &VecDeque<&PastStep>) -> Option<Retrieved> {
    let act = &scene.act;
    let round = |back: usize| -> Option<(u64, u64)> {
        if back == 0 {
            return Some((act.loose_key, act.outcome.result_key));
        }
        let acts = window.len().checked_sub(back).and_then(|at| window.get(at))?;
        (!acts.poll).then_some((acts.loose_key, acts.result_key))
    };
    (2..=CYCLE_ACTS_MAX).find_map(|length| {
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

/// The same error, again and again, whatever was tried.
fn same_error(
    at: StepIndex,
    scene: &StepContext,
    past: &History,
    window: &VecDeque<&PastStep>,
) -> Option<Retrieved> {
    let outcome = &scene.act.outcome;
    let class = outcome.signature_class.filter(|_| outcome.failed)?;
    let mut steps = Vec::new();
    let mut changes_between = 0_u32;
    let mut others = 0;
    for p in window.iter().rev() {
        // About something else after a change, the same sort of error is progress.
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
        // Something else worked for a while: another episode.
        if others > 3 {
            break;
        }
    }
    // Trying fixes is what one does about an error; each pair of them earns one more try.
    let patience = (changes_between as usize / 2).min(2);
    let counted = steps.len().saturating_sub(patience);
    let from = steps.len() - counted;
    found("same_error", &SAME_ERROR, at, &steps[from..])
}

/// One look after the other that shows nothing new.
fn no_news(at: StepIndex, scene: &StepContext, window: &VecDeque<&PastStep>) -> Option<Retrieved> {
    if !scene.is_no_news() || !scene.act.kind.is_look() {
        return None;
    }
    let stale =
        window.iter().rev().take_while(|p| p.no_news && !p.poll && (p.kind.is_look() || p.failed));
    let mut before: Vec<StepIndex> = stale.map(|p| p.at).collect();
    before.reverse();
    found("no_news", &NO_NEWS, at, &before)
}

/// The same message again, or nearly, with nothing done and nothing said between.
fn said_again(
    at: StepIndex,
    scene: &StepContext,
    window: &VecDeque<&PastStep>,
) -> Option<Retrieved> {
    let thought = scene.thought.as_ref().filter(|_| scene.novelty.is_none())?;
    let alike = |p: &&&PastStep| {
        let same =
            p.thought.as_ref().is_some_and(|earlier| earlier.cosine(thought) >= SAME_MESSAGE);
        p.kind == Kind::Message && same
    };
    let mut before: Vec<StepIndex> = window.iter().rev().take_while(alike).map(|p| p.at).collect();
    before.reverse();
    found("said_again", &IN_A_ROW, at, &before)
}

fn advice(seen: &Evidence) -> String {
    if seen.is_repeated() {
        return plainer_advice(seen);
    }
    let steps = seen.steps_in_words();
    let tool = seen.tool.as_deref().map_or_else(String::new, |tool| format!(" (`{tool}`)"));
    match seen.kind {
        "reworded" => format!(
            "{steps} look for the same thing in different words, and none brought anything new. The answer may not be \
             there. It may help to question the assumption behind the search, look somewhere else, or go on with what \
             is known."
        ),
        "cycle" => format!(
            "{} have gone round the same {} acts {} times with the same answers. It may help to write down what the round \
             was meant to find out, and to take one step that is not part of it.",
            seen.span_in_words(),
            seen.limit.unwrap_or_default(),
            seen.count
        ),
        "same_error" => format!(
            "{} attempts ended in the same kind of error ({steps}). Trying further variations may not help. It may help to \
             read the first error closely, find out what it depends on, and test that alone.",
            seen.count
        ),
        "back_and_forth" => format!(
            "the newest edits of `{}` undo each other ({steps}). It may help to decide which version is wanted and why, to \
             check that one, and to look for the cause elsewhere if neither works.",
            seen.path.as_deref().unwrap_or("the same file")
        ),
        "no_news" => format!(
            "the last {} looks showed nothing that was not known already ({}). It may be time to decide with what is known, \
             or to name the one fact that is missing and where it could be.",
            seen.count,
            seen.span_in_words()
        ),
        "said_again" => format!(
            "the same message was given {} times ({steps}). If it did not have the effect it was meant to have, it may help \
             to say what is needed in another way, or to do the next step oneself.",
            seen.count
        ),
        _ => format!(
            "the same act{tool} gave the same answer {} times with no change between ({steps}). Doing it again is unlikely to \
             show anything else. It may help to use what the answer says, change something first, or look elsewhere.",
            seen.count
        ),
    }
}

/// For what goes on after a notice: what it costs, and ways out of it rather than ways on.
fn plainer_advice(seen: &Evidence) -> String {
    let steps = seen.steps_in_words();
    match seen.kind {
        "reworded" => format!(
            "{steps} search for the same thing in yet other words, after an earlier notice, and still nothing new came \
             back. Further wordings will very likely find nothing either. Ways out: take it as not there and say so, or find \
             out who creates the thing and start from that end."
        ),
        "cycle" => format!(
            "the same round of {} acts goes on after an earlier notice ({} rounds, {}), with the same answers each time. \
             Another round will end as the last one did. Ways out: drop the assumption that starts the round, or report where \
             it is stuck and what was tried.",
            seen.limit.unwrap_or_default(),
            seen.count,
            seen.span_in_words()
        ),
        "same_error" => format!(
            "the same kind of error came {} more times after an earlier notice ({steps}). What was varied is probably not what \
             causes it. Ways out: go back to the last state that worked, reduce it to the smallest case that still fails, or \
             report it as open.",
            seen.count
        ),
        "back_and_forth" => format!(
            "`{}` is still being changed to and fro after an earlier notice ({steps}), so the work does not move. Ways out: \
             write one check that tells the two versions apart and keep the one that passes, or leave the file and report what \
             speaks for either.",
            seen.path.as_deref().unwrap_or("the same file")
        ),
        "no_news" => format!(
            "{} further looks after an earlier notice showed nothing new ({}). Looking has stopped paying. Ways out: act on \
             the best reading of what is known and see what happens, or say which question stays open.",
            seen.count,
            seen.span_in_words()
        ),
        "said_again" => format!(
            "the same message went out {} more times after an earlier notice ({steps}), and nothing came of it. Ways out: ask \
             for one concrete thing, do what can be done without an answer, or close with what is missing.",
            seen.count
        ),
        _ => format!(
            "the same act is repeated after an earlier notice, {} times by now, and the answer stays the same ({steps}). No \
             repetition will change it. Ways out: work with that answer as it is, change what it depends on, or report that this \
             way is closed.",
            seen.count
        ),
    }
}
