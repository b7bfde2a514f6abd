//! Injection channels of a model, without those that its provider has rejected.

use std::collections::HashSet;

use parking_lot::Mutex;
use rb_wire::channel::Channel;
use rb_wire::dialects::Dialect;

/// Maximum number of cached rejections; beyond this, all channels are tried again.
const MAX_REFUSALS: usize = 10_000;

/// Channels that providers have rejected, by upstream and model.
#[derive(Default)]
pub(crate) struct Channels {
    refused: Mutex<HashSet<(String, String, Channel)>>,
}

impl Channels {
    /// The channels to try for a model, best first.
    pub(crate) fn of(&self, upstream: &str, model: &str, dialect: &dyn Dialect) -> Vec<Channel> {
        let refused = self.refused.lock();
        let taken = |channel: &Channel| {
            let place = (upstream.to_owned(), model.to_owned(), *channel);
            !refused.contains(&place)
        };
        dialect.channels().iter().copied().filter(taken).collect()
    }

    /// Records that the provider rejected a request with this channel and accepted it without.
    pub(crate) fn refuse(&self, upstream: &str, model: &str, channel: Channel) {
        let mut refused = self.refused.lock();
        if refused.len() >= MAX_REFUSALS {
            refused.clear();
        }
        refused.insert((upstream.to_owned(), model.to_owned(), channel));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_channel_is_not_tried_again_with_that_model() {
        let dialect = rb_wire::dialects::by_id("anthropic").unwrap();
        let channels = Channels::default();
        let first = channels.of("anthropic", "old", dialect);
        assert!(first.len() >= 2, "{first:?}");
        channels.refuse("anthropic", "old", first[0]);
        assert_eq!(channels.of("anthropic", "old", dialect), first[1..]);
        assert_eq!(channels.of("anthropic", "new", dialect), first);
    }
}
