//! `rb runs` and `rb show`: what the store holds, in the terminal.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use rb_server::{iso, now_ms};
use rb_store::{OutcomeClass, RunFilter, RunRow, Scope, StepRow};
use serde_json::{Value, json};

use super::report::all_steps;
use crate::cli::{RunsArgs, ShowArgs};
use crate::exit::Exit;
use crate::out::{BOLD, DIM, GREEN, Out, RED, YELLOW, counted, grouped, short};
use crate::settings::Settings;

const NAME_CHARS_MAX: usize = 28;
const TASK_CHARS_MAX: usize = 60;
/// A run that is silent for longer is not called running any more.
pub(crate) const SILENT_AFTER_MS: i64 = 5 * 60 * 1_000;

pub(crate) fn list(args: &RunsArgs, out: &mut Out) -> Result<Exit> {
    let settings = Settings::load(&args.data)?;
    let filter = RunFilter {
        agent_name: args.agent.clone(),
        fired: args.fired.clone(),
        text: args.search.clone(),
        count_max: args.count,
        ..RunFilter::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let runs = runtime.block_on(async {
        let store = settings.open().await?;
        anyhow::Ok(store.runs(&Scope::default(), &filter).await?)
    })?;
    if runs.is_empty() {
        out.note("no run fits; agents that are watched by `rb serve` appear here");
    }
    for run in &runs {
        if args.json {
            out.plain_result(&format!("{}\n", json_line(run)))?;
        } else {
            out.result(&run_line(run))?;
        }
    }
    Ok(Exit::Quiet)
}

/// For programs, under the names that the server gives.
fn json_line(run: &RunRow) -> Value {
    json!({
        "run_id": run.run.run_id,
        "org_id": run.run.org,
        "project_id": run.project,
        "agent_name": run.agent_name,
        "task": run.task,
        "model": run.model,
        "framework": run.framework,
        "parent_run_id": run.parent,
        "started_at": iso(run.started_ms),
        "last_seen_at": iso(run.seen_ms),
        "finished_at": run.finished_ms.map(iso),
        "outcome": run.outcome,
        "step_count": run.step_count,
        "peak_score": run.score_peak,
        "tokens": run.tokens.total,
        "cost_usd": run.cost_usd,
        "fires_by_monitor": run.fired,
    })
}

fn run_line(run: &RunRow) -> String {
    let fired: Vec<_> =
        run.fired.iter().map(|(monitor, steps)| format!("{monitor} {steps}")).collect();
    let fired = match fired.as_slice() {
        [] => String::new(),
        fired => format!("  {YELLOW}{}{YELLOW:#}", short(&fired.join(", "), 80)),
    };
    let began: String = iso(run.started_ms).chars().take(16).collect();
    format!(
        "{DIM}{began}{DIM:#}  {BOLD}{:<NAME_CHARS_MAX$}{BOLD:#}  {}  {:>6}  {:.2}  {}{fired}\n",
        short(&run.run.run_id, NAME_CHARS_MAX),
        outcome(run),
        grouped(run.step_count),
        run.score_peak,
        short(&run.task, TASK_CHARS_MAX),
    )
}

fn outcome(run: &RunRow) -> String {
    let is_silent = now_ms() - run.seen_ms > SILENT_AFTER_MS;
    let outcome = run.outcome.as_deref();
    let word = short(outcome.unwrap_or(if is_silent { "unfinished" } else { "running" }), 12);
    match OutcomeClass::of(outcome) {
        OutcomeClass::Success => format!("{GREEN}{word:<12}{GREEN:#}"),
        OutcomeClass::Failure => format!("{RED}{word:<12}{RED:#}"),
        OutcomeClass::Other | OutcomeClass::Unfinished => format!("{word:<12}"),
    }
}

pub(crate) fn show(args: &ShowArgs, out: &mut Out) -> Result<Exit> {
    let settings = Settings::load(&args.data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (run, steps) = runtime.block_on(async {
        let store = settings.open().await?;
        let Some(run) = store.run(&Scope::default(), &args.run_id).await? else {
            bail!("there is no run `{}`; `rb runs` lists them", args.run_id);
        };
        let steps = all_steps(&*store, &run.run).await?;
        Ok((run, steps))
    })?;
    out.result(&run_line(&run))?;
    let spent = match run.tokens.total {
        0 => String::new(),
        tokens => format!(", {} tokens, ${:.4}", grouped(tokens), run.cost_usd),
    };
    out.result(&format!("{DIM}{}{spent}{DIM:#}\n\n", counted(run.step_count, "step")))?;
    for step in &steps {
        out.result(&step_lines(step))?;
    }
    Ok(Exit::Quiet)
}

fn step_lines(step: &StepRow) -> String {
    let action = short(step.action.as_deref().unwrap_or("–"), 18);
    let error = if step.is_error { format!("  {RED}error{RED:#}") } else { String::new() };
    let mut lines = format!(
        "{DIM}{:>5}{DIM:#}  {:.2}  {BOLD}{action:<18}{BOLD:#}  {}{error}\n",
        step.step_index,
        step.total_score,
        short(&step.thought, TASK_CHARS_MAX),
    );
    for seen in &step.evidence {
        let text = short(&seen.text, 160);
        let _ =
            writeln!(lines, "             {YELLOW}{}{YELLOW:#} {text}", short(&seen.monitor, 40));
    }
    for said in &step.intervention_texts {
        let _ = writeln!(lines, "             {GREEN}said{GREEN:#} {}", short(said, 160));
    }
    lines
}
