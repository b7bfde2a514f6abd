//! `cyclic_compression`: the same state is summarised and derived again without progress.
//!
//! **Rule.** *Recaps*: a thought that summarises is similar to an earlier one, with almost nothing learned or changed
//! in between; the third fires. *After a compaction*: most actions after a compaction of the conversation repeat
//! actions from before it; the fourth fires. Otherwise a small score grows while thoughts repeat.
//!
//! **Fires at** 0.6.
//!
//! **Not churn.** A plan repeated to the user once, a summary at the end of the work, a recap after real progress.
//!
//! **State.** The last `RECAPS_MAX` recaps and a filter for earlier actions. Cost per step: the window.
//!
//! **Blind spots.** A host that compacts the conversation without a trace in the text.

use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, Signal, Suite};
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
    build: |_| Box::new(CyclicCompression::default()),
    advice,
};

const RECAPS_MAX: usize = 8;
/// Minimum similarity of two equal recaps.
const SAME_RECAP: f64 = 0.88;
/// Maximum number of steps with progress between two recaps.
const PROGRESS_MAX: u32 = 1;
/// Number of actions after a compaction that are compared.
const ACTIONS_AFTER_COMPACTION: u32 = 8;
/// Minimum similarity of two thoughts that repeat each other.
const SAME_THOUGHT: f64 = 0.75;
const CHURN_MAX: f64 = 0.50;
const CALM_START: f64 = 8.0;

#[derive(Default)]
struct CyclicCompression {
    recaps: VecDeque<(StepIndex, Vector, u32)>,
    progress: u32,
    earlier_actions: RecencyFilter,
    /// Position of the latest compaction, number of actions since, and number of those that were done before it.
    since_compaction: Option<(StepIndex, u32, u32)>,
    steps: f64,
    same_thoughts: f64,
    current: Option<(StepIndex, f64, Evidence)>,
}

impl Monitor for CyclicCompression {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        let Some((context, past)) = features.context else { return Signal::none() };
        if !is_blank(features.step.user_input) {
            self.recaps.clear();
        }
        let user_cues = CueSet::match_thought(&Lowercased::of(features.step.user_input), |_| {});
        if user_cues.has(Cue::Compacted) || features.thought.cues.has(Cue::Compacted) {
            self.since_compaction = Some((at, 0, 0));
        }
        let new = self
            .recap(at, features.thought.cues, context)
            .or_else(|| self.after_compaction(at, context));
        if let Some((score, evidence)) = new {
            self.current = Some((at, score, evidence));
        }
        self.record(context, past);
        if self.current.as_ref().is_some_and(|(since, ..)| at.0 - since.0 > 2) {
            self.current = None;
        }
        let churn = (self.same_thoughts / (self.steps + CALM_START)).min(CHURN_MAX);
        match &self.current {
            Some((_, score, evidence)) if *score > churn => {
                Signal::new(*score, || evidence.clone())
            }
            _ => Signal::new(churn, || Evidence::new("says_the_same", 1).at([at])),
        }
    }

    fn advised(&mut self, _: StepIndex) {
        self.recaps.clear();
        self.since_compaction = None;
        self.current = None;
    }

    fn heap_bytes(&self) -> usize {
        let vectors = self.recaps.len() * crate::analysis::embedding::DIMS * size_of::<f32>();
        vectors
            + self.earlier_actions.heap_bytes()
            + self.recaps.capacity() * size_of::<(StepIndex, Vector, u32)>()
    }
}

impl CyclicCompression {
    fn record(&mut self, context: &StepContext, past: &History) {
        let action = &context.action;
        self.progress = self.progress.saturating_add(u32::from(context.has_new_information()));
        self.steps += 1.0;
        if let Some(thought) = &context.thought {
            let recent = past.recent.iter().rev().take(8).filter_map(|p| p.thought.as_ref());
            let alike = thought.closest(recent);
            self.same_thoughts += ((alike - SAME_THOUGHT) / (1.0 - SAME_THOUGHT)).max(0.0);
        }
        if self.since_compaction.is_none() && !matches!(action.kind, Kind::Message | Kind::Think) {
            self.earlier_actions.insert(action_hash(context));
        }
    }

    fn recap(
        &mut self,
        at: StepIndex,
        cues: CueSet,
        context: &StepContext,
    ) -> Option<(f64, Evidence)> {
        let summarises = cues.has(Cue::SumUp) && !context.action.poll;
        let meaning = context.thought.as_ref().filter(|_| summarises)?;
        // Goes back from recap to recap as long as almost nothing was learned between two of them.
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

    fn after_compaction(
        &mut self,
        at: StepIndex,
        context: &StepContext,
    ) -> Option<(f64, Evidence)> {
        let (cut, actions, repeated) = self.since_compaction.as_mut()?;
        if matches!(context.action.kind, Kind::Message | Kind::Think) || context.action.poll {
            return None;
        }
        *actions += 1;
        *repeated += u32::from(self.earlier_actions.contains(action_hash(context)));
        let (cut, actions, repeated) = (*cut, *actions, *repeated);
        if actions >= ACTIONS_AFTER_COMPACTION {
            self.since_compaction = None;
        }
        let mostly = repeated >= 4 && f64::from(repeated) >= 0.6 * f64::from(actions);
        mostly.then(|| {
            (0.75, Evidence::new("done_before_the_cut", repeated).of(actions).at([cut, at]))
        })
    }
}

/// Hashes an action with its result, so that the same action after a change is different.
fn action_hash(context: &StepContext) -> u64 {
    context.action.loose_key ^ context.action.outcome.result_key.rotate_left(1)
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
