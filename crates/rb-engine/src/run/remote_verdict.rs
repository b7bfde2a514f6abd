//! Assessment of the newest steps by a server, which replaces the run's own.
//!
//! Cooldowns, caps and allowances stay those of the run. Signals that the server did not score stay as well.

use crate::monitors::find;
use crate::run::Reading;

/// Reply of a server, for [`crate::run::Run::before_model_with_verdict`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteVerdict {
    pub(crate) readings: Vec<Reading>,
    pub(crate) composite: f64,
    pub(crate) advice: Vec<RemoteAdvice>,
}

/// Guidance in the reply of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAdvice {
    /// The monitor that it is from; `None` for a pattern or an operator.
    pub monitor: Option<String>,
    /// The text for the agent.
    pub text: String,
}

impl RemoteVerdict {
    /// Converts a reply: scores and fired monitors by name, the composite, and the guidance to choose from.
    ///
    /// Unknown monitors are ignored. Scores are clamped to 0 to 1, and a NaN is 0.
    pub fn new<'a>(
        scores: impl IntoIterator<Item = (&'a str, f64)>,
        fired: &[&str],
        composite: f64,
        advice: impl IntoIterator<Item = RemoteAdvice>,
    ) -> Self {
        let unit = |score: f64| if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) };
        let scores: Vec<(&str, f64)> = scores.into_iter().collect();
        let is_scored = |name: &str| scores.iter().any(|(scored, _)| *scored == name);
        let unscored = fired.iter().filter(|name| !is_scored(name)).map(|name| (*name, 1.0));
        let all: Vec<(&str, f64)> = scores.iter().copied().chain(unscored).collect();
        let reading = |(name, score): &(&str, f64)| {
            let (fired, score) = (fired.contains(name), unit(*score));
            Some(Reading { monitor: find(name)?, score, fired, signal: false, evidence: None })
        };
        Self {
            readings: all.iter().filter_map(reading).collect(),
            composite: unit(composite),
            advice: advice.into_iter().filter(|advice| !advice.text.trim().is_empty()).collect(),
        }
    }

    /// Returns true if the server scored the monitor.
    pub(crate) fn has(&self, monitor: &str) -> bool {
        self.readings.iter().any(|reading| reading.monitor.id == monitor)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Engine;
    use crate::guidance::{Fragment, Retrieved, Tier};
    use crate::run::Run;
    use crate::run::record::Reply;
    use crate::step::{Input, Step};

    fn verdict(advice: &str) -> RemoteVerdict {
        let scores = [("semantic_loop", 0.8), ("from_the_future", 1.0), ("hedge", f64::NAN)];
        let advice =
            RemoteAdvice { monitor: Some("semantic_loop".to_owned()), text: advice.to_owned() };
        RemoteVerdict::new(scores, &["semantic_loop", "from_the_future"], 1.5, [advice])
    }

    #[test]
    fn unknown_monitors_are_ignored_and_numbers_are_clamped() {
        let RemoteVerdict { readings, composite, advice } = verdict(" ");
        let found: Vec<_> = readings.iter().map(|r| (r.monitor.id, r.score, r.fired)).collect();
        assert_eq!(found, [("semantic_loop", 0.8, true), ("hedge", 0.0, false)]);
        assert_eq!((composite, advice), (1.0, vec![]));
        let bare = RemoteVerdict::new([], &["hedge"], 0.2, []);
        assert_eq!((bare.readings[0].score, bare.readings[0].fired), (1.0, true));
    }

    #[test]
    fn a_verdict_advises_within_the_cooldown_and_own_monitors_assess_without_one() {
        let mut run = Run::new(Arc::new(Engine::default()), "");
        let step = Step::thought("fine").with_action("read", Input::None);
        let pre_call = run.before_model(&[]);
        let plan = run.plan(pre_call, Retrieved::NONE, "");
        let _ = run.record(plan, Reply::default());

        let pre_call = run.before_model_with_verdict(&[step], verdict("look again"));
        assert!(pre_call.queries.iter().any(|query| query.tier == Tier::E1));
        let plan = run.plan(pre_call, Retrieved::NONE, "");
        assert_eq!(
            plan.fragment.as_ref().map(Fragment::as_str),
            Some("[REASONBLOCKS]\nlook again")
        );
        let record = run.record(plan, Reply::default());
        assert_eq!(
            (record.monitors_fired, record.advised, record.failure_type),
            (vec!["semantic_loop"], vec!["semantic_loop"], Some("semantic_loop"))
        );

        // The cooldown is that of the run.
        let pre_call = run.before_model_with_verdict(&[step], verdict("and again"));
        let plan = run.plan(pre_call, Retrieved::NONE, "");
        assert_eq!(plan.fragment, None);
        let _ = run.record(plan, Reply::default());

        // A signal that the server did not score is kept: the third call of `read` in a row.
        let pre_call = run.before_model_with_verdict(&[step], verdict("and again"));
        let signals: Vec<_> =
            pre_call.assessment.signals().map(|reading| reading.monitor.id).collect();
        assert_eq!(signals, ["streak"]);

        // Without a verdict the run's own monitors assess.
        let pre_call = run.before_model(&[step]);
        assert_eq!(pre_call.assessment.readings.len(), crate::monitors::ALL.len());
    }

    #[test]
    fn guidance_without_a_monitor_precedes_the_advice_of_monitors() {
        let mut run = Run::new(Arc::new(Engine::default()), "");
        let plan = run.decide(&[], "");
        let _ = run.record(plan, Reply::default());
        let mut verdict = verdict("look again");
        verdict.advice.push(RemoteAdvice { monitor: None, text: "Stop here.".to_owned() });
        let pre_call = run.before_model_with_verdict(&[Step::thought("fine")], verdict);
        let plan = run.plan(pre_call, Retrieved::NONE, "");
        assert_eq!(
            plan.fragment.as_ref().map(Fragment::as_str),
            Some("[REASONBLOCKS]\nStop here.")
        );
    }
}
