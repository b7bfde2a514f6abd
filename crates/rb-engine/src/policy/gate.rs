//! Gate for guidance: which queries are due, and whether an advice may be shown now.

use std::collections::VecDeque;

use crate::guidance::Tier;
use crate::policy::fsm::State;

/// Limits of guidance in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateConfig {
    /// Composite above which E1 is queried.
    pub composite_above: f64,
    /// Number of calls after a fired monitor in which E1 is queried.
    pub lookback_calls: u32,
    /// Maximum number of monitor advices in a run.
    pub injections_max: u32,
    /// Cooldown in calls between two advices in SLOW and SKIP.
    pub cooldown_slow: u32,
    /// Cooldown in calls between two advices in other states.
    pub cooldown_normal: u32,
    /// Cooldown in calls between two advices in FAST.
    pub cooldown_fast: u32,
    /// Maximum number of E1 patterns.
    pub e1_top_k: u32,
    /// Maximum number of E2 patterns.
    pub e2_top_k: u32,
    /// Maximum number of E3 patterns.
    pub e3_top_k: u32,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self {
            composite_above: 0.15,
            lookback_calls: 2,
            injections_max: 5,
            cooldown_slow: 2,
            cooldown_normal: 3,
            cooldown_fast: 5,
            e1_top_k: 1,
            e2_top_k: 2,
            e3_top_k: 32,
        }
    }
}

/// Invalid limits.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum GateError {
    /// The composite threshold is out of range.
    #[error("`gate.composite_above` ({value}) must be a number between 0 and 1")]
    Composite {
        /// Its value.
        value: f64,
    },
    /// The lookback is too long: the gate would never close.
    #[error("`gate.lookback_calls` ({value}) must be at most {max}")]
    Lookback {
        /// Its value.
        value: u32,
        /// The maximum.
        max: u32,
    },
}

const LOOKBACK_CALLS_MAX: u32 = 1_000;

impl GateConfig {
    /// Validates the limits.
    pub fn check(self) -> Result<Self, GateError> {
        if !(0.0..=1.0).contains(&self.composite_above) {
            return Err(GateError::Composite { value: self.composite_above });
        }
        if self.lookback_calls > LOOKBACK_CALLS_MAX {
            return Err(GateError::Lookback {
                value: self.lookback_calls,
                max: LOOKBACK_CALLS_MAX,
            });
        }
        Ok(self)
    }

    fn cooldown(&self, state: State) -> u32 {
        match state {
            State::Slow | State::Skip => self.cooldown_slow,
            State::Fast => self.cooldown_fast,
            State::Init | State::Normal | State::End => self.cooldown_normal,
        }
    }

    /// Returns the maximum number of patterns of a tier.
    pub fn top_k(&self, tier: Tier) -> u32 {
        match tier {
            Tier::E1 => self.e1_top_k,
            Tier::E2 => self.e2_top_k,
            Tier::E3 => self.e3_top_k,
        }
    }
}

/// State of the gate in one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gate {
    config: GateConfig,
    /// Reports of recent calls, the latest last: true if a monitor fired.
    fired: VecDeque<bool>,
    composite: f64,
    answered: [bool; 3],
    shown: u32,
    last_shown: Option<(u32, String)>,
}

impl Gate {
    pub(crate) fn new(config: GateConfig) -> Self {
        Self {
            config,
            fired: VecDeque::new(),
            composite: 0.0,
            answered: [false; 3],
            shown: 0,
            last_shown: None,
        }
    }

    /// Records the assessment of the steps before this call.
    pub(crate) fn note(&mut self, fired: bool, composite: f64) {
        if self.fired.len() > self.config.lookback_calls as usize {
            self.fired.pop_front();
        }
        self.fired.push_back(fired);
        self.composite = composite;
    }

    /// Reports whether the risk is high enough for an E1 query.
    pub(crate) fn is_open(&self) -> bool {
        self.composite > self.config.composite_above || self.fired.contains(&true)
    }

    /// Reports whether the query of a tier was already answered.
    pub(crate) fn is_used(&self, tier: Tier) -> bool {
        self.answered[tier as usize]
    }

    pub(crate) fn mark_used(&mut self, tier: Tier) {
        self.answered[tier as usize] = true;
    }

    /// Reports whether an advice may be shown on this call. `is_new` checks the text.
    pub(crate) fn may_advise(&self, call: u32, state: State) -> bool {
        let rested = self
            .last_shown
            .as_ref()
            .is_none_or(|(last, _)| call.saturating_sub(*last) >= self.config.cooldown(state));
        self.shown < self.config.injections_max && rested && state != State::End
    }

    /// Reports whether a text differs from the one shown last.
    pub(crate) fn is_new(&self, text: &str) -> bool {
        self.last_shown.as_ref().is_none_or(|(_, last)| last != text)
    }

    /// Records a shown advice.
    pub(crate) fn note_advice(&mut self, call: u32, text: String) {
        self.shown = self.shown.saturating_add(1);
        self.last_shown = Some((call, text));
    }

    pub(crate) fn config(&self) -> &GateConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_opens_on_signs_and_stays_open_for_two_calls() {
        let mut gate = Gate::new(GateConfig::default());
        assert!(!gate.is_open(), "nothing seen yet");
        let calls = [
            (false, 0.15, false),
            (false, 0.1501, true),
            (true, 0.0, true),
            (false, 0.0, true),
            (false, 0.0, true),
            (false, 0.0, false),
        ];
        for (at, (fired, composite, open)) in calls.into_iter().enumerate() {
            gate.note(fired, composite);
            assert_eq!(gate.is_open(), open, "call {at}");
        }
    }

    #[test]
    fn advice_keeps_its_distance() {
        // The calls on which a different advice is shown each time.
        let shown = |state: State| -> Vec<u32> {
            let mut gate = Gate::new(GateConfig::default());
            (1..40)
                .filter(|call| {
                    let speaks = gate.may_advise(*call, state);
                    if speaks {
                        gate.note_advice(*call, format!("advice {call}"));
                    }
                    speaks
                })
                .collect()
        };
        assert_eq!(shown(State::Normal), [1, 4, 7, 10, 13]);
        assert_eq!(shown(State::Slow), [1, 3, 5, 7, 9]);
        assert_eq!(shown(State::Skip), [1, 3, 5, 7, 9]);
        assert_eq!(shown(State::Fast), [1, 6, 11, 16, 21]);
        assert_eq!(shown(State::End), [0; 0]);
    }

    #[test]
    fn only_the_text_shown_last_is_old() {
        let mut gate = Gate::new(GateConfig::default());
        assert!(gate.is_new("a"));
        gate.note_advice(1, "a".to_owned());
        assert!(!gate.is_new("a") && gate.is_new("b"));
        gate.note_advice(4, "b".to_owned());
        assert!(gate.is_new("a"));
    }

    #[test]
    fn guardrails_that_cannot_work_are_refused() {
        assert!(GateConfig { composite_above: f64::NAN, ..GateConfig::default() }.check().is_err());
        assert!(GateConfig { lookback_calls: 5_000, ..GateConfig::default() }.check().is_err());
        assert!(GateConfig::default().check().is_ok());
    }
}
