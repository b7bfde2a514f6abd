//! `test_repeat`: the same test failure twice in a row.
//!
//! **Rule.** Of the steps that look like a failed test run, the signature of the output (without volatile parts) is
//! compared. Two equal ones in a row score 1, for the rest of the run.
//!
//! **Fires at** 0.6: immediately.
//!
//! **State.** A fingerprint of the last signature. Cost per step: the length of its output.
//!
//! **Blind spots.** The score never decreases, and a test run is recognised by the name of the tool or a few words in
//! its output. Reading a source file that contains such words counts too.

use super::{Monitor, MonitorSpec, Signal, Suite, signature};
use crate::analysis::features::StepFeatures;
use crate::analysis::text::{fingerprint, searchable};
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "test_repeat",
    suite: Suite::Heuristic,
    summary: "The same test failure came back.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "repeated_test_failure",
    build: |_| Box::new(TestRepeat::default()),
    advice,
};

#[derive(Default)]
struct TestRepeat {
    /// The last failed test run: position and signature; `None` for an empty signature.
    last: Option<(StepIndex, Option<u64>)>,
    /// The latest pair of equal failures, and the number of such pairs.
    repeated: Option<([StepIndex; 2], u32)>,
}

impl Monitor for TestRepeat {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        if features.failed() && is_test(features) {
            let signature = signature::signature(features.step.observation);
            let hash = (!signature.is_empty()).then(|| fingerprint(&signature));
            if let Some((before, last)) = self.last
                && hash.is_some()
                && hash == last
            {
                let pairs = self.repeated.map_or(0, |(_, pairs)| pairs);
                self.repeated = Some(([before, at], pairs.saturating_add(1)));
            }
            self.last = Some((at, hash));
        }
        match self.repeated {
            Some((steps, pairs)) => Signal::new(1.0, || {
                Evidence::new("same_failure_again", pairs.saturating_add(1)).at(steps)
            }),
            None => Signal::none(),
        }
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

fn is_test(features: &StepFeatures<'_>) -> bool {
    features.observation.tested || searchable(features.step.tool()).contains("test")
}

fn advice(seen: &Evidence) -> String {
    format!(
        "two test runs in a row failed in the same way ({}). Running it again is unlikely to change that. \
         It may help to read the failure closely, state what it says about the cause, and change one thing \
         that this explanation predicts will matter.",
        seen.steps_in_words(),
    )
}

#[cfg(test)]
mod tests {
    use crate::test_util::check;

    #[test]
    fn the_same_failure_twice_fires_for_the_rest_of_the_run() {
        check(
            "test_repeat",
            "
            pytest => 1 failed at 0x7f3a in /tmp/a1/x   | 0.00
            read a.py => def f(): pass                  | 0.00
            pytest => 1 failed at 0x99bc in /tmp/b2/y   | 1.00 FIRED
            pytest => 3 passed                          | 1.00 FIRED
            ",
        );
    }

    #[test]
    fn a_different_failure_or_a_success_in_between_does_not_fire() {
        check(
            "test_repeat",
            "
            pytest => 1 failed: a   | 0.00
            pytest => 1 failed: b   | 0.00
            pytest => 1 failed: a   | 0.00
            pytest => 9 passed      | 0.00
            read x => error: a      | 0.00
            read x => error: a      | 0.00
            ",
        );
    }
}
