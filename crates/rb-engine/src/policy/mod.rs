//! Decisions that depend on scores, not on texts: who advises, run state, cooldowns and caps, model choice, token limits.

/// State machine over the difficulty scores.
pub mod fsm;
/// Cooldowns and caps of guidance.
pub mod gate;
/// Maps run states to models.
pub mod routing;
/// Token counts and limits.
pub mod token_budget;

use crate::guidance::fragment::FragmentLimits;
use crate::monitors::{ALL, Suite, SuiteChoice, find};
use gate::GateConfig;

/// Decides which monitors run, which of them fire, and how guidance is limited.
///
/// The default is the policy of every integration: both suites run, the semantic suite fires, and the heuristic suite
/// is recorded as quiet signals.
///
/// ```
/// use rb_engine::policy::Policy;
///
/// let policy = Policy::default();
/// assert!(policy.is_quiet("streak") && !policy.is_quiet("semantic_loop"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Suites that are computed and recorded.
    pub computed: SuiteChoice,
    /// Suites that fire: they advise the agent, open lookups, make headlines and form the composite. The other computed
    /// suites are quiet signals.
    pub advises: SuiteChoice,
    /// Looks up standing rules (E3).
    pub standing_rules: bool,
    /// Cooldowns and caps.
    pub gate: GateConfig,
    /// Length limits of guidance.
    pub fragment: FragmentLimits,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            computed: SuiteChoice::Both,
            advises: SuiteChoice::Semantic,
            standing_rules: false,
            gate: GateConfig::default(),
            fragment: FragmentLimits::default(),
        }
    }
}

impl Policy {
    /// Returns the default policy for a user who asks for a suite: its monitors fire. With the semantic suite the
    /// heuristic suite is computed as well.
    pub fn of_suite(suite: SuiteChoice) -> Self {
        let computed = match suite {
            SuiteChoice::Semantic => SuiteChoice::Both,
            SuiteChoice::Neither | SuiteChoice::Heuristic | SuiteChoice::Both => suite,
        };
        Self { computed, advises: suite, ..Self::default() }
    }

    /// Returns the default policy with one choice of suites, computed and firing. No quiet signals.
    pub fn only(suite: SuiteChoice) -> Self {
        Self { computed: suite, advises: suite, ..Self::default() }
    }

    /// Returns true if monitors of the suite fire.
    pub fn fires(&self, suite: Suite) -> bool {
        self.computed.includes(suite) && self.advises.includes(suite)
    }

    /// Returns true for a monitor that is only a signal. Unknown monitors fire.
    pub fn is_quiet(&self, monitor: &str) -> bool {
        find(monitor).is_some_and(|spec| !self.fires(spec.suite))
    }

    /// Returns the quiet monitors whose stored scores reached their thresholds, in the order of the table.
    pub fn signals(
        self,
        score: impl Fn(&str) -> Option<f64>,
    ) -> impl Iterator<Item = &'static str> {
        let quiet = ALL.into_iter().filter(move |spec| !self.fires(spec.suite));
        let signals = quiet.filter(move |spec| score(spec.id).is_some_and(|it| it >= spec.fire_at));
        signals.map(|spec| spec.id)
    }
}

/// Position of guidance in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In the system prompt.
    System,
    /// After the last message.
    Tail,
}

/// Integrations that edit requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integration {
    /// Middleware in the process of the agent.
    Middleware,
    /// Proxy before the provider, which caches the prefix of a request.
    Gateway,
}

impl Placement {
    /// Returns the default of an integration.
    pub const fn default_of(integration: Integration) -> Self {
        match integration {
            Integration::Middleware => Self::System,
            Integration::Gateway => Self::Tail,
        }
    }

    /// The name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Tail => "tail",
        }
    }

    /// Returns the placement with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::System, Self::Tail].into_iter().find(|placement| placement.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_is_asked_for_fires_and_the_heuristic_suite_is_a_signal_otherwise() {
        let cases = [
            (Policy::default(), [true, true], [false, true]),
            (Policy::of_suite(SuiteChoice::Semantic), [true, true], [false, true]),
            (Policy::of_suite(SuiteChoice::Heuristic), [true, false], [true, false]),
            (Policy::of_suite(SuiteChoice::Both), [true, true], [true, true]),
            (Policy::of_suite(SuiteChoice::Neither), [false, false], [false, false]),
            (Policy::only(SuiteChoice::Semantic), [false, true], [false, true]),
        ];
        for (policy, computed, fires) in cases {
            let suites = [Suite::Heuristic, Suite::Semantic];
            assert_eq!(suites.map(|suite| policy.computed.includes(suite)), computed, "{policy:?}");
            assert_eq!(suites.map(|suite| policy.fires(suite)), fires, "{policy:?}");
        }
    }

    #[test]
    fn signals_are_quiet_monitors_at_their_threshold() {
        let signals: Vec<_> = Policy::default().signals(|_| Some(0.6)).collect();
        let heuristic = ALL.iter().filter(|spec| spec.suite == Suite::Heuristic);
        assert_eq!(signals, heuristic.map(|spec| spec.id).collect::<Vec<_>>());
        assert_eq!(Policy::default().signals(|id| (id == "streak").then_some(0.59)).count(), 0);
        assert_eq!(Policy::only(SuiteChoice::Both).signals(|_| Some(1.0)).count(), 0);
    }
}
