//! Importer of tau-bench and tau2-bench: conversations of an agent with a customer and a database.
//!
//! **tau-bench** writes a list of runs, `{"task_id", "trial", "reward", "info": {"task"}, "traj": […]}`, with
//! messages in OpenAI's format. **tau2-bench** writes one object, `{"info", "tasks", "simulations": [{"id",
//! "task_id", "messages", "reward_info", "agent_cost", …}]}`; its customers also have tools, which are skipped.
//!
//! **Outcome.** A reward of 1 is a success, anything less a failure.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::labels::labels;
use super::lazy_json::Json;
use super::messages;
use super::sniff::FilePreview;
use super::step_builder::StepBuilder;
use super::time::time_ms;
use super::{Imported, Importer, Unit};
use crate::model::Run;

pub(super) const TAU: Importer = Importer {
    id: "tau-bench",
    summary: "tau-bench results.",
    unit: Unit::Document,
    sniff: |preview| preview.has(&["task_id", "traj"]),
    parse: |input| import(input, read_tau),
};

pub(super) const TAU2: Importer = Importer {
    id: "tau2-bench",
    summary: "tau2-bench results.",
    unit: Unit::Document,
    sniff: sniff_tau2,
    parse: parse_tau2,
};

fn sniff_tau2(preview: &FilePreview<'_>) -> bool {
    preview.has(&["simulations", "info"])
        || preview.has(&["simulations", "tasks"])
        || preview.has(&["info", "tasks", "timestamp"])
        || preview.has(&["task_id", "messages", "termination_reason"])
}

fn parse_tau2(input: &[u8]) -> Imported<'_> {
    import(input, read_tau2)
}

fn outcome(reward: Option<Json<'_>>) -> Option<Cow<'static, str>> {
    let is_success = reward.and_then(Json::number)? >= 1.0 - 1e-6;
    Some(if is_success { "success" } else { "failure" }.into())
}

/// Returns the task name with the number of the trial.
fn run_id<'a>(task_id: Option<Json<'a>>, trial: Option<Json<'a>>) -> Option<Cow<'a, str>> {
    let task = task_id.and_then(Json::name)?;
    match trial.and_then(Json::name) {
        Some(trial) => Some(Cow::Owned(format!("{task}-{trial}"))),
        None => Some(task),
    }
}

fn conversation(messages: Option<Json<'_>>) -> StepBuilder<'_> {
    let mut builder = StepBuilder::default();
    let mut events = Vec::new();
    for message in messages.into_iter().flat_map(Json::items) {
        let [role, requestor, several] = message.fields(["role", "requestor", "tool_messages"]);
        if role.is_some_and(|role| role.is("tool")) && requestor.is_some_and(|who| who.is("user")) {
            continue;
        }
        match several {
            Some(several) => several.items().for_each(|one| messages::message(one, &mut events)),
            None => messages::message(message, &mut events),
        }
        builder.take_all(events.drain(..));
    }
    builder
}

fn read_tau(context: &mut ImportContext<'_>) {
    for record in context.records() {
        let [task_id, trial, reward, info, traj] =
            record.fields(["task_id", "trial", "reward", "info", "traj"]);
        let task = info.and_then(|info| info.at(&["task", "instruction"]));
        let run = Run {
            run_id: run_id(task_id, trial),
            dataset: Some("tau-bench".into()),
            task: task.and_then(Json::some_text),
            outcome: outcome(reward),
            labels: labels(&[("task_id", task_id), ("trial", trial), ("reward", reward)]),
            ..Run::default()
        };
        context.runs.push(conversation(traj).into_run(run));
    }
}

fn read_tau2(context: &mut ImportContext<'_>) {
    for document in context.records() {
        let [info, simulations] = document.fields(["info", "simulations"]);
        let about = |path: &[&str]| info.and_then(|info| info.at(path)).and_then(Json::some_text);
        let domain = about(&["environment_info", "domain_name"]);
        let dataset =
            domain.map_or("tau2-bench".into(), |domain| Cow::Owned(format!("tau2-bench {domain}")));
        let alone =
            Some(document).filter(|it| simulations.is_none() && it.get("messages").is_some());
        for simulation in simulations.into_iter().flat_map(Json::items).chain(alone) {
            let [id, task_id, trial, messages, reward, reason, cost, started, ended] = simulation
                .fields([
                    "id",
                    "task_id",
                    "trial",
                    "messages",
                    "reward_info",
                    "termination_reason",
                    "agent_cost",
                    "start_time",
                    "end_time",
                ]);
            let reward = reward.and_then(|info| info.get("reward"));
            let run = Run {
                run_id: run_id(task_id, trial),
                session_id: id.and_then(Json::name),
                dataset: Some(dataset.clone()),
                agent: about(&["agent_info", "implementation"]),
                model: about(&["agent_info", "llm"]),
                outcome: outcome(reward),
                cost_usd: cost.and_then(Json::number),
                started_ms: started.and_then(time_ms),
                ended_ms: ended.and_then(time_ms),
                labels: labels(&[
                    ("task_id", task_id),
                    ("trial", trial),
                    ("reward", reward),
                    ("termination_reason", reason),
                ]),
                ..Run::default()
            };
            context.runs.push(conversation(messages).into_run(run));
        }
    }
}
