//! `diversity`: the agent uses only one or two tools.
//!
//! **Rule.** After at least `minimum` calls, the last `window` calls are examined. One tool scores 1, two tools score
//! 0.7 unless they strictly alternate (such as edit and test), three or more score 0.
//!
//! **Fires at** 0.6: both cases above.
//!
//! **State.** The last `window` tool names. Cost per step: the window.
//!
//! **Blind spots.** Agents that have only one or two tools fire from the eighth call on.

use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, SettingsError, Signal, Suite, at_least};
use crate::analysis::features::StepFeatures;
use crate::analysis::text::Label;
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "diversity",
    suite: Suite::Heuristic,
    summary: "The last calls use only one or two different tools.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "narrow_exploration",
    build: |settings| {
        let DiversitySettings { window, minimum } = settings.diversity;
        Box::new(Diversity { window, minimum, calls: 0, recent: VecDeque::new() })
    },
    advice,
};

const TWO_TOOLS: f64 = 0.7;
const ONE_TOOL: f64 = 1.0;

/// Maximum window, which bounds the cost per step.
const WINDOW_MAX: u32 = 256;

/// User settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiversitySettings {
    /// Number of recent calls that are examined.
    pub window: u32,
    /// Number of calls before which the score is 0.
    pub minimum: u32,
}

impl Default for DiversitySettings {
    fn default() -> Self {
        Self { window: 5, minimum: 8 }
    }
}

impl DiversitySettings {
    pub(super) fn check(self) -> Result<(), SettingsError> {
        at_least("diversity.window", self.window, 2)?;
        super::in_range("diversity.window", self.window.into(), 2.0, WINDOW_MAX.into())?;
        if self.window > self.minimum {
            return Err(SettingsError::OutOfOrder {
                small: "diversity.window",
                small_value: self.window,
                large: "diversity.minimum",
                large_value: self.minimum,
            });
        }
        Ok(())
    }
}

struct Diversity {
    window: u32,
    minimum: u32,
    calls: u32,
    recent: VecDeque<(StepIndex, Label)>,
}

impl Monitor for Diversity {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        if let Some(action) = features.step.action {
            self.calls = self.calls.saturating_add(1);
            if self.recent.len() == self.window as usize {
                self.recent.pop_front();
            }
            self.recent.push_back((at, Label::new(action.tool)));
        }
        if self.calls < self.minimum {
            return Signal::none();
        }
        let score = self.score();
        Signal::new(score, || {
            let tools = if score < ONE_TOOL { 2 } else { 1 };
            let evidence = Evidence::new("few_tools", tools).of(self.window);
            match (self.recent.front(), self.recent.back()) {
                (Some((first, _)), Some((last, tool))) => {
                    evidence.at([*first, *last]).tool(tool.shown())
                }
                _ => evidence,
            }
        })
    }

    fn heap_bytes(&self) -> usize {
        let names: usize = self.recent.iter().map(|(_, tool)| tool.heap_bytes()).sum();
        names + self.recent.capacity() * size_of::<(StepIndex, Label)>()
    }
}

impl Diversity {
    fn score(&self) -> f64 {
        let tools = || self.recent.iter().map(|(_, tool)| tool);
        let Some(first) = tools().next() else { return 0.0 };
        let Some(second) = tools().find(|tool| *tool != first) else { return ONE_TOOL };
        if tools().any(|tool| tool != first && tool != second) {
            return 0.0;
        }
        let alternates = self.recent.len() > 2
            && tools().zip([first, second].into_iter().cycle()).all(|(tool, turn)| tool == turn);
        if alternates { 0.0 } else { TWO_TOOLS }
    }
}

fn advice(seen: &Evidence) -> String {
    format!(
        "only {} been used in the last {} calls ({}), most recently `{}`. If that is the plan, carry on. \
         If progress has stopped, a different kind of look at the problem may help: another tool, another \
         file, or testing the assumption behind the current approach.",
        if seen.count == 1 { "one tool has" } else { "two tools have" },
        seen.limit.unwrap_or_default(),
        seen.span_in_words(),
        seen.tool.as_deref().unwrap_or("it"),
    )
}

#[cfg(test)]
mod tests {
    use crate::test_util::{check, repeat};

    #[test]
    fn one_tool_fires_from_the_eighth_call() {
        check(
            "diversity",
            &format!(
                "{}
                read h => x           | 1.00 FIRED
                grep h => x           | 0.70 FIRED
                think hm              | 0.70 FIRED
                test => ok            | 0.00
                ",
                repeat(7, |_| "read f => x | 0.00".to_owned())
            ),
        );
    }

    #[test]
    fn alternating_between_two_tools_does_not_fire() {
        check(
            "diversity",
            "
            edit a => ok   | 0.00
            test a => ok   | 0.00
            edit b => ok   | 0.00
            test b => ok   | 0.00
            edit c => ok   | 0.00
            test c => ok   | 0.00
            edit d => ok   | 0.00
            test d => ok   | 0.00
            edit e => ok   | 0.00
            edit e => ok   | 0.70 FIRED
            ",
        );
    }
}
