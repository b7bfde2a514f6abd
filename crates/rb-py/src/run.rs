//! The walk of one step, driven from Python: `before_model`, then `plan`, then the model call, then `record`.
//!
//! In Rust each stage takes the value of the one before. Here that value is taken out of its object, so that using it
//! a second time is an error with a name.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rb_engine::guidance::Query as EngineQuery;
use rb_engine::run::Reading as EngineReading;
use rb_engine::run::remote_verdict::RemoteVerdict;
use rb_engine::run::{Plan as EnginePlan, PreCall as EngineAsk, Run as EngineRun, Stop};

use crate::answer::Answer;
use crate::entry::StepLogEntry;
use crate::patterns::found;
use crate::rules::Rules;
use crate::step::Step;
use crate::text::utf8;

/// One watched run.
#[pyclass(frozen)]
pub(crate) struct Run {
    inner: Mutex<EngineRun>,
}

/// What the engine wants before the next model call.
#[pyclass(frozen)]
pub(crate) struct Ask {
    inner: Mutex<Option<EngineAsk>>,
    /// The model call this is for, counted from 0.
    #[pyo3(get)]
    call: u32,
    /// The state the run is in.
    #[pyo3(get)]
    state: &'static str,
    /// How hard the newest thought looked; `None` where a step had none.
    #[pyo3(get)]
    difficulty: Option<f64>,
    /// The weighted sum of the scores.
    #[pyo3(get)]
    composite: f64,
}

/// Something to look up.
#[pyclass(frozen, get_all)]
#[derive(Clone)]
pub(crate) struct Query {
    /// `e1`, `e2` or `e3`.
    tier: &'static str,
    /// What the agent thought last; empty for E3.
    context: String,
    /// The kind of failure to look for; only E2 has one.
    failure_type: Option<&'static str>,
    /// At most this many patterns.
    top_k: u32,
}

/// What one monitor reads.
#[pyclass(frozen, get_all)]
#[derive(Clone)]
pub(crate) struct Reading {
    /// Its name.
    monitor: &'static str,
    /// `heuristic` or `semantic`.
    suite: &'static str,
    /// From 0 (healthy) to 1 (worst).
    score: f64,
    /// The score reached the threshold.
    fired: bool,
    /// The kind of failure it is a sign of.
    failure_type: &'static str,
    /// What to tell the agent, if it fired.
    advice: Option<String>,
    /// The steps behind it.
    steps: Vec<u32>,
}

/// What to do with the next model call.
#[pyclass(frozen)]
pub(crate) struct Plan {
    inner: Mutex<Option<EnginePlan>>,
    /// The state the run is in.
    #[pyo3(get)]
    state: &'static str,
    /// The model that should take the call instead of the one asked for.
    #[pyo3(get)]
    route: Option<String>,
    /// The text to put into the request, first line `[REASONBLOCKS]`, if any is due.
    #[pyo3(get)]
    fragment: Option<String>,
    /// Why the run should end, if it should.
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

    /// First stage: takes the steps since the last model call, and a server's verdict on them, if there is one.
    #[pyo3(signature = (steps: "list[Step]", verdict: "dict[str, object] | None" = None))]
    fn before_model(
        &self,
        steps: &Bound<'_, PyList>,
        verdict: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Ask> {
        let verdict = verdict.map(verdict_of).transpose()?;
        self.ask(steps, verdict).map(|ask| Ask {
            call: ask.call,
            state: ask.state.name(),
            difficulty: ask.difficulty,
            composite: ask.assessment.composite,
            inner: Mutex::new(Some(ask)),
        })
    }

    /// Second stage: takes what was found for `Ask.queries`, tier by tier, and the model about to be called.
    #[pyo3(signature = (ask, found: "dict[str, object] | None" = None, model_id = ""))]
    fn plan(&self, ask: &Ask, found: Option<&Bound<'_, PyDict>>, model_id: &str) -> PyResult<Plan> {
        let found = self::found(found)?;
        let ask = take(&ask.inner, "this `Ask` has been planned already; ask again")?;
        self.with(|run| run.plan(ask, found, model_id)).map(Plan::of)
    }

    /// Both stages at once, for a host that looks nothing up and asks no server.
    #[pyo3(signature = (steps: "list[Step]", model_id = ""))]
    fn decide(&self, steps: &Bound<'_, PyList>, model_id: &str) -> PyResult<Plan> {
        let steps = steps_of(steps)?;
        let steps: Vec<_> = steps.iter().map(|step| step.get().as_engine()).collect();
        self.with(|run| run.decide(&steps, model_id)).map(Plan::of)
    }

    /// Third stage, after the model has answered: what was planned has happened and counts.
    #[pyo3(signature = (plan, answer = None, timestamp = 0.0, model_id = None, latency_ms = 0.0))]
    fn record(
        &self,
        plan: &Plan,
        answer: Option<&Answer>,
        timestamp: f64,
        model_id: Option<String>,
        latency_ms: f64,
    ) -> PyResult<StepLogEntry> {
        let plan = take(&plan.inner, "this `Plan` has been recorded already; plan again")?;
        let composite = plan.pre_call().assessment.composite;
        let reply = answer.unwrap_or(&Answer::default()).as_engine(latency_ms);
        let mut record = self.with(|run| run.record(plan, reply))?;
        if let Some(model_id) = model_id.filter(|id| !id.is_empty()) {
            record.model_id = model_id;
        }
        Ok(StepLogEntry::of(record, composite, timestamp))
    }

    /// Last stage: the run is over. Gives what it came to, in numbers.
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

    /// Where the run is: INIT, FAST, NORMAL, SLOW, SKIP or END.
    #[getter]
    fn state(&self) -> PyResult<&'static str> {
        self.with(|run| run.state().name())
    }

    /// Tokens recorded so far.
    #[getter]
    fn tokens(&self) -> PyResult<u64> {
        self.with(|run| run.tokens())
    }

    /// The share of the token budget that is used; 0 without a budget.
    #[getter]
    fn budget_used(&self) -> PyResult<f64> {
        self.with(|run| run.budget_used().unwrap_or_default())
    }
}

impl Run {
    fn ask(
        &self,
        steps: &Bound<'_, PyList>,
        verdict: Option<RemoteVerdict>,
    ) -> PyResult<EngineAsk> {
        let steps = steps_of(steps)?;
        let steps: Vec<_> = steps.iter().map(|step| step.get().as_engine()).collect();
        self.with(|run| match verdict {
            Some(verdict) => run.before_model_with_verdict(&steps, verdict),
            None => run.before_model(&steps),
        })
    }

    /// A panic of the engine becomes an exception that a host can catch, and the run is not used again.
    fn with<T>(&self, act: impl FnOnce(&mut EngineRun) -> T) -> PyResult<T> {
        let broken = || {
            PyRuntimeError::new_err(
                "the engine failed on an earlier step of this run; it is not watched any more",
            )
        };
        let mut run = self.inner.lock().map_err(|_| broken())?;
        catch_unwind(AssertUnwindSafe(|| act(&mut run)))
            .map_err(|_| PyRuntimeError::new_err("the engine failed on this step"))
    }
}

#[pymethods]
impl Ask {
    /// What to look up; mostly empty.
    #[getter]
    fn queries(&self) -> PyResult<Vec<Query>> {
        self.look(|ask| ask.queries.iter().map(Query::of).collect())
    }

    /// What each monitor reads.
    #[getter]
    fn readings(&self) -> PyResult<Vec<Reading>> {
        self.look(|ask| ask.assessment.readings.iter().map(Reading::of).collect())
    }

    /// The names of the monitors that fired.
    #[getter]
    fn fired(&self) -> PyResult<Vec<&'static str>> {
        self.look(|ask| ask.assessment.fired().map(|reading| reading.monitor.id).collect())
    }
}

impl Ask {
    fn look<T>(&self, act: impl FnOnce(&EngineAsk) -> T) -> PyResult<T> {
        let guard = self.inner.lock().map_err(|_| PyRuntimeError::new_err("an `Ask` is broken"))?;
        guard
            .as_ref()
            .map(act)
            .ok_or_else(|| PyValueError::new_err("this `Ask` has been planned already"))
    }
}

impl Plan {
    fn of(plan: EnginePlan) -> Self {
        Self {
            state: plan.pre_call().state.name(),
            route: plan.route.clone(),
            fragment: plan.fragment.as_ref().map(|fragment| fragment.as_str().to_owned()),
            stop: plan.stop.map(stop_in_words),
            inner: Mutex::new(Some(plan)),
        }
    }
}

impl Query {
    fn of(query: &EngineQuery) -> Self {
        Self {
            tier: query.tier.name(),
            context: query.context.clone(),
            failure_type: query.failure_type,
            top_k: query.top_k,
        }
    }
}

impl Reading {
    fn of(reading: &EngineReading) -> Self {
        let steps =
            reading.evidence.iter().flat_map(|evidence| evidence.steps.iter().map(|at| at.0));
        Self {
            monitor: reading.monitor.id,
            suite: reading.monitor.suite.name(),
            score: reading.score,
            fired: reading.fired,
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

fn steps_of<'py>(steps: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, Step>>> {
    Ok(steps.iter().map(Bound::cast_into).collect::<Result<_, _>>()?)
}

fn take<T>(value: &Mutex<Option<T>>, taken: &'static str) -> PyResult<T> {
    let mut guard = value.lock().map_err(|_| PyRuntimeError::new_err("a stage is broken"))?;
    guard.take().ok_or_else(|| PyValueError::new_err(taken))
}

fn stop_in_words(stop: Stop) -> String {
    match stop {
        Stop::TokenBudget { used, limit } => {
            format!("{used} of the {limit} tokens of this run are used")
        }
    }
}

/// A server's reply. What cannot be read in it counts as not said.
fn verdict_of(reply: &Bound<'_, PyDict>) -> PyResult<RemoteVerdict> {
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
    let text = get("intervention_text")?;
    let text = match text.as_ref().and_then(|text| text.cast::<PyString>().ok()) {
        Some(text) if inject => Some(utf8(text)?.into_owned()),
        Some(_) | None => None,
    };
    let fired: Vec<&str> = fired.iter().map(String::as_str).collect();
    let scores = scores.iter().map(|(name, score)| (name.as_str(), *score));
    Ok(RemoteVerdict::new(scores, &fired, composite, text))
}
