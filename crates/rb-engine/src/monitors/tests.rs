//! Properties of the registry, and hand-written cases for the semantic monitors: runs of many types of agents that must
//! fire, and similar runs that must not.

use super::*;
use crate::test_util::check_cases;

macro_rules! cases {
    ($($monitor:literal),* $(,)?) => {
        [$(($monitor, include_str!(concat!("cases/", $monitor, ".txt")))),*]
    };
}

#[test]
fn semantic_monitors_fire_as_expected() {
    let cases = cases![
        "claim_contradiction",
        "semantic_loop",
        "verification_skip",
        "cyclic_compression",
        "late_sprawl",
        "silent_topic_drift",
    ];
    for (monitor, cases) in cases {
        check_cases(monitor, cases);
    }
    let semantic = ALL.iter().filter(|spec| spec.suite == Suite::Semantic).map(|spec| spec.id);
    assert!(semantic.eq(cases.iter().map(|(monitor, _)| *monitor)), "a monitor has no cases");
}

#[test]
fn ids_are_unique_and_snake_case() {
    for (at, spec) in ALL.iter().enumerate() {
        assert!(spec.id.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", spec.id);
        assert!(ALL[at + 1..].iter().all(|other| other.id != spec.id), "{} twice", spec.id);
    }
}

#[test]
fn every_row_is_complete() {
    for spec in ALL {
        assert!(spec.summary.ends_with('.') && spec.summary.len() < 100, "{}", spec.id);
        assert!(spec.fire_at > 0.0 && spec.fire_at <= 1.0, "{}", spec.id);
        assert!(!spec.failure_type.is_empty(), "{}", spec.id);
    }
}
