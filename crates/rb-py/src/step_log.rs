//! Step log entry of a completed model call.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rb_engine::guidance::Source;
use rb_engine::run::record::StepRecord;
use rb_engine::run::round4;

/// One completed model call: state, scores, injected guidance and token counts.
#[pyclass(frozen, get_all)]
#[derive(Clone)]
pub(crate) struct StepLogEntry {
    /// Index of the model call, from 0.
    step: u32,
    /// Unix time in seconds.
    timestamp: f64,
    /// Difficulty of the last thought, from 0 to 1; `None` without a thought.
    difficulty: Option<f64>,
    /// State of the run at the time of the call.
    fsm_state: &'static str,
    /// Model that was called.
    model_id: String,
    /// Short form of each injected item.
    injections: Vec<String>,
    /// Source of each injected item: `monitor`, `budget`, `e1`, `e2` or `e3`.
    injection_sources: Vec<&'static str>,
    /// Full texts of the injected advice.
    intervention_texts: Vec<String>,
    /// Monitors whose advice was injected.
    advised: Vec<&'static str>,
    /// Monitors that fired on the steps before the call.
    monitors_fired: Vec<&'static str>,
    /// Failure type of the most serious fired monitor.
    failure_type: Option<&'static str>,
    /// Reason for skipping pattern lookups.
    skipped_reason: Option<&'static str>,
    /// First characters of the last thought.
    thought_preview: String,
    /// Tools that the model called.
    tool_calls: Vec<String>,
    /// Total tokens of the call.
    tokens: u64,
    /// Input tokens; 0 if unknown.
    input_tokens: u64,
    /// Output tokens; 0 if unknown.
    output_tokens: u64,
    /// Input tokens read from the provider's prompt cache; 0 if unknown.
    cache_read_tokens: u64,
    /// Duration of the call in milliseconds.
    latency_ms: f64,
    /// Weighted sum of the monitor scores.
    composite: f64,
}

impl StepLogEntry {
    pub(crate) fn from_record(record: StepRecord, composite: f64, timestamp: f64) -> Self {
        Self {
            step: record.step,
            timestamp,
            difficulty: record.difficulty,
            fsm_state: record.fsm_state.name(),
            model_id: record.model_id,
            injections: record.injections,
            injection_sources: record.injection_sources.into_iter().map(Source::name).collect(),
            intervention_texts: record.intervention_texts,
            advised: record.advised,
            monitors_fired: record.monitors_fired,
            failure_type: record.failure_type,
            skipped_reason: record.skipped_reason,
            thought_preview: record.thought_preview,
            tool_calls: record.tool_calls,
            tokens: record.usage.total,
            input_tokens: record.usage.input,
            output_tokens: record.usage.output,
            cache_read_tokens: record.usage.cache_read,
            latency_ms: record.latency_ms.unwrap_or_default(),
            composite,
        }
    }
}

#[pymethods]
impl StepLogEntry {
    /// Returns the entry as a dictionary without absent fields.
    #[pyo3(signature = () -> "dict[str, object]")]
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("step", self.step)?;
        dict.set_item("timestamp", self.timestamp)?;
        dict.set_item("fsm_state", self.fsm_state)?;
        dict.set_item("thought_preview", &self.thought_preview)?;
        dict.set_item("injections", &self.injections)?;
        dict.set_item("injection_sources", &self.injection_sources)?;
        dict.set_item("intervention_texts", &self.intervention_texts)?;
        dict.set_item("monitors_fired", &self.monitors_fired)?;
        dict.set_item("tool_calls", &self.tool_calls)?;
        dict.set_item("tokens", self.tokens)?;
        dict.set_item("input_tokens", self.input_tokens)?;
        dict.set_item("output_tokens", self.output_tokens)?;
        dict.set_item("cache_read_tokens", self.cache_read_tokens)?;
        dict.set_item("latency_ms", (self.latency_ms * 100.0).round() / 100.0)?;
        dict.set_item("composite", self.composite)?;
        if let Some(difficulty) = self.difficulty {
            dict.set_item("difficulty", round4(difficulty))?;
        }
        let texts = [
            ("model_id", Some(self.model_id.as_str())),
            ("skipped_reason", self.skipped_reason),
            ("failure_type", self.failure_type),
        ];
        for (name, text) in texts {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                dict.set_item(name, PyString::new(py, text))?;
            }
        }
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let Self { step, fsm_state, monitors_fired, injection_sources, .. } = self;
        format!(
            "StepLogEntry(step={step}, fsm_state={fsm_state:?}, monitors_fired={monitors_fired:?}, injection_sources={injection_sources:?})"
        )
    }
}
