//! Look-ups for a run that is steered. Whatever fails here is an empty answer: the agent's call goes out.

use rb_engine::guidance::{Query, Retrieved, Tier, TierResult};

use crate::app::Shared;
use crate::library::{Match, Wanted};

/// What was found for the queries of one call, as the engine takes it, and where it came from.
pub(crate) struct Answers {
    pub(crate) found: Retrieved,
    pub(crate) matches: Vec<Match>,
    /// The organisation has used up its allowance, so nothing was looked for.
    pub(crate) is_over_cap: bool,
}

/// Looks up what the engine asks for. A look-up that fails does not use up the run's allowance.
pub(crate) async fn look_up(app: &Shared, org: &str, model: &str, queries: &[Query]) -> Answers {
    let mut answers = Answers { found: Retrieved::NONE, matches: Vec::new(), is_over_cap: false };
    if queries.is_empty() {
        return answers;
    }
    answers.is_over_cap = is_over_cap(app, org).await;
    for query in queries {
        let lookup = if answers.is_over_cap {
            TierResult::Failed
        } else {
            match look_up_one(app, org, model, query).await {
                Some(matches) => {
                    let patterns = matches.iter().map(Match::pattern).collect();
                    answers.matches.extend(matches);
                    TierResult::Answered(patterns)
                }
                None => TierResult::Failed,
            }
        };
        match query.tier {
            Tier::E1 => answers.found.e1 = lookup,
            Tier::E2 => answers.found.e2 = lookup,
            Tier::E3 => answers.found.e3 = lookup,
        }
    }
    answers
}

async fn look_up_one(app: &Shared, org: &str, model: &str, query: &Query) -> Option<Vec<Match>> {
    let wanted = Wanted {
        org,
        tier: Some(query.tier),
        context: &query.context,
        failure_type: query.failure_type,
        model,
        top_k: query.top_k as usize,
    };
    match app.patterns.find(&wanted).await {
        Ok(matches) => Some(matches),
        Err(error) => {
            tracing::warn!(%error, "patterns could not be looked up");
            app.metrics.failed_open.inc();
            None
        }
    }
}

/// Whether the organisation may use no more guidance this month; in doubt it may.
pub(crate) async fn is_over_cap(app: &Shared, org: &str) -> bool {
    app.cap.is_over(&*app.store, org).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the use of guidance is not known");
        false
    })
}
