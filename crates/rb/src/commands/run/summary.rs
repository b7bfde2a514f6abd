//! Summary on standard error after the child has exited: steps, alarms, guidance, tokens, cost and where to look.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rb_store::{RunRow, StepRow};
use serde::Deserialize;

use crate::engine_args::split_fired;
use crate::ui::{BOLD, DIM, YELLOW, counted, escape_control, grouped, short};

const MAX_GUIDANCE_CHARS: usize = 160;
/// Maximum number of guidance texts shown per run.
const MAX_GUIDANCE: usize = 5;
const MAX_RUNS: usize = 10;

/// A run with its steps, as the API returns it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct FinishedRun {
    run_id: String,
    model: String,
    metadata: Metadata,
    steps: Vec<FinishedStep>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    mode: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct FinishedStep {
    step_index: u64,
    tokens: u64,
    cache_read_tokens: u64,
    cost_usd: f64,
    fired: Vec<String>,
    injections: Vec<String>,
    intervention_texts: Vec<String>,
}

impl FinishedRun {
    pub(super) fn from_rows(run: RunRow, steps: Vec<StepRow>) -> Self {
        let mode = run.metadata.get("mode").and_then(|mode| mode.as_str());
        let metadata = Metadata { mode: mode.unwrap_or_default().to_owned() };
        let steps = steps.into_iter().map(|step| FinishedStep {
            step_index: step.step_index.into(),
            tokens: step.tokens.total,
            cache_read_tokens: step.tokens.cache_read,
            cost_usd: step.cost_usd,
            fired: step.fired,
            injections: step.injections,
            intervention_texts: step.intervention_texts,
        });
        Self { run_id: run.run.run_id, model: run.model, metadata, steps: steps.collect() }
    }

    fn tokens(&self) -> u64 {
        self.steps.iter().map(|step| step.tokens).sum()
    }

    fn cost_usd(&self) -> f64 {
        self.steps.iter().map(|step| step.cost_usd).sum()
    }

    /// Returns the guidance by step: patterns by name, advice in full.
    fn guidance(&self) -> Vec<(u64, &str)> {
        let mut all = Vec::new();
        for step in &self.steps {
            let is_pattern = |name: &&String| name.starts_with("[e1:") || name.starts_with("[e2:");
            let patterns = step.injections.iter().filter(is_pattern);
            let texts = patterns.chain(&step.intervention_texts);
            all.extend(texts.map(|text| (step.step_index, text.as_str())));
        }
        all
    }

    /// Returns the number of standing rules that were injected.
    fn rules(&self) -> u64 {
        let injections = self.steps.iter().flat_map(|step| &step.injections);
        injections.filter(|name| name.starts_with("[e3:")).count() as u64
    }
}

/// Commands and addresses that show a run later.
pub(super) struct Links<'a> {
    /// Base URL of the dashboard.
    pub(super) dashboard: &'a str,
    /// `rb show` with the options of the data directory; `None` if the data is on another server.
    pub(super) show: Option<&'a str>,
}

pub(super) fn summary(runs: &[FinishedRun], links: &Links<'_>) -> String {
    let mut text = format!("\n{BOLD}ReasonBlocks{BOLD:#}  ");
    if runs.is_empty() {
        text.push_str("no call passed through the gateway\n");
        return text;
    }
    let steps = runs.iter().flat_map(|run| &run.steps);
    let cached: u64 = steps.clone().map(|step| step.cache_read_tokens).sum();
    let _ = writeln!(
        text,
        "{}, {}, {} ({} from the cache), ${:.4}",
        counted(runs.len() as u64, "run"),
        counted(steps.count() as u64, "step"),
        counted(runs.iter().map(FinishedRun::tokens).sum(), "token"),
        grouped(cached),
        runs.iter().map(FinishedRun::cost_usd).sum::<f64>(),
    );
    for run in runs.iter().take(MAX_RUNS) {
        text.push_str(&lines(run, links));
    }
    if runs.len() > MAX_RUNS {
        let _ = writeln!(text, "  and {}", counted((runs.len() - MAX_RUNS) as u64, "more run"));
    }
    if links.show.is_some() {
        let _ =
            writeln!(text, "  {DIM}the pages need `rb serve` on the same data directory{DIM:#}");
    }
    text
}

fn lines(run: &FinishedRun, links: &Links<'_>) -> String {
    let mut text = format!(
        "  {BOLD}{}{BOLD:#}  {}  {}, {}, ${:.4}\n",
        short(&run.run_id, 80),
        short(&run.model, 40),
        counted(run.steps.len() as u64, "step"),
        counted(run.tokens(), "token"),
        run.cost_usd(),
    );
    let mut fired = BTreeMap::<String, u64>::new();
    for monitor in run.steps.iter().flat_map(|step| &step.fired) {
        *fired.entry(monitor.clone()).or_default() += 1;
    }
    let (headlines, signals) = split_fired(&fired);
    if headlines.is_empty() {
        text.push_str("    no alarm\n");
    } else {
        let _ = writeln!(text, "    fired  {}", escape_control(&headlines.join(", ")));
    }
    if !signals.is_empty() {
        let _ = writeln!(text, "    {DIM}signals  {}{DIM:#}", escape_control(&signals.join(", ")));
    }
    let word = if run.metadata.mode == "observe" { "would have sent" } else { "sent" };
    if run.rules() > 0 {
        let _ = writeln!(text, "    {word}  {}", counted(run.rules(), "standing rule"));
    }
    let guidance = run.guidance();
    for (step, words) in guidance.iter().take(MAX_GUIDANCE) {
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = short(&words, MAX_GUIDANCE_CHARS);
        let _ = writeln!(text, "    {YELLOW}{word}{YELLOW:#}  step {step}: {words}");
    }
    if guidance.len() > MAX_GUIDANCE {
        let more = counted((guidance.len() - MAX_GUIDANCE) as u64, "more time");
        let _ = writeln!(text, "    and {more}");
    }
    if let Some(show) = links.show {
        let _ = writeln!(text, "    {DIM}{show} {}{DIM:#}", escape_control(&run.run_id));
    }
    let id = utf8_percent_encode(&run.run_id, NON_ALPHANUMERIC);
    let _ = writeln!(text, "    {DIM}{}/ui/run?id={id}{DIM:#}", escape_control(links.dashboard));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(mode: &str) -> FinishedRun {
        let run = json!({
            "run_id": "r/1", "model": "m", "metadata": { "mode": mode }, "steps": [
                { "step_index": 0, "tokens": 1200, "cost_usd": 0.5 },
                { "step_index": 1, "tokens": 300, "cache_read_tokens": 200, "cost_usd": 0.25,
                  "fired": ["semantic_loop", "streak"], "injections": ["[e3:rule]", "[e2:pattern]", "Look"],
                  "intervention_texts": ["Look\nelsewhere.\u{1b}[31m"] },
            ],
        });
        serde_json::from_value(run).expect("a run")
    }

    fn plain(runs: &[FinishedRun], show: Option<&str>) -> String {
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
