//! What an answer cost in tokens, split the way it is priced.

use rb_engine::policy::token_budget::Usage;

/// Tokens of one answer. The four kinds do not overlap; only `cache_write_hour` is a part of `cache_write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUse {
    /// Read at the full price.
    pub fresh: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Read and written to the provider's cache.
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for an hour, which costs more.
    pub cache_write_hour: u64,
    /// Written by the model, reasoning included.
    pub output: u64,
}

impl TokenUse {
    /// Everything that was read.
    pub fn input(&self) -> u64 {
        self.fresh.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// The share of what was read that came from the cache; `None` if nothing was read.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share of a token count needs no more than 52 bits"
    )]
    pub fn cache_read_share(&self) -> Option<f64> {
        let input = self.input();
        (input > 0).then(|| self.cache_read as f64 / input as f64)
    }

    /// As the engine counts.
    pub fn usage(&self) -> Usage {
        Usage { cache_read: self.cache_read, ..Usage::new(self.input(), self.output) }
    }
}
