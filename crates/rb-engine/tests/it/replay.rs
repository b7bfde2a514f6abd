//! A run is a fold: the same steps, results and replies give the same decisions, word for word.

use std::sync::Arc;

use proptest::prelude::*;
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::guidance::{Pattern, PatternBody, Retrieved, TierResult};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::policy::routing::Routing;
use rb_engine::policy::token_budget::{TokenBudget, Usage};
use rb_engine::run::record::{Reply, StepRecord};
use rb_engine::run::{Plan, Run};

use crate::traces::{Owned, step};

/// Input of one model call.
#[derive(Debug, Clone)]
struct Event {
    steps: Vec<Owned>,
    found: Retrieved,
    tokens: u64,
    /// The model replied; otherwise the call failed and was not recorded.
    answered: bool,
}

fn lookup(body: PatternBody) -> impl Strategy<Value = TierResult> {
    let pattern = Pattern { id: "p1".to_owned(), body };
    prop::sample::select(vec![
        TierResult::NotAsked,
        TierResult::Failed,
        TierResult::Answered(vec![]),
        TierResult::Answered(vec![pattern]),
    ])
}

fn event() -> impl Strategy<Value = Event> {
    let text = |s: &str| s.to_owned();
    let e1 = PatternBody::E1 {
        situation: text("s"),
        observation: text("o"),
        recommended_action: text("a"),
    };
    let e2 = PatternBody::E2 {
        trajectory: text("t"),
        diagnosis: text("d"),
        intervention: text("i"),
        anti_pattern: text("p"),
    };
    let e3 =
        PatternBody::E3 { instruction: text("Cite. Never guess."), meta_reasoning_prompt: None };
    (
        prop::collection::vec(step(), 0..3),
        lookup(e1),
        lookup(e2),
        lookup(e3),
        0..3_000_u64,
        prop::bool::weighted(0.9),
    )
        .prop_map(|(steps, e1, e2, e3, tokens, answered)| Event {
            steps,
            found: Retrieved { e1, e2, e3 },
            tokens,
            answered,
        })
}

fn rules() -> Arc<Engine> {
    let config = EngineConfig {
        routing: Routing::from_names([("SLOW", "claude-opus"), ("FAST", "claude-haiku")])
            .expect("good routes"),
        budget: Some(TokenBudget::enforced(20_000)),
        policy: Policy { standing_rules: true, ..Policy::of_suite(SuiteChoice::Both) },
        ..EngineConfig::default()
    };
    Arc::new(config.check().expect("good rules"))
}

fn walk(events: &[Event]) -> (Vec<Plan>, Vec<StepRecord>, String) {
    let mut run = Run::new(rules(), "keep the cache warm");
    let (mut plans, mut records) = (Vec::new(), Vec::new());
    for event in events {
        let steps: Vec<_> = event.steps.iter().map(Owned::step).collect();
        let ask = run.before_model(&steps);
        let plan = run.plan(ask, event.found.clone(), "claude-sonnet");
        plans.push(plan.clone());
        if event.answered {
            let usage = Usage::new(event.tokens, 1);
            records.push(run.record(plan, Reply { usage, ..Reply::default() }));
        }
    }
    let summary = format!("{:?}", run.finish());
    (plans, records, summary)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn replay_gives_the_same_decisions(events in prop::collection::vec(event(), 0..40)) {
        prop_assert_eq!(walk(&events), walk(&events));
    }

    /// The limits hold for any input.
    #[test]
    fn guardrails_hold(events in prop::collection::vec(event(), 0..60)) {
        let (_, records, _) = walk(&events);
        let shown = |source: &str| records.iter().flat_map(|r| &r.injection_sources).filter(|s| s.name() == source).count();
        prop_assert!(shown("monitor") <= 5);
        prop_assert!(shown("e1") <= 1 && shown("e2") <= 2 && shown("e3") <= 32 && shown("budget") <= 1);
        let advices: Vec<_> = records.iter().filter(|r| r.injection_sources.iter().any(|s| s.name() == "monitor")).collect();
        for pair in advices.windows(2) {
            prop_assert!(pair[1].step - pair[0].step >= 2);
            prop_assert_ne!(&pair[0].intervention_texts[0], &pair[1].intervention_texts[0]);
        }
        if let Some(first) = records.first() {
            prop_assert!(first.injection_sources.iter().all(|source| source.name() == "e3"));
        }
    }
}
