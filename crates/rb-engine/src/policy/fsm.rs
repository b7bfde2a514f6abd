//! State machine over the difficulty scores: INIT, FAST, NORMAL, SLOW, SKIP, END.
//!
//! It stores the state and three streak lengths rather than the history: "the last six steps were easy" equals "the
//! easy streak is at least six".

use std::fmt;

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum State {
    /// No step has been scored yet.
    #[default]
    Init,
    /// Consistently easy; nothing is retrieved.
    Fast,
    /// The normal state.
    Normal,
    /// Consistently difficult.
    Slow,
    /// Very difficult for a long time.
    Skip,
    /// The run has ended. Final.
    End,
}

impl State {
    /// All states, in display order.
    pub const ALL: [Self; 6] =
        [Self::Init, Self::Fast, Self::Normal, Self::Slow, Self::Skip, Self::End];

    /// Name of the state in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Init => "INIT",
            Self::Fast => "FAST",
            Self::Normal => "NORMAL",
            Self::Slow => "SLOW",
            Self::Skip => "SKIP",
            Self::End => "END",
        }
    }

    /// Returns the state with this exact name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Thresholds and windows in user settings. [`FsmConfig::check`] validates them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FsmConfig {
    /// Scores below this are easy.
    pub fast_threshold: f64,
    /// Scores above this are difficult.
    pub slow_threshold: f64,
    /// Scores above this are very difficult.
    pub skip_threshold: f64,
    /// Distance from the threshold at which FAST or SLOW is left.
    pub hysteresis_margin: f64,
    /// Number of consecutive easy steps that lead to FAST; 0 means all steps so far.
    pub fast_window: u32,
    /// Number of consecutive difficult steps that lead to SLOW; 0 means all steps so far.
    pub slow_window: u32,
    /// Number of consecutive very difficult steps that lead to SKIP; 0 means all steps so far.
    pub skip_window: u32,
}

impl Default for FsmConfig {
    fn default() -> Self {
        Self {
            fast_threshold: 0.2,
            slow_threshold: 0.6,
            skip_threshold: 0.85,
            hysteresis_margin: 0.1,
            fast_window: 6,
            slow_window: 5,
            skip_window: 35,
        }
    }
}

/// Invalid settings of the state machine.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FsmConfigError {
    /// A threshold or the margin is not a number between 0 and 1.
    #[error("`fsm.{name}` ({value}) must be a number between 0 and 1")]
    OutOfRange {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// Two settings contradict each other.
    #[error("`fsm.{low}` ({low_value}) must be smaller than `fsm.{high}` ({high_value})")]
    OutOfOrder {
        /// Name of the setting that must be smaller.
        low: &'static str,
        /// Its value.
        low_value: f64,
        /// Name of the setting that must be larger.
        high: &'static str,
        /// Its value.
        high_value: f64,
    },
    /// A state could be entered but not left.
    #[error(
        "{state} could never be left: `fsm.{threshold}` ({threshold_value}) and \
         `fsm.hysteresis_margin` ({margin}) together ask for a score no step can have; lower the margin"
    )]
    NoWayOut {
        /// The state without an exit.
        state: State,
        /// The threshold the margin is applied to.
        threshold: &'static str,
        /// Its value.
        threshold_value: f64,
        /// The margin.
        margin: f64,
    },
}

impl FsmConfig {
    /// Validates ranges, the order of thresholds, and that every state has an exit.
    pub fn check(self) -> Result<Limits, FsmConfigError> {
        for (name, value) in [
            ("fast_threshold", self.fast_threshold),
            ("slow_threshold", self.slow_threshold),
            ("skip_threshold", self.skip_threshold),
            ("hysteresis_margin", self.hysteresis_margin),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(FsmConfigError::OutOfRange { name, value });
            }
        }
        let out_of_order = |low, low_value, high, high_value| {
            Err(FsmConfigError::OutOfOrder { low, low_value, high, high_value })
        };
        if self.fast_threshold >= self.slow_threshold {
            return out_of_order(
                "fast_threshold",
                self.fast_threshold,
                "slow_threshold",
                self.slow_threshold,
            );
        }
        if self.slow_threshold > self.skip_threshold {
            return out_of_order(
                "slow_threshold",
                self.slow_threshold,
                "skip_threshold",
                self.skip_threshold,
            );
        }
        let margin = self.hysteresis_margin;
        let no_way_out = |state, threshold, threshold_value| {
            Err(FsmConfigError::NoWayOut { state, threshold, threshold_value, margin })
        };
        if self.fast_threshold + margin >= 1.0 {
            return no_way_out(State::Fast, "fast_threshold", self.fast_threshold);
        }
        if self.slow_threshold - margin <= 0.0 {
            return no_way_out(State::Slow, "slow_threshold", self.slow_threshold);
        }
        Ok(Limits(self))
    }
}

/// A valid [`FsmConfig`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits(FsmConfig);

/// State machine of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fsm {
    limits: Limits,
    state: State,
    scored: u32,
    easy: u32,
    hard: u32,
    very_hard: u32,
}

impl Fsm {
    /// Creates a state machine in INIT.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Init, scored: 0, easy: 0, hard: 0, very_hard: 0 }
    }

    /// Returns the current state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the state after a step; a step without a thought has no difficulty and changes nothing.
    pub fn observe(&mut self, difficulty: Option<f64>) -> State {
        difficulty.map_or(self.state, |difficulty| self.advance(difficulty))
    }

    /// Takes the score of a new step and moves. A score that is no number moves nothing and ends every streak.
    pub fn advance(&mut self, score: f64) -> State {
        let limits = self.limits.0;
        self.scored = self.scored.saturating_add(1);
        let grow = |streak: u32, goes_on: bool| if goes_on { streak.saturating_add(1) } else { 0 };
        self.easy = grow(self.easy, score < limits.fast_threshold);
        self.hard = grow(self.hard, score > limits.slow_threshold);
        self.very_hard = grow(self.very_hard, score > limits.skip_threshold);
        if !score.is_nan() {
            self.state = self.next(score);
        }
        self.state
    }

    /// The run is over.
    pub fn finish(&mut self) {
        self.state = State::End;
    }

    fn next(&self, score: f64) -> State {
        let limits = &self.limits.0;
        let fills = |streak: u32, window: u32| {
            if window == 0 { streak == self.scored } else { streak >= window }
        };
        match self.state {
            State::Init => State::Normal,
            State::Normal if fills(self.easy, limits.fast_window) => State::Fast,
            State::Normal if fills(self.hard, limits.slow_window) => State::Slow,
            State::Fast if score > limits.fast_threshold + limits.hysteresis_margin => {
                State::Normal
            }
            State::Slow | State::Skip
                if score < limits.slow_threshold - limits.hysteresis_margin =>
            {
                State::Normal
            }
            State::Slow | State::Skip if fills(self.very_hard, limits.skip_window) => State::Skip,
            State::Slow | State::Skip => State::Slow,
            same @ (State::Normal | State::Fast | State::End) => same,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn walk(config: FsmConfig, scores: &[f64]) -> Vec<State> {
        let mut fsm = Fsm::new(config.check().expect("a machine that works"));
        scores.iter().map(|score| fsm.advance(*score)).collect()
    }

    #[test]
    fn the_machine_moves_as_documented() {
        use State::{Fast, Normal, Skip, Slow};
        let cases = [
            (
                "six easy steps lead to FAST",
                vec![0.1; 7],
                vec![(0, Normal), (4, Normal), (5, Fast)],
            ),
            ("five hard steps lead to SLOW", vec![0.7; 6], vec![(3, Normal), (4, Slow)]),
            ("35 very hard steps lead to SKIP", vec![0.9; 36], vec![(33, Slow), (34, Skip)]),
            (
                "the margin holds FAST",
                vec![0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3, 0.31],
                vec![(6, Fast), (7, Normal)],
            ),
            (
                "the margin holds SLOW",
                vec![0.7, 0.7, 0.7, 0.7, 0.7, 0.5, 0.49],
                vec![(5, Slow), (6, Normal)],
            ),
            (
                "a NaN moves nothing",
                vec![0.1, 0.1, 0.1, 0.1, 0.1, f64::NAN, 0.1],
                vec![(5, Normal), (6, Normal)],
            ),
        ];
        for (name, scores, expected) in cases {
            let states = walk(FsmConfig::default(), &scores);
            for (at, state) in expected {
                assert_eq!(states[at], state, "{name}, step {at}: {states:?}");
            }
        }
    }

    #[test]
    fn end_is_never_left() {
        let mut fsm = Fsm::new(Limits::default());
        fsm.finish();
        assert_eq!([0.1, 0.9, f64::NAN].map(|score| fsm.advance(score)), [State::End; 3]);
    }

    #[test]
    fn impossible_machines_are_refused_with_both_values() {
        let default = FsmConfig::default();
        assert!(default.check().is_ok());
        let cases = [
            (
                FsmConfig { fast_threshold: 0.7, ..default },
                "`fsm.fast_threshold` (0.7) must be smaller than `fsm.slow_threshold` (0.6)",
            ),
            (
                FsmConfig { skip_threshold: 0.5, ..default },
                "`fsm.slow_threshold` (0.6) must be smaller than `fsm.skip_threshold` (0.5)",
            ),
            (
                FsmConfig { slow_threshold: f64::NAN, ..default },
                "`fsm.slow_threshold` (NaN) must be a number between 0 and 1",
            ),
            (
                FsmConfig { hysteresis_margin: -0.1, ..default },
                "`fsm.hysteresis_margin` (-0.1) must be a number between 0 and 1",
            ),
            (
                FsmConfig { hysteresis_margin: 0.6, ..default },
                "SLOW could never be left: `fsm.slow_threshold` (0.6) and `fsm.hysteresis_margin` (0.6) together ask for a score no step can have; lower the margin",
            ),
        ];
        for (config, message) in cases {
            assert_eq!(config.check().expect_err(message).to_string(), message);
        }
    }

    proptest! {
        /// The streaks give the same result as the whole history.
        #[test]
        fn streaks_equal_the_history(scores in prop::collection::vec(0.0..1.0_f64, 0..120), fast in 0..8_u32, slow in 0..8_u32, skip in 0..12_u32) {
            let config = FsmConfig { fast_window: fast, slow_window: slow, skip_window: skip, ..FsmConfig::default() };
            let mut state = State::Init;
            let expected: Vec<State> = (0..scores.len()).map(|at| {
                let (history, score) = (&scores[..=at], scores[at]);
                let last = |window: u32, holds: &dyn Fn(&f64) -> bool| {
                    let window = if window == 0 { history.len() } else { window as usize };
                    history.len() >= window && history[history.len() - window..].iter().all(holds)
                };
                state = match state {
                    State::Init => State::Normal,
                    State::Normal if last(fast, &|s| *s < 0.2) => State::Fast,
                    State::Normal if last(slow, &|s| *s > 0.6) => State::Slow,
                    State::Fast if score > 0.2 + 0.1 => State::Normal,
                    State::Slow | State::Skip if score < 0.6 - 0.1 => State::Normal,
                    State::Slow | State::Skip if last(skip, &|s| *s > 0.85) => State::Skip,
                    State::Slow | State::Skip => State::Slow,
                    same @ (State::Normal | State::Fast | State::End) => same,
                };
                state
            }).collect();
            prop_assert_eq!(walk(config, &scores), expected);
        }
    }
}
