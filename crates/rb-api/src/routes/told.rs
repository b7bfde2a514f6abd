//! What telemetry and the walk have in common: whose run it is, what a step cost, and who hears of it.

use rb_engine::guidance::{OPERATOR_PREFIX, Source};
use rb_store::{Change, RunKey, Scope, StepRow, StoreError, Tokens};
use serde_json::{Map, Value};

use crate::ApiState;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::auth::{Caller, DEFAULT_ORG};
use rb_runtime::runs::{LiveRun, RunGuard};

pub(super) const NO_RUN: ApiError = ApiError::NotFound("there is no such run");

/// Which run is meant. The SDKs name the organisation when a run begins and not with its steps; the operator's keys
/// belong to none, so for them the run is looked for.
pub(super) async fn run_key(
    api: &ApiState,
    caller: &Caller,
    org: Option<&str>,
    run_id: &str,
) -> ApiResult<RunKey> {
    let run_id = run_id.to_owned();
    if let Some(org) = caller.scope(org, None).org {
        return Ok(RunKey { org, run_id });
    }
    if let Some(org) = api.runtime.run_owners.get(&run_id) {
        return Ok(RunKey { org, run_id });
    }
    let row = api.runtime.store.run(&Scope::default(), &run_id).await?;
    let run = row.map_or(RunKey { org: DEFAULT_ORG.to_owned(), run_id }, |row| row.run);
    api.runtime.run_owners.set(&run.run_id, &run.org);
    Ok(run)
}

/// The run's state, from memory or rebuilt. It is taken out of the turn: whoever changed it and could store the
/// change puts it back.
pub(super) async fn state(api: &ApiState, turn: &mut RunGuard, run: &RunKey) -> ApiResult<LiveRun> {
    match turn.take() {
        Some(live) => Ok(live),
        None => Ok(api.runtime.run_loader.load(run, None).await?),
    }
}

/// Brings the state up to date where steps may have been stored by another process.
pub(super) async fn caught_up(
    api: &ApiState,
    live: LiveRun,
    run: &RunKey,
    index: u32,
) -> ApiResult<LiveRun> {
    let is_behind = live.newest().is_none_or(|newest| index > newest) && !live.is_next(index);
    if is_behind { Ok(api.runtime.run_loader.load(run, None).await?) } else { Ok(live) }
}

/// So often a step is read anew because another node was faster with one of the same run.
pub(super) const ATTEMPTS: u32 = 12;

/// Stores changes of a run that were decided by its state, unless another node has changed the run meanwhile: then this
/// says so, and the state is of no use any more.
pub(super) async fn store_next(
    api: &ApiState,
    live: &mut LiveRun,
    run: &RunKey,
    changes: Vec<Change>,
) -> ApiResult<Stored> {
    let version = live.version + changes.len() as u64;
    let mut guarded = vec![Change::ExpectVersion { run: run.clone(), version: live.version }];
    guarded.extend(changes);
    match api.runtime.store.apply(guarded).await {
        Ok(_) => {
            live.version = version;
            Ok(Stored::Yes)
        }
        Err(StoreError::VersionConflict) => {
            api.runtime.metrics.version_conflicts.inc();
            Ok(Stored::Overtaken)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a change was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Yes,
    /// Another node was faster.
    Overtaken,
}

/// A key that is limited to a project sees nothing of the others.
pub(super) fn check_project(caller: &Caller, live: &LiveRun) -> ApiResult<()> {
    let limited = caller.scope(None, None).project;
    if live.is_known && limited.is_some_and(|project| project != live.project) {
        return Err(NO_RUN);
    }
    Ok(())
}

/// The model that was used: as the step says, else as its metadata says, else as the run said.
pub(super) fn model_of(step: String, metadata: &Map<String, Value>, run: &str) -> String {
    if !step.is_empty() {
        return step;
    }
    match metadata.get("model_id").and_then(Value::as_str) {
        Some(model) if !model.is_empty() => model.to_owned(),
        Some(_) | None => run.to_owned(),
    }
}

/// Counts of tokens as they arrive.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokensIn {
    pub(super) total: Option<u64>,
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
}

/// More is a mistake, and sums of it would not be numbers any more.
const TOKENS_MAX: u64 = 1_000_000_000_000;

impl TokensIn {
    /// As they are kept: the input includes what was read from and written to the cache. Where less is reported than
    /// the cache alone, it was counted without.
    pub(super) fn tokens(self) -> Tokens {
        let known = |count: Option<u64>| count.unwrap_or_default().min(TOKENS_MAX);
        let (cache_read, cache_write) = (known(self.cache_read), known(self.cache_write));
        let mut input = known(self.input);
        if input < cache_read + cache_write {
            input += cache_read + cache_write;
        }
        let output = known(self.output);
        let total = self.total.map_or(input + output, |total| total.min(TOKENS_MAX));
        let total = if total == 0 { input + output } else { total };
        Tokens { total, input, output, cache_read, cache_write }
    }
}

/// Clients report what they showed and not who wrote it: a person's words are known by how they begin.
pub(super) fn note_hand(row: &mut StepRow) {
    let mut shown = row.intervention_texts.iter().chain(&row.injections);
    let is_by_hand = shown.any(|text| text.contains(OPERATOR_PREFIX));
    let hand = Source::Operator.name();
    if is_by_hand && !row.injection_sources.iter().any(|source| source == hand) {
        row.injection_sources.push(hand.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_add_up_however_they_are_counted() {
        let check = |total, input, output, cache_read| {
            let given = TokensIn {
                total: Some(total),
                input: Some(input),
                output: Some(output),
                cache_read: Some(cache_read),
                cache_write: None,
            };
            let tokens = given.tokens();
            (tokens.total, tokens.input, tokens.output, tokens.cache_read)
        };
        assert_eq!(check(110, 100, 10, 40), (110, 100, 10, 40));
        assert_eq!(
            check(15, 5, 10, 40),
            (15, 45, 10, 40),
            "the input was counted without the cache"
        );
        assert_eq!(check(0, 5, 10, 0), (15, 5, 10, 0));
        assert_eq!(check(u64::MAX, 0, 0, 0).0, TOKENS_MAX);
        assert_eq!(TokensIn::default().tokens(), Tokens::default());
    }

    #[test]
    fn the_model_is_the_one_that_was_used() {
        let metadata = json!({"model_id": "from-metadata"});
        let metadata = metadata.as_object().unwrap();
        let nothing = Map::new();
        assert_eq!(model_of("own".to_owned(), metadata, "run"), "own");
        assert_eq!(model_of(String::new(), metadata, "run"), "from-metadata");
        assert_eq!(model_of(String::new(), &nothing, "run"), "run");
    }
}
