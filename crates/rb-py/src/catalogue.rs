//! Names of what the package is built from: the monitors and the weights of the built-in profiles.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rb_engine::config::weights::{Profile, Weights};
use rb_engine::monitors::ALL;

/// Every monitor: its name, its suite, and one sentence about it.
#[pyfunction]
pub(crate) fn monitors() -> Vec<(&'static str, &'static str, &'static str)> {
    ALL.iter().map(|spec| (spec.id, spec.suite.name(), spec.summary)).collect()
}

/// The weights of a built-in profile: `coding`, `pr_review` or `qa`.
#[pyfunction]
pub(crate) fn profile_weights(task_profile: &str) -> PyResult<Vec<(&'static str, f64)>> {
    let profile = Profile::from_name(task_profile).ok_or_else(|| {
        let known = Profile::ALL.map(Profile::name).join(", ");
        PyValueError::new_err(format!("`{task_profile}` is no built-in profile; those are {known}"))
    })?;
    Ok(ALL.iter().map(|spec| spec.id).zip(Weights::of(profile).iter()).collect())
}
