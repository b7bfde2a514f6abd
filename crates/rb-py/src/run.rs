//! The stages of one step, driven from Python: `before_model`, `plan`, the model call, `record`.
//!
//! In Rust each stage consumes the value of the previous one. Here the value is taken out of its Python object, and a
//! second use raises an error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rb_engine::guidance::Query as EngineQuery;
use rb_engine::run::Reading as EngineReading;
use rb_engine::run::remote_verdict::{RemoteAdvice, RemoteVerdict};
use rb_engine::run::{Plan as EnginePlan, PreCall as EnginePreCall, Run as EngineRun, Stop};

use crate::patterns::retrieved;
use crate::response::Response;
use crate::rules::Rules;
use crate::step::Step;
use crate::step_log::StepLogEntry;
use crate::text::utf8;

/// One monitored run.
#[pyclass(frozen)]
pub(crate) struct Run {
    inner: Mutex<EngineRun>,
}

/// Assessment of the newest steps, and the lookups to make before the next model call.
#[pyclass(frozen)]
pub(crate) struct PreCall {
    inner: Mutex<Option<EnginePreCall>>,
    /// Index of the model call, from 0.
    #[pyo3(get)]
    call: u32,
    /// State of the run.
    #[pyo3(get)]
    state: &'static str,
    /// Difficulty of the newest thought, from 0 to 1; `None` without a thought.
    #[pyo3(get)]
    difficulty: Option<f64>,
    /// Weighted sum of the scores.
    #[pyo3(get)]
    composite: f64,
}

/// A pattern lookup.
#[pyclass(frozen, get_all)]
#[derive(Clone)]
pub(crate) struct Query {
    /// `e1`, `e2` or `e3`.
    tier: &'static str,
    /// Newest thoughts of the agent; empty for E3.
    context: String,
    /// Failure type to match; set for E2 only.
    failure_type: Option<&'static str>,
    /// Maximum number of patterns.
    top_k: u32,
}

/// Score of one monitor.
#[pyclass(frozen, get_all)]
#[derive(Clone)]
pub(crate) struct Reading {
    /// Name of the monitor.
    monitor: &'static str,
    /// `heuristic` or `semantic`.
    suite: &'static str,
    /// Score from 0 (healthy) to 1 (worst).
    score: f64,
    /// True if the score reached the threshold and the monitor may advise.
    fired: bool,
    /// True if the score reached the threshold of a monitor that is only recorded.
    signal: bool,
    /// Failure type that the monitor detects.
    failure_type: &'static str,
    /// Advice for the agent, if the monitor fired.
    advice: Option<String>,
    /// Indices of the steps that the score is based on.
    steps: Vec<u32>,
}

/// Decision on the next model call.
#[pyclass(frozen)]
pub(crate) struct Plan {
    inner: Mutex<Option<EnginePlan>>,
    /// State of the run.
    #[pyo3(get)]
    state: &'static str,
    /// Model to call instead of the requested one.
    #[pyo3(get)]
    route: Option<String>,
    /// Guidance to insert into the request; its first line is `[REASONBLOCKS]`.
    #[pyo3(get)]
    fragment: Option<String>,
    /// Reason for ending the run, if it should end.
    #[pyo3(get)]
    stop: Option<String>,
}

#[pymethods]
impl Run {
    #[new]
    #[pyo3(signature = (rules, task = None))]
    fn new(rules: &Rules, task: Option<&Bound<'_, PyString>>) -> PyResult<Self> {
        let task = task.map(utf8).transpose()?.unwrap_or_default();
        Ok(Self { inner: Mutex::new(EngineRun::new(rules.inner.clone(), &task)) })
    }

    /// First stage: observes the steps since the last model call. `verdict` is a server's evaluation of them and
    /// replaces the local one.
    #[pyo3(signature = (steps: "list[Step]", verdict: "dict[str, object] | None" = None))]
    fn before_model(
        &self,
        steps: &Bound<'_, PyList>,
        verdict: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PreCall> {
        let verdict = verdict.map(parse_verdict).transpose()?;
        self.observe(steps, verdict).map(|pre_call| PreCall {
            call: pre_call.call,
            state: pre_call.state.name(),
            difficulty: pre_call.difficulty,
            composite: pre_call.assessment.composite,
            inner: Mutex::new(Some(pre_call)),
        })
    }

    /// Second stage: decides on the call. `found` holds the results of `PreCall.queries` by tier, `model_id` the model
    /// about to be called.
    #[pyo3(signature = (pre_call, found: "dict[str, object] | None" = None, model_id = ""))]
    fn plan(
        &self,
        pre_call: &PreCall,
        found: Option<&Bound<'_, PyDict>>,
        model_id: &str,
    ) -> PyResult<Plan> {
        let found = retrieved(found)?;
        let pre_call =
            take(&pre_call.inner, "this `PreCall` was already planned; call `before_model` again")?;
        self.with(|run| run.plan(pre_call, found, model_id)).map(Plan::from_engine)
    }

    /// First and second stage in one call, without pattern lookups and without a server.
    #[pyo3(signature = (steps: "list[Step]", model_id = ""))]
    fn decide(&self, steps: &Bound<'_, PyList>, model_id: &str) -> PyResult<Plan> {
        let steps = cast_steps(steps)?;
        let steps: Vec<_> = steps.iter().map(|step| step.get().as_engine()).collect();
        self.with(|run| run.decide(&steps, model_id)).map(Plan::from_engine)
    }

    /// Third stage, after the model call: counts the planned guidance as shown.
    #[pyo3(signature = (plan, response = None, timestamp = 0.0, model_id = None, latency_ms = 0.0))]
    fn record(
        &self,
        plan: &Plan,
        response: Option<&Response>,
        timestamp: f64,
        model_id: Option<String>,
        latency_ms: f64,
    ) -> PyResult<StepLogEntry> {
        let plan = take(&plan.inner, "this `Plan` was already recorded; call `plan` again")?;
        let composite = plan.pre_call().assessment.composite;
        let reply = response.unwrap_or(&Response::default()).as_engine(latency_ms);
        let mut record = self.with(|run| run.record(plan, reply))?;
        if let Some(model_id) = model_id.filter(|id| !id.is_empty()) {
            record.model_id = model_id;
        }
        Ok(StepLogEntry::from_record(record, composite, timestamp))
    }

    /// Ends the run and returns its totals.
    #[pyo3(signature = () -> "dict[str, object]")]
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = self.with(EngineRun::finish)?;
        let dict = PyDict::new(py);
        dict.set_item("steps", summary.steps)?;
        dict.set_item("calls", summary.calls)?;
        dict.set_item("tokens", summary.tokens)?;
        dict.set_item("injections", summary.injections)?;
        let fired = PyDict::new(py);
        for (monitor, steps) in summary.fired {
            fired.set_item(monitor, steps)?;
        }
        dict.set_item("fired", fired)?;
        Ok(dict)
    }

    /// Sets the index of the first step, which guidance refers to. No effect after the first step.
    fn set_first_step_index(&self, index: u32) -> PyResult<()> {
        self.with(|run| run.set_first_step_index(index))
    }

    /// State of the run: INIT, FAST, NORMAL, SLOW, SKIP or END.
    #[getter]
    fn state(&self) -> PyResult<&'static str> {
        self.with(|run| run.state().name())
    }

    /// Tokens recorded so far.
    #[getter]
    fn tokens(&self) -> PyResult<u64> {
        self.with(|run| run.tokens())
    }

    /// Used share of the token budget; 0 without a budget.
    #[getter]
    fn budget_used(&self) -> PyResult<f64> {
        self.with(|run| run.budget_used().unwrap_or_default())
    }
}

impl Run {
    fn observe(
        &self,
        steps: &Bound<'_, PyList>,
        verdict: Option<RemoteVerdict>,
    ) -> PyResult<EnginePreCall> {
        let steps = cast_steps(steps)?;
        let steps: Vec<_> = steps.iter().map(|step| step.get().as_engine()).collect();
        self.with(|run| match verdict {
            Some(verdict) => run.before_model_with_verdict(&steps, verdict),
            None => run.before_model(&steps),
        })
    }

    /// Converts a panic of the engine to an exception; the poisoned lock disables the run.
    fn with<T>(&self, act: impl FnOnce(&mut EngineRun) -> T) -> PyResult<T> {
        let mut run = self.inner.lock().map_err(|_| {
            PyRuntimeError::new_err(
                "monitoring is disabled: the engine failed on an earlier step of this run",
            )
        })?;
        catch_unwind(AssertUnwindSafe(|| act(&mut run)))
            .map_err(|_| PyRuntimeError::new_err("the engine failed on this step"))
    }
}

#[pymethods]
impl PreCall {
    /// Pattern lookups to make before `Run.plan`.
    #[getter]
    fn queries(&self) -> PyResult<Vec<Query>> {
        self.with(|pre_call| pre_call.queries.iter().map(Query::from_engine).collect())
    }

    /// Score of each monitor.
    #[getter]
    fn readings(&self) -> PyResult<Vec<Reading>> {
        self.with(|pre_call| {
            pre_call.assessment.readings.iter().map(Reading::from_engine).collect()
        })
    }

    /// Names of the monitors at their thresholds that are only recorded.
    #[getter]
    fn signals(&self) -> PyResult<Vec<&'static str>> {
        self.with(|pre_call| {
            pre_call.assessment.signals().map(|reading| reading.monitor.id).collect()
        })
    }

    /// Names of the monitors that fired.
    #[getter]
    fn fired(&self) -> PyResult<Vec<&'static str>> {
        self.with(|pre_call| {
            pre_call.assessment.fired().map(|reading| reading.monitor.id).collect()
        })
    }
}

impl PreCall {
    fn with<T>(&self, act: impl FnOnce(&EnginePreCall) -> T) -> PyResult<T> {
        let guard = self.inner.lock().map_err(|_| PyRuntimeError::new_err("lock poisoned"))?;
        guard
            .as_ref()
            .map(act)
            .ok_or_else(|| PyValueError::new_err("this `PreCall` was already planned"))
    }
}

#[pymethods]
impl Plan {
    /// Names of the monitors that fired. Not available after `Run.record`.
    #[getter]
    fn fired(&self) -> PyResult<Vec<&'static str>> {
        let guard = self.inner.lock().map_err(|_| PyRuntimeError::new_err("lock poisoned"))?;
        let plan = guard
            .as_ref()
            .ok_or_else(|| PyValueError::new_err("this `Plan` was already recorded"))?;
        Ok(plan.pre_call().assessment.fired().map(|reading| reading.monitor.id).collect())
    }
}

impl Plan {
    fn from_engine(plan: EnginePlan) -> Self {
        Self {
            state: plan.pre_call().state.name(),
            route: plan.route.clone(),
            fragment: plan.fragment.as_ref().map(|fragment| fragment.as_str().to_owned()),
            stop: plan.stop.map(stop_reason),
            inner: Mutex::new(Some(plan)),
        }
    }
}

impl Query {
    fn from_engine(query: &EngineQuery) -> Self {
        Self {
            tier: query.tier.name(),
            context: query.context.clone(),
            failure_type: query.failure_type,
            top_k: query.top_k,
        }
    }
}

impl Reading {
    fn from_engine(reading: &EngineReading) -> Self {
        let steps =
            reading.evidence.iter().flat_map(|evidence| evidence.steps.iter().map(|at| at.0));
        Self {
            monitor: reading.monitor.id,
            suite: reading.monitor.suite.name(),
            score: reading.score,
            fired: reading.fired,
            signal: reading.signal,
            failure_type: reading.monitor.failure_type,
            advice: reading.advice(),
            steps: steps.collect(),
        }
    }
}

#[pymethods]
impl Reading {
    fn __repr__(&self) -> String {
        format!(
            "Reading({}={:.2}{})",
            self.monitor,
            self.score,
            if self.fired { ", fired" } else { "" }
        )
    }
}

fn cast_steps<'py>(steps: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, Step>>> {
    Ok(steps.iter().map(Bound::cast_into).collect::<Result<_, _>>()?)
}

fn take<T>(value: &Mutex<Option<T>>, taken: &'static str) -> PyResult<T> {
    let mut guard = value.lock().map_err(|_| PyRuntimeError::new_err("lock poisoned"))?;
    guard.take().ok_or_else(|| PyValueError::new_err(taken))
}

fn stop_reason(stop: Stop) -> String {
    match stop {
        Stop::TokenBudget { used, limit } => {
            format!("{used} of the {limit} tokens of this run are used")
        }
    }
}

/// Converts a server's reply to `/monitors/evaluate`; malformed fields count as absent.
fn parse_verdict(reply: &Bound<'_, PyDict>) -> PyResult<RemoteVerdict> {
    let get = |key: &str| reply.get_item(key).map(|v| v.filter(|v| !v.is_none()));
    let scores = get("scores")?;
    let scores: Vec<(String, f64)> = match scores.as_ref().and_then(|s| s.cast::<PyDict>().ok()) {
        Some(scores) => scores
            .iter()
            .filter_map(|(name, score)| Some((name.extract().ok()?, score.extract().ok()?)))
            .collect(),
        None => Vec::new(),
    };
    let fired = get("fired")?;
    let fired: Vec<String> = match fired.as_ref().and_then(|f| f.cast::<PyList>().ok()) {
        Some(fired) => fired.iter().filter_map(|name| name.extract().ok()).collect(),
        None => Vec::new(),
    };
    let composite = get("composite")?.and_then(|c| c.extract().ok()).unwrap_or(0.0);
    let inject = get("inject")?.is_some_and(|inject| inject.is_truthy().unwrap_or(false));
    let advice = if inject { advice(reply)? } else { Vec::new() };
    let fired: Vec<&str> = fired.iter().map(String::as_str).collect();
    let scores = scores.iter().map(|(name, score)| (name.as_str(), *score));
    Ok(RemoteVerdict::new(scores, &fired, composite, advice))
}

/// Reads the guidance of a reply: the advice of each fired monitor, or else the one text of the reply. The advice in
/// `evidence` has the wording of the local engine; `intervention_text` adds the index of the step.
fn advice(reply: &Bound<'_, PyDict>) -> PyResult<Vec<RemoteAdvice>> {
    let text = |dict: &Bound<'_, PyDict>, key: &str| -> PyResult<Option<String>> {
        let value = dict.get_item(key)?;
        let value = value.as_ref().and_then(|value| value.cast::<PyString>().ok());
        value.map(|value| Ok(utf8(value)?.into_owned())).transpose()
    };
    let is_by_monitor = text(reply, "injection_path")?.as_deref() == Some("monitor");
    let mut all = Vec::new();
    let evidence = reply.get_item("evidence")?;
    let evidence = evidence.as_ref().and_then(|list| list.cast::<PyList>().ok());
    for entry in evidence.into_iter().flatten().filter(|_| is_by_monitor) {
        if let Ok(entry) = entry.cast::<PyDict>()
            && let Some(text_of) = text(entry, "text")?
        {
            all.push(RemoteAdvice { monitor: text(entry, "monitor")?, text: text_of });
        }
    }
    if all.is_empty() {
        let only = text(reply, "intervention_text")?;
        all.extend(only.map(|text| RemoteAdvice { monitor: None, text }));
    }
    Ok(all)
}
