//! Token usage of a run, and an optional budget.

/// Token usage of one model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Total number of tokens.
    pub total: u64,
    /// Input tokens, if known.
    pub input: u64,
    /// Output tokens, if known.
    pub output: u64,
    /// Input tokens read from the provider's cache, if known.
    pub cache_read: u64,
}

impl Usage {
    /// Creates a usage whose total is the sum.
    pub fn new(input: u64, output: u64) -> Self {
        Self { total: input.saturating_add(output), input, output, cache_read: 0 }
    }
}

/// Token budget of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBudget {
    /// The hard limit.
    pub tokens_max: u64,
    /// Share of the hard limit at which the agent is asked to wrap up.
    pub soft_share: f64,
    /// Enforces the limits; otherwise the used share is only reported.
    pub enforced: bool,
}

/// Invalid budget.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BudgetError {
    /// A budget of zero would stop every run.
    #[error("`budget.tokens_max` must be at least 1; leave the budget out for no limit")]
    Nothing,
    /// The soft limit is out of range.
    #[error(
        "`budget.soft_share` ({value}) must be a number above 0 and at most 1, the share of `budget.tokens_max` ({tokens_max}) at which to wrap up"
    )]
    SoftShare {
        /// Its value.
        value: f64,
        /// The hard limit.
        tokens_max: u64,
    },
}

/// Usage of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Within,
    WrapUp,
    Over,
}

impl TokenBudget {
    /// Creates an enforced budget with a soft limit of 80 %.
    pub fn enforced(tokens_max: u64) -> Self {
        Self { tokens_max, soft_share: 0.8, enforced: true }
    }

    pub(crate) fn check(self) -> Result<Self, BudgetError> {
        if self.tokens_max == 0 {
            return Err(BudgetError::Nothing);
        }
        if !(self.soft_share > 0.0 && self.soft_share <= 1.0) {
            let Self { soft_share: value, tokens_max, .. } = self;
            return Err(BudgetError::SoftShare { value, tokens_max });
        }
        Ok(self)
    }

    /// Returns the used share, at most 1.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share of a token count needs no more than 52 bits"
    )]
    pub fn share_used(&self, tokens: u64) -> f64 {
        (tokens as f64 / self.tokens_max as f64).min(1.0)
    }

    pub(crate) fn level(&self, tokens: u64) -> Level {
        if !self.enforced {
            Level::Within
        } else if tokens >= self.tokens_max {
            Level::Over
        } else if self.share_used(tokens) >= self.soft_share {
            Level::WrapUp
        } else {
            Level::Within
        }
    }

    pub(crate) fn wrap_up_advice(&self, tokens: u64) -> String {
        let left = self.tokens_max.saturating_sub(tokens);
        let max = self.tokens_max;
        wrap_up(&format!(
            "{tokens} of the {max} tokens of this run are used, about {left} are left."
        ))
    }
}

/// Returns the request to wrap up. `used` is a sentence about the used and the remaining amount.
pub fn wrap_up(used: &str) -> String {
    format!(
        "{} {used} It may be best to wrap up now: finish or undo what is half done, and say what was reached, what was \
         checked and what is open.",
        crate::guidance::SPEAKER,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_tokens() {
        use Level::{Over, Within, WrapUp};
        let budget = TokenBudget::enforced(1_000).check().expect("a good budget");
        let levels = [0, 799, 800, 999, 1_000, u64::MAX].map(|tokens| budget.level(tokens));
        assert_eq!(levels, [Within, Within, WrapUp, WrapUp, Over, Over]);
        let tracked = TokenBudget { enforced: false, ..budget };
        assert_eq!(
            (tracked.level(5_000), tracked.share_used(500), tracked.share_used(5_000)),
            (Within, 0.5, 1.0)
        );
    }

    #[test]
    fn budgets_that_cannot_work_are_refused() {
        let bad = |tokens_max, soft_share| {
            TokenBudget { tokens_max, soft_share, enforced: true }.check().is_err()
        };
        assert!(bad(0, 0.8) && bad(10, 0.0) && bad(10, 1.5) && bad(10, f64::NAN));
    }
}
