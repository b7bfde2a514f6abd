//! Cases for the semantic monitors, written by hand: runs of many kinds of agents that a monitor must notice, and runs
//! that look alike and must stay silent.
//!
//! Where the rule leaves the exact step open, a line says `any`; the run must be noticed at its last line.

mod claim_contradiction;
mod cyclic_compression;
mod late_sprawl;
mod semantic_loop;
mod silent_topic_drift;
mod verification_skip;

use super::*;

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

#[test]
fn weights_of_a_suite_sum_to_one() {
    for suite in [Suite::Heuristic, Suite::Semantic] {
        let sum = |weight: fn(&ProfileWeights) -> f64| -> f64 {
            ALL.iter().filter(|spec| spec.suite == suite).map(|spec| weight(&spec.weights)).sum()
        };
        for total in [sum(|w| w.coding), sum(|w| w.pr_review), sum(|w| w.qa)] {
            assert!((total - 1.0).abs() < 1e-9, "{suite:?} {total}");
        }
    }
}
