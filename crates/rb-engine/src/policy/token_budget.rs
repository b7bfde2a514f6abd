//! Tokens: counted for every run, and kept within a budget where the user asks for it.

/// What one model call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Everything the call is counted with.
    pub total: u64,
    /// Tokens read, where known.
    pub input: u64,
    /// Tokens written, where known.
    pub output: u64,
    /// Tokens read from the provider's cache, where known.
    pub cache_read: u64,
}

impl Usage {
    /// Read and written tokens; the total is their sum.
    pub fn new(input: u64, output: u64) -> Self {
        Self { total: input.saturating_add(output), input, output, cache_read: 0 }
    }
}

/// A limit on the tokens of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBudget {
    /// The hard limit.
    pub tokens_max: u64,
    /// From this share of the hard limit on, the agent is asked to wrap up.
    pub soft_share: f64,
    /// Whether the limits act; otherwise the share used is only told.
    pub enforced: bool,
}

/// A budget that could not work.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BudgetError {
    /// A budget of nothing stops every run at once.
    #[error("`budget.tokens_max` must be at least 1; leave the budget out for no limit")]
    Nothing,
    /// The soft limit lies outside the budget.
    #[error(
        "`budget.soft_share` ({value}) must be a number above 0 and at most 1, the share of `budget.tokens_max` ({tokens_max}) at which to wrap up"
    )]
    SoftShare {
        /// What it was set to.
        value: f64,
        /// The hard limit.
        tokens_max: u64,
    },
}

/// How far a budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Within,
    WrapUp,
    Over,
}

impl TokenBudget {
    /// An enforced budget that asks to wrap up at four fifths.
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

    /// The share used, at most 1.
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

/// Asks an agent to wrap up, after a sentence that says what is used and what is left.
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
