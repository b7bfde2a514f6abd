//! `rb quality`: evaluates the monitors on labelled runs.

/// Arguments.
mod args;
/// Reader of labelled runs.
mod corpus;

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use rb_engine::config::EngineConfig;
use rb_engine::policy::Policy;
use rb_quality::evaluation::{Options, evaluate};
use rb_quality::report::Report;
use rb_quality::scorer::{Progress, Scorer, StepCount, SuiteScorer};
use rb_quality::table::{Style, table};

pub(crate) use self::args::QualityArgs;
use self::corpus::Corpus;
use crate::engine_args::SuiteArg;
use crate::exit::Exit;
use crate::ui::{BOLD, DIM, Out, Work, counted, escape_control};

pub(crate) fn run(args: &QualityArgs, out: &mut Out) -> anyhow::Result<Exit> {
    let (corpus, lost) = corpus::read(&args.paths, out)?;
    ensure_measurable(&corpus, args, lost)?;
    let report = report(&corpus, args)?;
    let written = if args.json {
        let json = serde_json::to_string_pretty(&report).context("cannot serialise the report")?;
        out.plain_result(&(json + "\n"))
    } else {
        out.result(&table(&report, &style))
    };
    ignore_closed_pipe(written)?;
    ignore_closed_pipe(out.finish())?;
    Ok(if lost { Exit::Error } else { Exit::Quiet })
}

/// Fails with the reason if there is nothing to evaluate.
fn ensure_measurable(corpus: &Corpus, args: &QualityArgs, lost: bool) -> anyhow::Result<()> {
    let runs = &corpus.runs;
    let see = "see `rb quality --help`";
    if runs.is_empty() {
        let empty = corpus.empty_runs;
        anyhow::ensure!(empty == 0, "no run has a step ({} without any)", counted(empty, "run"));
        anyhow::ensure!(!lost, "no input could be read, so there is nothing to evaluate");
        anyhow::bail!("no run found; `rb check --help` lists the supported formats ({see})");
    }
    let count = counted(u64::try_from(runs.len()).unwrap_or(u64::MAX), "run");
    anyhow::ensure!(
        runs.iter().any(|run| run.steps.len() >= args.steps_min),
        "no run has {} steps or more ({count} read); include shorter ones with `--steps-min`",
        args.steps_min
    );
    anyhow::ensure!(
        runs.iter().any(|run| run.outcome.is_some() || !run.labelled_steps.is_empty()),
        "{count} without labels; add an `outcome` (\"success\" or \"failure\") or labelled steps ({see})"
    );
    Ok(())
}

struct Bar(Work);

impl Progress for Bar {
    fn planned(&self, steps: usize) {
        self.0.planned(steps);
    }

    fn finished(&self, steps: usize) {
        self.0.done(steps);
    }
}

/// Evaluates the requested suite, followed by its baselines.
fn report(corpus: &Corpus, args: &QualityArgs) -> anyhow::Result<Report> {
    let embedder = args.meaning.embedder()?;
    let scorer = |suite: SuiteArg| -> anyhow::Result<SuiteScorer> {
        let engine = EngineConfig::with_policy(Policy::only(suite.choice())).check()?;
        Ok(SuiteScorer::new(engine.with_embedder(Arc::clone(&embedder))))
    };
    let (requested, heuristic) = (scorer(args.suite)?, scorer(SuiteArg::Heuristic)?);
    let scorers: Vec<&dyn Scorer> = match args.suite {
        SuiteArg::Heuristic => vec![&requested, &StepCount],
        SuiteArg::Semantic | SuiteArg::Both => vec![&requested, &heuristic, &StepCount],
    };
    let options = Options { seed: args.seed, steps_min: args.steps_min, ..Options::default() };
    Ok(evaluate(&corpus.runs, &scorers, &options, &Bar(Out::work("steps scored"))))
}

/// Names of sets and tasks are untrusted.
fn style(style: Style, text: &str) -> String {
    let text = escape_control(text);
    match style {
        Style::Plain => text.into_owned(),
        Style::Title => format!("{BOLD}{text}{BOLD:#}"),
        Style::Dim => format!("{DIM}{text}{DIM:#}"),
    }
}

fn ignore_closed_pipe(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the result"),
    }
}
