//! The report for programs: the structs of [`super`], field by field.

use super::Report;

/// The report as indented JSON.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report)
}
