//! What one model call left behind: an entry of the step log.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rb_engine::guidance::Source;
use rb_engine::run::record::StepRecord;
use rb_engine::run::round4;

/// One completed model call and what led to it.
#[pyclass(frozen, get_all)]
#[derive(Clone)]
pub(crate) struct StepLogEntry {
    /// The model call, counted from 0.
    step: u32,
    /// When, in seconds since 1970.
    timestamp: f64,
    /// How hard the last thought looked; `None` where there was none.
    difficulty: Option<f64>,
    /// The state the call was made in.
    fsm_state: &'static str,
    /// The model that took the call.
    model_id: String,
    /// A short form of each injected piece of guidance.
    injections: Vec<String>,
    /// Where each comes from: `monitor`, `budget`, `e1`, `e2` or `e3`.
    injection_sources: Vec<&'static str>,
    /// The full advice texts that were shown.
    intervention_texts: Vec<String>,
    /// The monitors that fired on the steps before the call.
    monitors_fired: Vec<&'static str>,
    /// The kind of failure the most serious of them is a sign of.
    failure_type: Option<&'static str>,
    /// Why look-ups were left out, if they were.
    skipped_reason: Option<&'static str>,
    /// The beginning of the last thought.
    thought_preview: String,
    /// The tools the model asked for.
    tool_calls: Vec<String>,
    /// Everything the call is counted with.
    tokens: u64,
    /// Tokens read, where known.
    input_tokens: u64,
    /// Tokens written, where known.
    output_tokens: u64,
    /// Tokens read from the provider's cache, where known.
    cache_read_tokens: u64,
    /// How long the call took.
    latency_ms: f64,
    /// The weighted sum of the monitors' scores.
    composite: f64,
}

impl StepLogEntry {
    pub(crate) fn of(record: StepRecord, composite: f64, timestamp: f64) -> Self {
        Self {
            step: record.step,
            timestamp,
            difficulty: record.difficulty,
            fsm_state: record.fsm_state.name(),
            model_id: record.model_id,
            injections: record.injections,
            injection_sources: record.injection_sources.into_iter().map(Source::name).collect(),
            intervention_texts: record.intervention_texts,
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
    /// The entry as a dictionary; what is not there is left out.
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
