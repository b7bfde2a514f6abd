//! Retrieval for the decision on one model call. A failure yields an empty result, so that the call goes out.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use rb_engine::guidance::{Query, Retrieved, Tier, TierResult};
use rb_store::Store;

use super::quota::GuidanceQuota;
use super::{Match, PatternQuery, PatternRetriever};

/// Answers the queries of the engine within the quota of an organisation.
pub struct GuidanceLookup {
    store: Arc<dyn Store>,
    patterns: Arc<PatternRetriever>,
    quota: GuidanceQuota,
    /// Counts failed lookups.
    failed_open: Counter,
}

/// Patterns retrieved for one call.
#[derive(Debug, Default)]
pub struct Lookup {
    pub retrieved: Retrieved,
    pub matches: Vec<Match>,
    /// The organisation has used up its quota, so nothing was looked up.
    pub is_over_quota: bool,
}

impl GuidanceLookup {
    pub fn new(
        store: Arc<dyn Store>,
        patterns: Arc<PatternRetriever>,
        quota: GuidanceQuota,
        failed_open: Counter,
    ) -> Self {
        Self { store, patterns, quota, failed_open }
    }

    /// Answers the engine's queries. A failed lookup does not use up the run's allowance.
    pub async fn look_up(&self, org: &str, model: &str, queries: &[Query]) -> Lookup {
        let mut lookup = Lookup::default();
        if queries.is_empty() {
            return lookup;
        }
        lookup.is_over_quota = self.is_over_quota(org).await;
        for query in queries {
            let result = if lookup.is_over_quota {
                TierResult::Failed
            } else {
                match self.find(org, model, query).await {
                    Some(matches) => {
                        let patterns = matches.iter().map(Match::pattern).collect();
                        lookup.matches.extend(matches);
                        TierResult::Answered(patterns)
                    }
                    None => TierResult::Failed,
                }
            };
            match query.tier {
                Tier::E1 => lookup.retrieved.e1 = result,
                Tier::E2 => lookup.retrieved.e2 = result,
                Tier::E3 => lookup.retrieved.e3 = result,
            }
        }
        lookup
    }

    async fn find(&self, org: &str, model: &str, query: &Query) -> Option<Vec<Match>> {
        let query = PatternQuery {
            org,
            tier: Some(query.tier),
            context: &query.context,
            failure_type: query.failure_type,
            model,
            top_k: query.top_k as usize,
        };
        match self.patterns.find(&query).await {
            Ok(matches) => Some(matches),
            Err(error) => {
                tracing::warn!(%error, "pattern lookup failed");
                self.failed_open.inc();
                None
            }
        }
    }

    /// Returns `true` if the organisation has used up its quota; `false` if the usage cannot be read.
    pub async fn is_over_quota(&self, org: &str) -> bool {
        self.quota.is_exceeded(&*self.store, org).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "usage not read; the quota is not enforced");
            false
        })
    }
}
