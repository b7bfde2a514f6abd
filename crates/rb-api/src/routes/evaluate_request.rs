//! Request of `evaluate`. Steps stay raw JSON until they are assessed, because most were assessed by an earlier request.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use rb_runtime::runs::TraceCache;
use rb_runtime::runs::assessment::Suite;
use rb_runtime::runs::trace_cache::TraceHash;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use rb_http::body;
use rb_http::error::{ApiError, Fault, Place};

/// All fields but the steps.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub(super) struct Settings {
    pub(super) model: Option<String>,
    pub(super) task_profile: Option<String>,
    pub(super) weights: Option<BTreeMap<String, f64>>,
    pub(super) suite: Option<Suite>,
    pub(super) run_id: Option<String>,
    pub(super) task: Option<String>,
    pub(super) org_id: Option<String>,
    pub(super) project_id: Option<String>,
    pub(super) after_mark: Option<String>,
    pub(super) first_step_index: Option<u32>,
}

/// Steps of a body, borrowed as raw JSON.
#[derive(Debug, Deserialize)]
struct RawSteps<'a> {
    #[serde(borrow, default)]
    steps: Option<Vec<&'a RawValue>>,
}

/// Steps of a request.
pub(super) struct Steps {
    body: Bytes,
    /// Hash of the trace before the first step of this request.
    pub(super) before: TraceHash,
    /// The request continues a trace at a cursor.
    pub(super) is_continued: bool,
    ranges: Vec<Range<usize>>,
}

/// One step. All fields are optional.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct StepIn {
    /// Visible text of the model in this turn, truncated to 64,000 characters.
    #[serde(default)]
    pub(crate) thought: Option<String>,
    /// Name of the called tool.
    #[serde(default)]
    pub(crate) action: Option<String>,
    /// Argument of the tool: text, or any JSON.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    pub(crate) action_input: Option<Box<RawValue>>,
    /// Result of the tool.
    #[serde(default)]
    pub(crate) observation: Option<String>,
    /// The call failed.
    #[serde(default)]
    pub(crate) observation_is_error: Option<bool>,
    /// Monitors whose advice the model read before this step: they assess what follows as a repetition.
    #[serde(default)]
    pub(crate) advised: Option<Vec<String>>,
    /// Text of the user just before this step.
    #[serde(default)]
    pub(crate) user_input: Option<String>,
}

/// Parses a body; `owner` separates the traces of different callers.
pub(super) fn parse(
    cache: &TraceCache,
    owner: &str,
    body: &Bytes,
) -> Result<(Settings, Steps), ApiError> {
    let raw: RawSteps<'_> = body::parse_borrowed(body)?;
    let settings: Settings = body::parse_borrowed(body)?;
    let ranges = raw.steps.iter().flatten().map(|step| range_in(body, step)).collect();
    let (before, is_continued) = match &settings.after_mark {
        Some(cursor) => (TraceHash::from_cursor(cursor), true),
        None => (cache.begin(owner), false),
    };
    Ok((settings, Steps { body: body.clone(), before, is_continued, ranges }))
}

impl Steps {
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Hash of the trace after each step.
    pub(super) fn hashes(&self, cache: &TraceCache) -> Vec<TraceHash> {
        let mut trace = self.before;
        let extend = |step: &Range<usize>| {
            trace = cache.extend(trace, self.body.get(step.clone()).unwrap_or_default());
            trace
        };
        self.ranges.iter().map(extend).collect()
    }

    /// Parses the step at a position.
    pub(super) fn parse(&self, position: usize) -> Result<StepIn, ApiError> {
        let bytes = self.ranges.get(position).and_then(|step| self.body.get(step.clone()));
        body::parse(bytes.unwrap_or(b"{}")).map_err(|error| with_position(error, position))
    }
}

/// Prefixes the location of a validation error with the position of the step.
fn with_position(error: ApiError, position: usize) -> ApiError {
    let ApiError::Unprocessable(faults) = error else { return error };
    let before = [
        Place::Name("body".to_owned()),
        Place::Name("steps".to_owned()),
        Place::Position(position),
    ];
    let located = faults.into_iter().map(|fault| {
        let loc = before.iter().cloned().chain(fault.loc.into_iter().skip(1)).collect();
        Fault { loc, ..fault }
    });
    ApiError::Unprocessable(located.collect())
}

/// Byte range of a borrowed value in the body.
fn range_in(body: &[u8], value: &RawValue) -> Range<usize> {
    let start = (value.get().as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
    start..start + value.get().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_the_step() {
        let cache = TraceCache::new(1);
        let body = Bytes::from_static(b"{\"steps\":[{},{\"thought\":5}]}");
        let (_, steps) = parse(&cache, "o", &body).unwrap();
        assert!(steps.parse(0).is_ok());
        let ApiError::Unprocessable(faults) = steps.parse(1).unwrap_err() else { panic!() };
        let loc = serde_json::to_value(&faults[0].loc).unwrap();
        assert_eq!(loc, json!(["body", "steps", 1, "thought"]));
    }

    #[test]
    fn hashes_depend_on_the_bytes_of_the_steps() {
        let cache = TraceCache::new(1);
        let hashes = |body: &'static str| {
            let (_, steps) = parse(&cache, "o", &Bytes::from_static(body.as_bytes())).unwrap();
            steps.hashes(&cache)
        };
        let short = hashes(r#"{"steps":[{"thought":"a"}], "model": "m"}"#);
        let long = hashes(r#"{"steps":[{"thought":"a"},{"thought":"b"}]}"#);
        assert_eq!(short[..], long[..1]);
        assert_ne!(long[1], hashes(r#"{"steps":[{"thought":"a"},{"thought":"c"}]}"#)[1]);
        let after =
            format!(r#"{{"after_mark":"{}","steps":[{{"thought":"b"}}]}}"#, short[0].to_cursor());
        let (_, steps) = parse(&cache, "o", &Bytes::from(after)).unwrap();
        assert!(steps.is_continued);
        assert_eq!(steps.hashes(&cache), long[1..]);
    }
}
