//! Summary on standard error after the child has exited: steps, alarms, guidance, tokens, cost and where to look.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rb_engine::policy::Policy;
use rb_store::{RunRow, StepRow};

use crate::api::{Metadata, RunDetail, RunStep, RunSummary};
use crate::engine_args::headlines_and_signals;
use crate::ui::{BOLD, DIM, YELLOW, counted, escape_control, grouped, short};

const MAX_GUIDANCE_CHARS: usize = 160;
/// Maximum number of guidance texts shown per run.
const MAX_GUIDANCE: usize = 5;
const MAX_RUNS: usize = 10;

pub(super) fn from_rows(run: RunRow, steps: Vec<StepRow>) -> RunDetail {
    let mode = run.metadata.get("mode").and_then(|mode| mode.as_str());
    let metadata = Metadata { mode: mode.unwrap_or_default().to_owned() };
    let (run_id, model) = (run.run.run_id, run.model);
    let policy = Policy::default();
    let signals = |step: &StepRow| -> Vec<String> {
        let signals = policy.signals(|monitor| step.scores.get(monitor).copied());
        signals.map(str::to_owned).collect()
    };
    let steps = steps.into_iter().map(|step| RunStep {
        signals: signals(&step),
        index: step.step_index.into(),
        tokens: step.tokens.total,
        cache_read_tokens: step.tokens.cache_read,
        cost_usd: step.cost_usd,
        fired: step.fired,
        injections: step.injections,
        intervention_texts: step.intervention_texts,
        ..RunStep::default()
    });
    let summary = RunSummary { run_id, model, metadata, ..RunSummary::default() };
    RunDetail { summary, steps: steps.collect() }
}

/// Returns tokens and cost of the steps; the run's own totals include earlier calls of a resumed session.
fn totals<'a>(steps: impl IntoIterator<Item = &'a RunStep>) -> (u64, f64) {
    let steps = steps.into_iter();
    steps.fold((0, 0.0), |(tokens, usd), step| (tokens + step.tokens, usd + step.cost_usd))
}

/// Returns the guidance by step: patterns by name, advice in full.
fn guidance(run: &RunDetail) -> Vec<(u64, &str)> {
    let mut all = Vec::new();
    for step in &run.steps {
        let is_pattern = |name: &&String| name.starts_with("[e1:") || name.starts_with("[e2:");
        let patterns = step.injections.iter().filter(is_pattern);
        let texts = patterns.chain(&step.intervention_texts);
        all.extend(texts.map(|text| (step.index, text.as_str())));
    }
    all
}

/// Returns the number of standing rules that were injected.
fn rules(run: &RunDetail) -> u64 {
    let injections = run.steps.iter().flat_map(|step| &step.injections);
    injections.filter(|name| name.starts_with("[e3:")).count() as u64
}

/// Commands and addresses that show a run later.
pub(super) struct Links<'a> {
    /// Base URL of the dashboard.
    pub(super) dashboard: &'a str,
    /// `rb show` with the options of the data directory; `None` if the data is on another server.
    pub(super) show: Option<&'a str>,
}

pub(super) fn summary(runs: &[RunDetail], links: &Links<'_>) -> String {
    let mut text = format!("\n{BOLD}ReasonBlocks{BOLD:#}  ");
    if runs.is_empty() {
        text.push_str("no call passed through the gateway\n");
        return text;
    }
    let steps = runs.iter().flat_map(|run| &run.steps);
    let (tokens, usd) = totals(steps.clone());
    let cached: u64 = steps.clone().map(|step| step.cache_read_tokens).sum();
    let _ = writeln!(
        text,
        "{}, {}, {} ({} from the cache), ${:.4}",
        counted(runs.len(), "run"),
        counted(steps.count(), "step"),
        counted(tokens, "token"),
        grouped(cached),
        usd,
    );
    for run in runs.iter().take(MAX_RUNS) {
        text.push_str(&lines(run, links));
    }
    if runs.len() > MAX_RUNS {
        let _ = writeln!(text, "  and {}", counted(runs.len() - MAX_RUNS, "more run"));
    }
    if links.show.is_some() {
        let _ =
            writeln!(text, "  {DIM}the pages need `rb serve` on the same data directory{DIM:#}");
    }
    text
}

fn lines(run: &RunDetail, links: &Links<'_>) -> String {
    let (tokens, usd) = totals(&run.steps);
    let summary = &run.summary;
    let mut text = format!(
        "  {BOLD}{}{BOLD:#}  {}  {}, {}, ${usd:.4}\n",
        short(&summary.run_id, 80),
        short(&summary.model, 40),
        counted(run.steps.len(), "step"),
        counted(tokens, "token"),
    );
    let (mut fired, mut signals) = (BTreeMap::new(), BTreeMap::new());
    for step in &run.steps {
        for (counts, monitors) in [(&mut fired, &step.fired), (&mut signals, &step.signals)] {
            for monitor in monitors {
                *counts.entry(monitor.clone()).or_default() += 1;
            }
        }
    }
    let (headlines, signals) = headlines_and_signals(&fired, &signals);
    if headlines.is_empty() {
        text.push_str("    no alarm\n");
    } else {
        let _ = writeln!(text, "    fired  {}", escape_control(&headlines.join(", ")));
    }
    if !signals.is_empty() {
        let _ = writeln!(text, "    {DIM}signals  {}{DIM:#}", escape_control(&signals.join(", ")));
    }
    let word = if summary.metadata.mode == "observe" { "would have sent" } else { "sent" };
    let rules = rules(run);
    if rules > 0 {
        let _ = writeln!(text, "    {word}  {}", counted(rules, "standing rule"));
    }
    let guidance = guidance(run);
    for (step, words) in guidance.iter().take(MAX_GUIDANCE) {
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = short(&words, MAX_GUIDANCE_CHARS);
        let _ = writeln!(text, "    {YELLOW}{word}{YELLOW:#}  step {step}: {words}");
    }
    if guidance.len() > MAX_GUIDANCE {
        let more = counted(guidance.len() - MAX_GUIDANCE, "more time");
        let _ = writeln!(text, "    and {more}");
    }
    if let Some(show) = links.show {
        let _ = writeln!(text, "    {DIM}{show} {}{DIM:#}", escape_control(&summary.run_id));
    }
    let id = utf8_percent_encode(&summary.run_id, NON_ALPHANUMERIC);
    let _ = writeln!(text, "    {DIM}{}/ui/run?id={id}{DIM:#}", escape_control(links.dashboard));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(mode: &str) -> RunDetail {
        let run = json!({
            "run_id": "r/1", "model": "m", "metadata": { "mode": mode }, "steps": [
                { "step_index": 0, "tokens": 1200, "cost_usd": 0.5 },
                { "step_index": 1, "tokens": 300, "cache_read_tokens": 200, "cost_usd": 0.25,
                  "fired": ["semantic_loop"], "signals": ["streak"], "injections": ["[e3:rule]", "[e2:pattern]", "Look"],
                  "intervention_texts": ["Look\nelsewhere.\u{1b}[31m"] },
            ],
        });
        serde_json::from_value(run).expect("a run")
    }

    fn plain(runs: &[RunDetail], show: Option<&str>) -> String {
        let links = Links { dashboard: "http://host", show };
        anstream::adapter::strip_str(&summary(runs, &links)).to_string()
    }

    #[test]
    fn a_summary_contains_totals_alarms_guidance_and_links() {
        assert_eq!(
            plain(&[run("steer")], Some("rb show")),
            "\nReasonBlocks  1 run, 2 steps, 1,500 tokens (200 from the cache), $0.7500\n  \
             r/1  m  2 steps, 1,500 tokens, $0.7500\n    \
             fired  semantic_loop ×1\n    \
             signals  streak ×1\n    \
             sent  1 standing rule\n    \
             sent  step 1: [e2:pattern]\n    \
             sent  step 1: Look elsewhere.\\u{1b}[31m\n    \
             rb show r/1\n    \
             http://host/ui/run?id=r%2F1\n  \
             the pages need `rb serve` on the same data directory\n"
        );
    }

    #[test]
    fn an_observed_run_received_nothing() {
        assert!(plain(&[run("observe")], None).contains("would have sent"));
        assert!(plain(&[], None).contains("no call passed through"));
    }

    #[test]
    fn many_runs_are_counted_but_not_all_shown() {
        let text = plain(&vec![run("steer"); 12], None);
        assert!(text.contains("12 runs, 24 steps") && text.contains("and 2 more runs"), "{text}");
    }
}
