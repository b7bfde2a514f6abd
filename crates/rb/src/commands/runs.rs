//! `rb runs` and `rb show`: stored runs in the terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use clap::Args;
use rb_engine::monitors::{ALL, find};
use rb_runtime::clock::{format_rfc3339, now_ms};
use rb_store::{OutcomeClass, RunFilter, RunKey, RunRow, Scope, StepRow, Store, run_status};
use serde_json::{Value, json};

use crate::engine_args::{headlines_and_signals, is_quiet_signal};
use crate::exit::Exit;
use crate::settings::{DataArgs, Settings};
use crate::ui::{BOLD, DIM, GREEN, Out, RED, YELLOW, counted, fitted, grouped, short};

const ID_COLUMNS: usize = 28;
const STATUS_COLUMNS: usize = 12;
const MAX_TASK_CHARS: usize = 60;
/// Maximum number of runs that an ambiguous prefix is compared with.
const MAX_PREFIX_MATCHES: u32 = 100;
/// Steps per query.
const STEPS_PAGE_SIZE: u32 = 1_000;

/// Lists stored runs, newest first, one per line.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Only runs of this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only runs in which this monitor fired.
    #[arg(long, value_name = "MONITOR")]
    fired: Option<String>,

    /// Only runs with this text in their id, task or agent.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,

    /// Maximum number of runs to list.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    count: u32,

    /// Write one JSON object per run and line.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    data: DataArgs,
}

/// Shows a stored run in the terminal: one line per step, with alarms and guidance.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Id of the run, or the beginning of it; `rb runs` lists them.
    #[arg(value_name = "RUN")]
    run_id: String,

    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn list(args: &RunsArgs, out: &mut Out) -> Result<Exit> {
    if let Some(monitor) = args.fired.as_deref().filter(|monitor| find(monitor).is_none()) {
        bail!("no such monitor: {monitor}; use one of {}", ALL.map(|spec| spec.id).join(", "));
    }
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
        out.note("no matching run; runs of agents that `rb serve` watches appear here");
    } else if !args.json {
        out.result(&header())?;
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

/// Formats a run with the field names of the API.
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
        "started_at": format_rfc3339(run.started_ms),
        "last_seen_at": format_rfc3339(run.seen_ms),
        "finished_at": run.finished_ms.map(format_rfc3339),
        "outcome": run.outcome,
        "step_count": run.step_count,
        "peak_score": run.score_peak,
        "tokens": run.tokens.total,
        "cost_usd": run.cost_usd,
        "fires_by_monitor": run.fired,
        "signals_by_monitor": signals(run),
    })
}

/// Steps on which each quiet monitor reached its threshold.
fn signals(run: &RunRow) -> BTreeMap<&str, u64> {
    let signals = run.high_scores.iter().filter(|(monitor, _)| is_quiet_signal(monitor));
    signals.map(|(monitor, steps)| (monitor.as_str(), *steps)).collect()
}

fn header() -> String {
    format!(
        "{DIM}{:<16}  {:<ID_COLUMNS$}  {:<STATUS_COLUMNS$}  {:>6}  peak  task{DIM:#}\n",
        "started (UTC)", "run", "status", "steps"
    )
}

fn run_line(run: &RunRow) -> String {
    let (headlines, signals) = headlines_and_signals(&run.fired, &run.high_scores);
    let mut fired = String::new();
    for (style, texts) in [(YELLOW, headlines), (DIM, signals)] {
        if !texts.is_empty() {
            let _ = write!(fired, "  {style}{}{style:#}", short(&texts.join(", "), 80));
        }
    }
    let started: String = format_rfc3339(run.started_ms).chars().take(16).collect();
    format!(
        "{DIM}{started}{DIM:#}  {BOLD}{}{BOLD:#}  {}  {:>6}  {:.2}  {}{fired}\n",
        fitted(&run.run.run_id, ID_COLUMNS),
        status(run),
        grouped(run.step_count),
        run.score_peak,
        short(&run.task, MAX_TASK_CHARS),
    )
}

fn status(run: &RunRow) -> String {
    let outcome = run.outcome.as_deref();
    let word = fitted(run_status(outcome, run.seen_ms, now_ms()), STATUS_COLUMNS);
    match OutcomeClass::of(outcome) {
        OutcomeClass::Success => format!("{GREEN}{word}{GREEN:#}"),
        OutcomeClass::Failure => format!("{RED}{word}{RED:#}"),
        OutcomeClass::Other | OutcomeClass::Unfinished => word,
    }
}

pub(crate) fn show(args: &ShowArgs, out: &mut Out) -> Result<Exit> {
    let settings = Settings::load(&args.data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (run, steps) = runtime.block_on(async {
        let store = settings.open().await?;
        let Some(run) = find_run(&*store, &args.run_id).await? else {
            bail!("no such run: {}; `rb runs` lists them", args.run_id);
        };
        let steps = all_steps(&*store, &run.run).await?;
        Ok((run, steps))
    })?;
    out.result(&format!("{}{}", header(), run_line(&run)))?;
    let spent = match run.tokens.total {
        0 => String::new(),
        tokens => format!(", {} tokens, ${:.4}", grouped(tokens), run.cost_usd),
    };
    out.result(&format!("{DIM}{}{spent}{DIM:#}\n\n", counted(run.step_count, "step")))?;
    let width = Out::width();
    for step in &steps {
        out.result(&step_lines(step, width))?;
    }
    Ok(Exit::Quiet)
}

/// Finds a run by its id or by a prefix that only one run has.
pub(super) async fn find_run(store: &dyn Store, wanted: &str) -> Result<Option<RunRow>> {
    if let Some(run) = store.run(&Scope::default(), wanted).await? {
        return Ok(Some(run));
    }
    let prefix = wanted.trim_end_matches('…');
    let filter = RunFilter {
        text: Some(prefix.to_owned()),
        count_max: MAX_PREFIX_MATCHES,
        ..RunFilter::default()
    };
    let mut runs = store.runs(&Scope::default(), &filter).await?;
    runs.retain(|run| run.run.run_id.starts_with(prefix));
    if runs.len() > 1 {
        let (count, first, second) = (runs.len(), &runs[0].run.run_id, &runs[1].run.run_id);
        bail!(
            "{count} runs begin with {wanted}, such as {first} and {second}; use a longer prefix"
        );
    }
    Ok(runs.pop())
}

pub(super) async fn all_steps(store: &dyn Store, run: &RunKey) -> Result<Vec<StepRow>> {
    let mut steps: Vec<StepRow> = Vec::new();
    loop {
        let from = steps.last().map_or(0, |step| step.step_index.saturating_add(1));
        let page = store.steps(run, from, STEPS_PAGE_SIZE).await?;
        let is_last = page.len() < STEPS_PAGE_SIZE as usize;
        steps.extend(page);
        if is_last {
            return Ok(steps);
        }
    }
}

fn step_lines(step: &StepRow, width: usize) -> String {
    let action = fitted(step.action.as_deref().unwrap_or("–"), 18);
    let error = if step.is_error { format!("  {RED}error{RED:#}") } else { String::new() };
    let mut lines = format!(
        "{DIM}{:>5}{DIM:#}  {:.2}  {BOLD}{action}{BOLD:#}  {}{error}\n",
        step.step_index,
        step.total_score,
        short(&step.thought, width.saturating_sub(40)),
    );
    let room = width.saturating_sub(34);
    for evidence in &step.evidence {
        let (monitor, text) = (short(&evidence.monitor, 20), short(&evidence.text, room));
        let style = if is_quiet_signal(&evidence.monitor) { DIM } else { YELLOW };
        let _ = writeln!(lines, "             {style}{monitor}{style:#} {text}");
    }
    for text in &step.intervention_texts {
        let _ = writeln!(lines, "             {GREEN}guidance{GREEN:#} {}", short(text, room));
    }
    lines
}
