//! What another engine said of the newest steps: a server's answer, which stands in place of a run's own readings.
//!
//! The guardrails stay here: cooldowns, caps and allowances are those of the run, whoever judged its steps.

use crate::monitors::find;
use crate::run::Reading;

/// An answer from elsewhere, for [`crate::run::Run::before_model_with_verdict`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteVerdict {
    pub(crate) readings: Vec<Reading>,
    pub(crate) composite: f64,
    pub(crate) advice: Option<String>,
}

impl RemoteVerdict {
    /// From the scores and the fired monitors by name, the composite, and the advice to show, if any.
    ///
    /// A monitor that is not in our table is left out: its name means nothing here. Scores are kept between 0 and 1.
    pub fn new<'a>(
        scores: impl IntoIterator<Item = (&'a str, f64)>,
        fired: &[&str],
        composite: f64,
        advice: Option<String>,
    ) -> Self {
        let unit = |score: f64| if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) };
        let scores: Vec<(&str, f64)> = scores.into_iter().collect();
        let is_known = |name: &str| scores.iter().any(|(known, _)| *known == name);
        let unscored = fired.iter().filter(|name| !is_known(name)).map(|name| (*name, 1.0));
        let all: Vec<(&str, f64)> = scores.iter().copied().chain(unscored).collect();
        let reading = |(name, score): &(&str, f64)| {
            let fired = fired.contains(name);
            Some(Reading { monitor: find(name)?, score: unit(*score), fired, evidence: None })
        };
        Self {
            readings: all.iter().filter_map(reading).collect(),
            composite: unit(composite),
            advice: advice.filter(|text| !text.trim().is_empty()),
        }
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
        let scores = [("streak", 0.8), ("from_the_future", 1.0), ("hedge", f64::NAN)];
        RemoteVerdict::new(scores, &["streak", "from_the_future"], 1.5, Some(advice.to_owned()))
    }

    #[test]
    fn names_we_do_not_know_are_left_out_and_numbers_are_kept_in_range() {
        let RemoteVerdict { readings, composite, advice } = verdict(" ");
        let said: Vec<_> = readings.iter().map(|r| (r.monitor.id, r.score, r.fired)).collect();
        assert_eq!(said, [("streak", 0.8, true), ("hedge", 0.0, false)]);
        assert_eq!((composite, advice), (1.0, None));
        let bare = RemoteVerdict::new([], &["hedge"], 0.2, None);
        assert_eq!((bare.readings[0].score, bare.readings[0].fired), (1.0, true));
    }

    #[test]
    fn a_verdict_speaks_within_the_guardrails_and_our_monitors_take_over_where_there_is_none() {
        let mut run = Run::new(Arc::new(Engine::default()), "");
        let step = Step::thought("fine").with_action("read", Input::None);
        let ask = run.before_model(&[]);
        let plan = run.plan(ask, Retrieved::NONE, "");
        let _ = run.record(plan, Reply::default());

        let ask = run.before_model_with_verdict(&[step], verdict("look again"));
        assert!(ask.queries.iter().any(|query| query.tier == Tier::E1));
        let plan = run.plan(ask, Retrieved::NONE, "");
        assert_eq!(
            plan.fragment.as_ref().map(Fragment::as_str),
            Some("[REASONBLOCKS]\nlook again")
        );
        let record = run.record(plan, Reply::default());
        assert_eq!(
            (record.monitors_fired, record.failure_type),
            (vec!["streak"], Some("action_loop"))
        );

        // The cooldown is the run's own.
        let ask = run.before_model_with_verdict(&[step], verdict("and again"));
        let plan = run.plan(ask, Retrieved::NONE, "");
        assert_eq!(plan.fragment, None);
        let _ = run.record(plan, Reply::default());

        // No verdict: the third call of `read` in a row is seen by the run itself.
        let ask = run.before_model(&[step]);
        assert!(ask.assessment.fired().any(|reading| reading.monitor.id == "streak"));
    }
}
