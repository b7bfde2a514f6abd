//! Names of the monitors and weights of the built-in profiles.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rb_engine::config::weights::{Profile, Weights};
use rb_engine::monitors::ALL;

/// Returns the name, the suite and a one-sentence summary of every monitor.
#[pyfunction]
pub(crate) fn monitors() -> Vec<(&'static str, &'static str, &'static str)> {
    ALL.iter().map(|spec| (spec.id, spec.suite.name(), spec.summary)).collect()
}

/// Returns the monitor weights of a built-in profile: `coding`, `pr_review` or `qa`.
#[pyfunction]
pub(crate) fn profile_weights(task_profile: &str) -> PyResult<Vec<(&'static str, f64)>> {
    let profile = Profile::from_name(task_profile).ok_or_else(|| {
        let known = Profile::ALL.map(Profile::name).join(", ");
        PyValueError::new_err(format!("unknown profile: `{task_profile}`; use one of {known}"))
    })?;
    Ok(ALL.iter().map(|spec| spec.id).zip(Weights::of(profile).iter()).collect())
}
