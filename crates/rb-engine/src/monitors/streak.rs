//! `streak`: the same tool several times in a row.
//!
//! **Rule.** Counts the latest consecutive calls of the same tool; steps without a call are ignored. One call scores 0,
//! more score `run / cap`, at most 1.
//!
//! **Fires at** 0.6: the third call in a row, with the default cap of 5.
//!
//! **State.** The last tool, the start and the length of the series. Cost per step: constant.
//!
//! **Blind spots.** Only names are compared, so an agent whose only tool is `bash` fires in every run. `semantic_loop`
//! compares arguments and results.

use super::{Monitor, MonitorSpec, SettingsError, Signal, Suite, at_least};
use crate::analysis::features::StepFeatures;
use crate::analysis::text::Label;
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "streak",
    suite: Suite::Heuristic,
    summary: "The same tool is called several times in a row.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "action_loop",
    build: |settings| Box::new(Streak { cap: settings.streak.cap, row: None }),
    advice,
};

/// User settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreakSettings {
    /// Length of a series that scores 1.
    pub cap: u32,
}

impl Default for StreakSettings {
    fn default() -> Self {
        Self { cap: 5 }
    }
}

impl StreakSettings {
    pub(super) fn check(self) -> Result<(), SettingsError> {
        at_least("streak.cap", self.cap, 1)
    }
}

struct Streak {
    cap: u32,
    row: Option<Row>,
}

struct Row {
    tool: Label,
    first: StepIndex,
    last: StepIndex,
    calls: u32,
}

impl Monitor for Streak {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        if let Some(action) = features.step.action {
            match &mut self.row {
                Some(row) if row.tool.is(action.tool) => {
                    row.calls = row.calls.saturating_add(1);
                    row.last = at;
                }
                row => {
                    let tool = Label::new(action.tool);
                    *row = Some(Row { tool, first: at, last: at, calls: 1 });
                }
            }
        }
        match &self.row {
            Some(row) if row.calls > 1 => {
                Signal::new((f64::from(row.calls) / f64::from(self.cap)).min(1.0), || {
                    Evidence::new("same_tool_in_a_row", row.calls)
                        .of(self.cap)
                        .at([row.first, row.last])
                        .tool(row.tool.shown())
                })
            }
            _ => Signal::none(),
        }
    }

    fn heap_bytes(&self) -> usize {
        self.row.as_ref().map_or(0, |row| row.tool.heap_bytes())
    }
}

fn advice(seen: &Evidence) -> String {
    format!(
        "`{}` was called {} times in a row ({}). If each call brought something new, carry on. If not, \
         it may help to write down what is known so far, read the last result once more, or try a \
         different tool or a narrower question.",
        seen.tool.as_deref().unwrap_or("the same tool"),
        seen.count,
        seen.span_in_words(),
    )
}

#[cfg(test)]
mod tests {
    use crate::test_util::check;

    #[test]
    fn the_third_call_in_a_row_fires() {
        check(
            "streak",
            "
            read a.rs => fn a() {}    | 0.00
            read b.rs => fn b() {}    | 0.40
            read c.rs => fn c() {}    | 0.60 FIRED
            read d.rs => fn d() {}    | 0.80 FIRED
            read e.rs => fn e() {}    | 1.00 FIRED
            read f.rs => fn f() {}    | 1.00 FIRED
            ",
        );
    }

    #[test]
    fn another_tool_resets_the_count_and_thinking_does_not() {
        check(
            "streak",
            "
            think where to start      | 0.00
            read a.rs => fn a() {}    | 0.00
            think hm                  | 0.00
            read a.rs => fn a() {}    | 0.40
            think hm                  | 0.40
            grep x => none            | 0.00
            read a.rs => fn a() {}    | 0.00
            ",
        );
    }
}
