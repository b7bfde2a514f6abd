//! `cyclic_compression`: the same state is summed up and derived again without progress.
//!
//! **Rule.** *Recaps*: a thought that sums up says the same as an earlier one, with next to nothing learned or changed
//! between; the third fires. *After a compaction*: most of the acts that follow a cut of the conversation repeat acts
//! from before it; the fourth fires. Below that, a small score grows while thoughts keep saying the same.
//!
//! **Fires at** 0.6.
//!
//! **Not churn.** A plan restated to the user once, a summary at the end of the work, a recap after real progress.
//!
//! **State.** The last `RECAPS_MAX` recaps and a filter for what was done. Cost per step: the window.
//!
//! **Blind spots.** A host that cuts the conversation without leaving a trace in the text.

use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, ProfileWeights, Signal, Suite};
use crate::analysis::action::Kind;
use crate::analysis::embedding::Vector;
use crate::analysis::features::StepFeatures;
use crate::analysis::history::{History, StepContext};
use crate::analysis::phrases::{Cue, CueSet};
use crate::analysis::recency_filter::RecencyFilter;
use crate::analysis::text::{Lowercased, is_blank};
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "cyclic_compression",
    suite: Suite::Semantic,
    summary: "The same state is summed up and derived again without progress.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "context_churn",
    weights: ProfileWeights { coding: 0.10, pr_review: 0.15, qa: 0.05 },
    build: |_| Box::new(CyclicCompression::default()),
    advice,
};

const RECAPS_MAX: usize = 8;
/// Recaps this alike say the same.
const SAME_RECAP: f64 = 0.88;
/// A recap after more than this many steps of progress since the last alike is a new one.
const PROGRESS_MAX: u32 = 1;
/// Acts after a compaction that are looked at.
const AFTER_ACTS: u32 = 8;
/// Thoughts this alike to a recent one count towards the small score.
const SAME_THOUGHT: f64 = 0.75;
const CHURN_MAX: f64 = 0.50;
const CALM_START: f64 = 8.0;

#[derive(Default)]
struct CyclicCompression {
    recaps: VecDeque<(StepIndex, Vector, u32)>,
    progress: u32,
    done: RecencyFilter,
    /// Acts since a compaction: where it was, how many, and how many of them were done before it.
    after: Option<(StepIndex, u32, u32)>,
    steps: f64,
    same_thoughts: f64,
    found: Option<(StepIndex, f64, Evidence)>,
}

impl Monitor for CyclicCompression {
    fn observe(&mut self, at: StepIndex, facts: &StepFeatures<'_>) -> Signal {
        let Some((scene, past)) = facts.scene else { return Signal::none() };
        if !is_blank(facts.step.user_input) {
            self.recaps.clear();
        }
        let told = CueSet::match_thought(&Lowercased::of(facts.step.user_input), |_| {});
        if told.has(Cue::Compacted) || facts.thought.cues.has(Cue::Compacted) {
            self.after = Some((at, 0, 0));
        }
        let new =
            self.recap(at, facts.thought.cues, scene).or_else(|| self.after_compaction(at, scene));
        if let Some((score, evidence)) = new {
            self.found = Some((at, score, evidence));
        }
        self.take(scene, past);
        if self.found.as_ref().is_some_and(|(since, ..)| at.0 - since.0 > 2) {
            self.found = None;
        }
        let churn = (self.same_thoughts / (self.steps + CALM_START)).min(CHURN_MAX);
        match &self.found {
            Some((_, score, evidence)) if *score > churn => {
                Signal::new(*score, || evidence.clone())
            }
            _ => Signal::new(churn, || Evidence::new("says_the_same", 1).at([at])),
        }
    }

    fn advised(&mut self, _: StepIndex) {
        self.recaps.clear();
        self.after = None;
        self.found = None;
    }

    fn heap_bytes(&self) -> usize {
        let vectors = self.recaps.len() * crate::analysis::embedding::DIMS * size_of::<f32>();
        vectors
            + self.done.heap_bytes()
            + self.recaps.capacity() * size_of::<(StepIndex, Vector, u32)>()
    }
}

impl CyclicCompression {
    fn take(&mut self, scene: &StepContext, past: &History) {
        let act = &scene.act;
        self.progress = self.progress.saturating_add(u32::from(scene.is_evidence()));
        self.steps += 1.0;
        if let Some(thought) = &scene.thought {
            let recent = past.recent.iter().rev().take(8).filter_map(|p| p.thought.as_ref());
            let alike = thought.closest(recent);
            self.same_thoughts += ((alike - SAME_THOUGHT) / (1.0 - SAME_THOUGHT)).max(0.0);
        }
        if self.after.is_none() && !matches!(act.kind, Kind::Message | Kind::Think) {
            self.done.insert(done_print(scene));
        }
    }

    fn recap(
        &mut self,
        at: StepIndex,
        heard: CueSet,
        scene: &StepContext,
    ) -> Option<(f64, Evidence)> {
        let sums_up = heard.has(Cue::SumUp) && !scene.act.poll;
        let meaning = scene.thought.as_ref().filter(|_| sums_up)?;
        // Back from recap to alike recap, as long as next to nothing was learned between two of them.
        let mut same: Vec<StepIndex> = Vec::new();
        let mut progress = self.progress;
        for (step, recap, then) in self.recaps.iter().rev() {
            if recap.cosine(meaning) >= SAME_RECAP && progress - then <= PROGRESS_MAX {
                same.insert(0, *step);
                progress = *then;
            }
        }
        if self.recaps.len() == RECAPS_MAX {
            self.recaps.pop_front();
        }
        self.recaps.push_back((at, meaning.clone(), self.progress));
        let count = u32::try_from(same.len() + 1).unwrap_or(u32::MAX);
        let score = match count {
            0 | 1 => return None,
            2 => 0.45,
            3 => 0.70,
            _ => 0.90,
        };
        Some((score, Evidence::new("recap_again", count).at(same.into_iter().chain([at]))))
    }

    fn after_compaction(&mut self, at: StepIndex, scene: &StepContext) -> Option<(f64, Evidence)> {
        let (cut, acts, again) = self.after.as_mut()?;
        if matches!(scene.act.kind, Kind::Message | Kind::Think) || scene.act.poll {
            return None;
        }
        *acts += 1;
        *again += u32::from(self.done.contains(done_print(scene)));
        let (cut, acts, again) = (*cut, *acts, *again);
        if acts >= AFTER_ACTS {
            self.after = None;
        }
        let mostly = again >= 4 && f64::from(again) >= 0.6 * f64::from(acts);
        mostly.then(|| (0.75, Evidence::new("done_before_the_cut", again).of(acts).at([cut, at])))
    }
}

/// An act with its answer: the same again, not the same after something changed.
fn done_print(scene: &StepContext) -> u64 {
    scene.act.loose_key ^ scene.act.outcome.result_key.rotate_left(1)
}

fn advice(seen: &Evidence) -> String {
    let (count, limit) = (seen.count, seen.limit.unwrap_or_default());
    let (steps, span) = (seen.steps_in_words(), seen.span_in_words());
    match (seen.kind, seen.is_repeated()) {
        ("done_before_the_cut", false) => format!(
            "{count} of the {limit} acts since the conversation was cut ({span}) repeat what was done before it. The results \
             are likely to be the same. It may help to note what is already known and go on from the first open point."
        ),
        ("done_before_the_cut", true) => format!(
            "again {count} of {limit} acts since a cut of the conversation ({span}) repeat earlier work, after an earlier \
             notice. Each cut now costs the same work once more. Ways out: keep a short list of what is done and what it \
             showed where it survives a cut, or finish with what there is."
        ),
        (_, false) => format!(
            "the same state was summed up {count} times with little learned between ({steps}). It may help to leave the \
             summary as it is and take the next open point: the smallest step that would change it."
        ),
        (_, true) => format!(
            "the same state is still being summed up after an earlier notice, {count} times by now ({steps}). Another summary \
             will say what the last one said. Ways out: do the first open point without planning it again, or hand over with \
             the summary as the result."
        ),
    }
}
