//! `call_count`: share of the expected number of tool calls that is used.
//!
//! **Rule.** Number of calls so far divided by the budget, at most 1.
//!
//! **Fires at** 0.6: the twelfth call, with the default budget of 20.
//!
//! **State.** One counter. Cost per step: constant.
//!
//! **Blind spots.** The monitor does not know the task: a long run is not a bad run. Set the budget to the usual number
//! of calls of your agent, or lower the weight.

use super::{Monitor, MonitorSpec, SettingsError, Signal, Suite, at_least};
use crate::analysis::features::StepFeatures;
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "call_count",
    suite: Suite::Heuristic,
    summary: "Much of the expected number of tool calls is used up.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "budget_overrun",
    build: |settings| {
        Box::new(CallCount { budget: settings.call_count.budget, calls: 0, last: StepIndex(0) })
    },
    advice,
};

/// User settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCountSettings {
    /// Number of calls that scores 1.
    pub budget: u32,
}

impl Default for CallCountSettings {
    fn default() -> Self {
        Self { budget: 20 }
    }
}

impl CallCountSettings {
    pub(super) fn check(self) -> Result<(), SettingsError> {
        at_least("call_count.budget", self.budget, 1)
    }
}

struct CallCount {
    budget: u32,
    calls: u32,
    last: StepIndex,
}

impl Monitor for CallCount {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        if features.step.action.is_some() {
            self.calls = self.calls.saturating_add(1);
            self.last = at;
        }
        Signal::new((f64::from(self.calls) / f64::from(self.budget)).min(1.0), || {
            Evidence::new("calls_used", self.calls).of(self.budget).at([self.last])
        })
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

fn advice(seen: &Evidence) -> String {
    format!(
        "{} tool calls so far, where about {} were expected ({}). It may be time to say what is still \
         missing for the task, leave out what is not needed, and either finish or name the one next \
         step that matters most.",
        seen.count,
        seen.limit.unwrap_or_default(),
        seen.steps_in_words(),
    )
}

#[cfg(test)]
mod tests {
    use crate::test_util::{check, repeat};

    #[test]
    fn the_twelfth_call_fires() {
        check(
            "call_count",
            &format!(
                "{}
                read f => x           | 0.60 FIRED
                think almost there    | 0.60 FIRED
                ",
                repeat(11, |n| format!("read f => x | {:.2}", f64::from(n + 1) / 20.0))
            ),
        );
    }
}
