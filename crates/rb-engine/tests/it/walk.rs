//! The stages of a run, as a readable log.

use std::fmt::Write as _;
use std::sync::Arc;

use rb_engine::config::EngineConfig;
use rb_engine::guidance::{Pattern, PatternBody, Retrieved, Tier, TierResult};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::policy::fsm::State;
use rb_engine::policy::routing::Routing;
use rb_engine::policy::token_budget::{TokenBudget, Usage};
use rb_engine::run::record::{Reply, StepRecord};
use rb_engine::run::{PreCall, Run, Stop};
use rb_engine::step::{Input, Step};

fn run(config: EngineConfig) -> Run {
    Run::new(Arc::new(config.check().expect("good rules")), "")
}

/// Heuristic suite only, so that changes of other monitors do not affect these logs.
fn heuristic() -> EngineConfig {
    let policy = Policy { standing_rules: true, ..Policy::only(SuiteChoice::Heuristic) };
    EngineConfig::with_policy(policy)
}

fn text(s: &str) -> String {
    s.to_owned()
}

/// Returns one pattern for each requested tier.
fn found(ask: &PreCall) -> Retrieved {
    let answer = |tier| {
        let body = match tier {
            Tier::E1 => PatternBody::E1 {
                situation: text("a flaky cache"),
                observation: text("retrying"),
                recommended_action: text("pin the clock"),
            },
            Tier::E2 => PatternBody::E2 {
                trajectory: text("same call again"),
                diagnosis: text("no new information"),
                intervention: text("change the question"),
                anti_pattern: text("asking again"),
            },
            Tier::E3 => PatternBody::E3 {
                instruction: text("Whenever you edit, run the tests."),
                meta_reasoning_prompt: None,
            },
        };
        if ask.queries.iter().any(|query| query.tier == tier) {
            TierResult::Answered(vec![Pattern { id: format!("{}-1", tier.name()), body }])
        } else {
            TierResult::NotAsked
        }
    };
    Retrieved { e1: answer(Tier::E1), e2: answer(Tier::E2), e3: answer(Tier::E3) }
}

/// Runs all stages of one model call.
fn call(run: &mut Run, steps: &[Step<'_>], found: impl Fn(&PreCall) -> Retrieved) -> StepRecord {
    let ask = run.before_model(steps);
    let found = found(&ask);
    let plan = run.plan(ask, found, "claude-sonnet-4");
    run.record(plan, Reply { usage: Usage::new(100, 10), ..Reply::default() })
}

fn line(record: &StepRecord) -> String {
    let sources: Vec<&str> = record.injection_sources.iter().map(|source| source.name()).collect();
    let difficulty =
        record.difficulty.map_or_else(|| text("-"), |difficulty| format!("{difficulty:.2}"));
    format!(
        "{} {} {difficulty} fired={:?} shown={sources:?}",
        record.step, record.fsm_state, record.monitors_fired
    )
}

const READ: Step<'static> = Step {
    user_input: "",
    thought: "Reading the file again.",
    action: Some(rb_engine::step::Action { tool: "read_file", input: Input::Text("a.py") }),
    observation: "def f(): pass",
    is_error: false,
};

#[test]
fn a_looping_run_is_steered() {
    let mut run = run(heuristic());
    let mut log = String::new();
    let _ = writeln!(log, "{}", line(&call(&mut run, &[], found)));
    for _ in 0..9 {
        let _ = writeln!(log, "{}", line(&call(&mut run, &[READ], found)));
    }
    let _ = writeln!(log, "{:?}", run.finish());
    insta::assert_snapshot!(log);
}

#[test]
fn the_fragment_of_a_steered_call() {
    let mut run = run(heuristic());
    for steps in [&[][..], &[READ], &[READ]] {
        call(&mut run, steps, |_| Retrieved::NONE);
    }
    let ask = run.before_model(&[READ]);
    let found = found(&ask);
    let plan = run.plan(ask, found, "claude-sonnet-4");
    insta::assert_snapshot!(plan.fragment.expect("steering").as_str());
}

#[test]
fn the_first_call_asks_for_standing_rules_only() {
    let mut run = run(heuristic());
    // Also for a run that is joined in the middle of a loop.
    let ask = run.before_model(&[READ; 6]);
    assert_eq!(ask.queries.iter().map(|query| query.tier).collect::<Vec<_>>(), [Tier::E3]);
    assert_eq!((ask.queries[0].context.as_str(), ask.queries[0].top_k), ("", 32));
    let plan = run.plan(ask, Retrieved::NONE, "");
    assert_eq!(plan.fragment, None);
}

#[test]
fn only_answered_queries_use_up_the_allowance() {
    let failed = |_: &PreCall| Retrieved {
        e1: TierResult::Failed,
        e2: TierResult::Failed,
        e3: TierResult::Failed,
    };
    // Difficult enough to stay out of FAST, where nothing is retrieved.
    let hard =
        Step { thought: "Maybe the error is a bug, perhaps a broken lock in `cache.py`.", ..READ };
    let tiers = |run: &mut Run, found: &dyn Fn(&PreCall) -> Retrieved| -> Vec<&'static str> {
        let ask = run.before_model(&[hard]);
        let tiers = ask.queries.iter().map(|query| query.tier.name()).collect();
        let found = found(&ask);
        let plan = run.plan(ask, found, "");
        let _ = run.record(plan, Reply::default());
        tiers
    };
    let mut run = run(heuristic());
    call(&mut run, &[hard; 3], failed);
    assert_eq!(tiers(&mut run, &failed), ["e3", "e1", "e2"]);
    assert_eq!(tiers(&mut run, &failed), ["e3", "e1", "e2"]);
    let nothing_for_e1 =
        |ask: &PreCall| Retrieved { e1: TierResult::Answered(vec![]), ..failed(ask) };
    assert_eq!(tiers(&mut run, &nothing_for_e1), ["e3", "e1", "e2"]);
    assert_eq!(tiers(&mut run, &found), ["e3", "e2"]);
    assert_eq!(tiers(&mut run, &found), [""; 0]);
}

#[test]
fn e2_waits_for_a_failure_and_names_it() {
    let mut run = run(heuristic());
    call(&mut run, &[], found);
    let quiet = run.before_model(&[READ]);
    assert_eq!(quiet.queries, []);
    let plan = run.plan(quiet, Retrieved::NONE, "");
    let _ = run.record(plan, Reply::default());
    let ask = run.before_model(&[READ, READ]);
    let e2 = ask.queries.iter().find(|query| query.tier == Tier::E2).expect("a failure to look up");
    assert_eq!((e2.failure_type, e2.top_k), (Some("action_loop"), 2));
    let e1 = ask.queries.iter().find(|query| query.tier == Tier::E1).expect("an open gate");
    assert_eq!((e1.failure_type, e1.context.lines().count(), e1.top_k), (None, 3, 1));
}

#[test]
fn a_failed_call_uses_nothing_up() {
    let mut run = run(heuristic());
    call(&mut run, &[], |_| Retrieved::NONE);
    let first = run.before_model(&[READ; 3]);
    let lost = run.plan(first, Retrieved::NONE, "");
    let again = run.before_model(&[]);
    let again = run.plan(again, Retrieved::NONE, "");
    assert!(lost.fragment.is_some());
    assert_eq!(lost, again);
}

#[test]
fn fast_skips_retrieval_but_not_monitors() {
    let mut run = run(heuristic());
    call(&mut run, &[], |_| Retrieved::NONE);
    let easy = Step { thought: "ok", ..READ };
    let mut last = None;
    for _ in 0..7 {
        last = Some(call(&mut run, &[easy], |ask| {
            assert!(ask.state != State::Fast || ask.queries.is_empty());
            Retrieved::NONE
        }));
    }
    let last = last.expect("a call");
    assert_eq!(
        (last.fsm_state, last.skipped_reason),
        (State::Fast, Some("FSM=FAST, e-traces skipped"))
    );
    assert_eq!(last.monitors_fired, ["streak"]);
}

#[test]
fn without_monitors_e1_is_always_allowed() {
    let mut run = run(EngineConfig::with_policy(Policy::only(SuiteChoice::Neither)));
    call(&mut run, &[], found);
    let ask = run.before_model(&[READ]);
    assert_eq!(
        ask.queries.iter().map(|query| query.tier).collect::<Vec<_>>(),
        [Tier::E1, Tier::E2]
    );
    assert_eq!(ask.queries[0].context, READ.thought);
}

#[test]
fn a_step_without_a_thought_is_monitored_but_not_scored() {
    let mut run = run(heuristic());
    call(&mut run, &[], |_| Retrieved::NONE);
    let silent = Step { thought: " \n", ..READ };
    let record = call(&mut run, &[silent, silent, silent], |_| Retrieved::NONE);
    assert_eq!((record.difficulty, record.fsm_state), (None, State::Init));
    assert_eq!(record.monitors_fired, ["streak"]);
}

#[test]
fn a_state_may_choose_the_model_and_with_it_the_wording() {
    let routing = Routing::from_names([("NORMAL", "claude-opus-4")]).expect("good routes");
    let mut run = run(EngineConfig { routing, ..heuristic() });
    call(&mut run, &[], |_| Retrieved::NONE);
    call(&mut run, &[READ], |_| Retrieved::NONE);
    let ask = run.before_model(&[READ, READ]);
    let answers = found(&ask);
    let plan = run.plan(ask, answers, "claude-sonnet-4");
    assert_eq!(plan.route.as_deref(), Some("claude-opus-4"));
    assert!(
        plan.fragment
            .as_ref()
            .is_some_and(|fragment| fragment.as_str().contains("KNOWN-GOOD APPROACH"))
    );
    assert_eq!(run.record(plan, Reply::default()).model_id, "claude-opus-4");
}

#[test]
fn a_budget_first_asks_to_wrap_up_and_then_stops() {
    let mut run = run(EngineConfig { budget: Some(TokenBudget::enforced(500)), ..heuristic() });
    let mut log = String::new();
    for _ in 0..7 {
        let ask = run.before_model(&[Step::thought("Going on.")]);
        let plan = run.plan(ask, Retrieved::NONE, "");
        let said = plan.fragment.as_ref().map_or("", |fragment| fragment.as_str());
        let _ = writeln!(
            log,
            "{} tokens, {:?}: {}",
            run.tokens(),
            plan.stop,
            said.replace('\n', " / ")
        );
        run.record(plan, Reply { usage: Usage::new(90, 10), ..Reply::default() });
    }
    assert_eq!(run.budget_used(), Some(1.0));
    insta::assert_snapshot!(log);
    let stopped = run.before_model(&[]);
    assert_eq!(
        run.plan(stopped, Retrieved::NONE, "").stop,
        Some(Stop::TokenBudget { used: 700, limit: 500 })
    );
}

#[test]
fn end_is_reached_and_never_left() {
    let mut run = run(heuristic());
    call(&mut run, &[], |_| Retrieved::NONE);
    call(&mut run, &[READ; 4], |_| Retrieved::NONE);
    assert_eq!(run.finish().state, State::End);
    let late = call(&mut run, &[READ; 5], |ask| {
        assert_eq!(ask.queries, []);
        Retrieved::NONE
    });
    assert_eq!((late.fsm_state, late.injections.len()), (State::End, 0));
    assert_eq!(run.finish(), run.finish());
}

#[test]
fn decide_equals_before_model_and_plan_without_patterns() {
    let mut apart = run(EngineConfig::default());
    let mut at_once = run(EngineConfig::default());
    let stuck = Step::thought("Hmm, maybe the cache is wrong. Not sure, the error is the same.")
        .with_action("grep", Input::Text("expires_at"))
        .with_observation("error: no such file");
    for call in 0..12 {
        let steps = if call == 0 { Vec::new() } else { vec![stuck] };
        let ask = apart.before_model(&steps);
        let plan = apart.plan(ask, Retrieved::NONE, "claude-sonnet-4");
        let same = at_once.decide(&steps, "claude-sonnet-4");
        assert_eq!(
            (&same.fragment, &same.route, same.stop),
            (&plan.fragment, &plan.route, plan.stop)
        );
        assert!(same.pre_call().queries.is_empty(), "nobody looks anything up");
        let reply = || Reply { usage: Usage::new(100, 10), ..Reply::default() };
        assert_eq!(at_once.record(same, reply()), apart.record(plan, reply()), "call {call}");
    }
}

#[test]
fn standing_rules_are_looked_up_only_if_the_policy_enables_them() {
    for standing_rules in [false, true] {
        let policy = Policy { standing_rules, ..Policy::default() };
        let mut run = run(EngineConfig::with_policy(policy));
        let tiers: Vec<_> = run.before_model(&[]).queries.iter().map(|query| query.tier).collect();
        assert_eq!(tiers, if standing_rules { vec![Tier::E3] } else { vec![] });
    }
}

/// Same tool, different files: `streak` and `diversity` reach their thresholds, and no semantic monitor does.
#[test]
fn a_quiet_signal_is_recorded_and_changes_no_decision() {
    let mut default = run(EngineConfig::default());
    let mut both = run(EngineConfig::with_policy(Policy::of_suite(SuiteChoice::Both)));
    let (mut signals, mut interrupted) = (Vec::new(), 0);
    let thoughts = ["parser", "lexer", "printer", "resolver", "formatter", "linter", "cache"];
    for (at, file) in thoughts.into_iter().enumerate() {
        let (thought, input) = (format!("Next is the {file}."), format!("src/{file}.rs"));
        let seen = format!("pub mod {file};");
        let step = Step::thought(&thought)
            .with_action("read_file", Input::Text(&input))
            .with_observation(&seen);
        let steps = if at == 0 { vec![] } else { vec![step] };
        let pre_call = default.before_model(&steps);
        assert_eq!(pre_call.queries, [], "{file}");
        signals.extend(pre_call.assessment.signals().map(|reading| reading.monitor.id));
        assert_eq!(pre_call.assessment.fired().count(), 0, "{file}");
        let plan = default.plan(pre_call, Retrieved::NONE, "");
        assert_eq!(plan.fragment, None, "{file}");
        assert_eq!(default.record(plan, Reply::default()).monitors_fired.len(), 0);
        let plan = both.decide(&steps, "");
        interrupted += usize::from(plan.fragment.is_some());
        both.record(plan, Reply::default());
    }
    assert!(signals.contains(&"streak"), "{signals:?}");
    assert!(interrupted > 0, "a suite that is asked for advises");
}
