//! What is told at the end: steps, what fired, what was said, tokens, cost, and where to look.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rb_store::{RunRow, StepRow};
use serde_json::Value;

use crate::out::{BOLD, DIM, YELLOW, counted, grouped, harmless, short};

const SAID_CHARS_MAX: usize = 160;
/// Of one run, so much is told of what was said.
const SAID_MAX: usize = 5;
const RUNS_MAX: usize = 10;

/// One run, as it is told at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Ran {
    pub(super) run_id: String,
    pub(super) model: String,
    /// Nothing was changed; what would have been said is told as such.
    pub(super) is_observed: bool,
    pub(super) steps: u64,
    pub(super) fired: BTreeMap<String, u64>,
    /// Standing rules of the library that were told.
    pub(super) rules: u64,
    /// On which step, and what.
    pub(super) said: Vec<(u64, String)>,
    pub(super) tokens: u64,
    pub(super) cache_read: u64,
    pub(super) cost_usd: f64,
}

impl Ran {
    /// A run and those of its steps that belong to this command.
    pub(super) fn of_rows(run: &RunRow, steps: &[StepRow]) -> Self {
        let mode = run.metadata.get("mode");
        let mut ran = Self::new(&run.run.run_id, &run.model, mode);
        for step in steps {
            ran.steps += 1;
            ran.tokens += step.tokens.total;
            ran.cache_read += step.tokens.cache_read;
            ran.cost_usd += step.cost_usd;
            for monitor in &step.fired {
                *ran.fired.entry(monitor.clone()).or_default() += 1;
            }
            ran.hear(step.step_index.into(), &step.injections, &step.intervention_texts);
        }
        ran
    }

    /// The same from a server's answer.
    pub(super) fn of_json(run: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut ran =
            Self::new(&text(&run["run_id"]), &text(&run["model"]), run["metadata"].get("mode"));
        for step in &list(&run["steps"]) {
            ran.steps += 1;
            ran.tokens += step["tokens"].as_u64().unwrap_or_default();
            ran.cache_read += step["cache_read_tokens"].as_u64().unwrap_or_default();
            ran.cost_usd += step["cost_usd"].as_f64().unwrap_or_default();
            for monitor in &list(&step["fired"]) {
                *ran.fired.entry(text(monitor)).or_default() += 1;
            }
            let at = step["step_index"].as_u64().unwrap_or_default();
            let texts = |name: &str| list(&step[name]).iter().map(text).collect::<Vec<String>>();
            ran.hear(at, &texts("injections"), &texts("intervention_texts"));
        }
        ran
    }

    /// Takes what was said on a step: patterns by their names, advice in full. Standing rules are only counted.
    fn hear(&mut self, step: u64, patterns: &[String], advice: &[String]) {
        self.rules += patterns.iter().filter(|name| name.starts_with("[e3:")).count() as u64;
        let found =
            patterns.iter().filter(|name| name.starts_with("[e1:") || name.starts_with("[e2:"));
        self.said.extend(found.chain(advice).map(|text| (step, text.clone())));
    }

    fn new(run_id: &str, model: &str, mode: Option<&Value>) -> Self {
        Self {
            run_id: run_id.to_owned(),
            model: model.to_owned(),
            is_observed: mode.is_some_and(|mode| mode == "observe"),
            ..Self::default()
        }
    }
}

/// Where to look at a run later.
pub(super) enum Look<'a> {
    /// A server that stays up.
    There(&'a str),
    /// In the data folder, once a server is started on it.
    Later,
}

/// The whole summary.
pub(super) fn summary(runs: &[Ran], look: &Look<'_>) -> String {
    let mut text = format!("\n{BOLD}ReasonBlocks{BOLD:#}  ");
    if runs.is_empty() {
        text.push_str("no call came through the gateway\n");
        return text;
    }
    let tokens: u64 = runs.iter().map(|run| run.tokens).sum();
    let cached: u64 = runs.iter().map(|run| run.cache_read).sum();
    let steps: u64 = runs.iter().map(|run| run.steps).sum();
    let cost: f64 = runs.iter().map(|run| run.cost_usd).sum();
    let _ = writeln!(
        text,
        "{}, {}, {} ({} from the cache), ${cost:.4}",
        counted(runs.len() as u64, "run"),
        counted(steps, "step"),
        counted(tokens, "token"),
        grouped(cached)
    );
    for run in runs.iter().take(RUNS_MAX) {
        text.push_str(&lines(run, look));
    }
    if runs.len() > RUNS_MAX {
        let _ = writeln!(text, "  and {}", counted((runs.len() - RUNS_MAX) as u64, "more run"));
    }
    if matches!(look, Look::Later) {
        let _ = writeln!(
            text,
            "  {DIM}`rb serve` on the same data folder answers these addresses{DIM:#}"
        );
    }
    text
}

fn lines(run: &Ran, look: &Look<'_>) -> String {
    let mut text = format!(
        "  {BOLD}{}{BOLD:#}  {}  {}, {}, ${:.4}\n",
        short(&run.run_id, 80),
        short(&run.model, 40),
        counted(run.steps, "step"),
        counted(run.tokens, "token"),
        run.cost_usd
    );
    if run.fired.is_empty() {
        text.push_str("    nothing fired\n");
    } else {
        let fired: Vec<String> = run
            .fired
            .iter()
            .map(|(monitor, count)| format!("{} ×{count}", harmless(monitor)))
            .collect();
        let _ = writeln!(text, "    fired  {}", fired.join(", "));
    }
    let word = if run.is_observed { "would have said" } else { "said" };
    if run.rules > 0 {
        let _ =
            writeln!(text, "    {word}  {} of the library", counted(run.rules, "standing rule"));
    }
    for (step, said) in run.said.iter().take(SAID_MAX) {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            text,
            "    {YELLOW}{word}{YELLOW:#}  step {step}: {}",
            short(&said, SAID_CHARS_MAX)
        );
    }
    if run.said.len() > SAID_MAX {
        let _ =
            writeln!(text, "    and {}", counted((run.said.len() - SAID_MAX) as u64, "more time"));
    }
    let path = format!("/v1/monitor/runs/{}", harmless(&run.run_id));
    match look {
        Look::There(url) => {
            let _ = writeln!(text, "    {DIM}{url}{path}{DIM:#}");
        }
        Look::Later => {
            let _ = writeln!(text, "    {DIM}GET {path}{DIM:#}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ran() -> Ran {
        Ran::of_json(&json!({
            "run_id": "r1", "model": "m", "metadata": { "mode": "steer" }, "steps": [
                { "step_index": 0, "tokens": 1200, "cost_usd": 0.5 },
                { "step_index": 1, "tokens": 300, "cache_read_tokens": 200, "cost_usd": 0.25, "fired": ["semantic_loop"],
                  "injections": ["[e3:rule]", "[e2:pattern]", "Look"], "intervention_texts": ["Look\nelsewhere.\u{1b}[31m"] },
            ],
        }))
    }

    #[test]
    fn a_summary_says_what_happened_and_where_to_look() {
        let text = anstream::adapter::strip_str(&summary(&[ran()], &Look::There("http://host")))
            .to_string();
        assert_eq!(
            text,
            "\nReasonBlocks  1 run, 2 steps, 1,500 tokens (200 from the cache), $0.7500\n  \
             r1  m  2 steps, 1,500 tokens, $0.7500\n    \
             fired  semantic_loop ×1\n    \
             said  1 standing rule of the library\n    \
             said  step 1: [e2:pattern]\n    \
             said  step 1: Look elsewhere.\\u{1b}[31m\n    \
             http://host/v1/monitor/runs/r1\n"
        );
    }

    #[test]
    fn an_observed_run_was_told_nothing() {
        let run = Ran { is_observed: true, ..ran() };
        assert!(summary(&[run], &Look::Later).contains("would have said"));
        assert!(summary(&[], &Look::Later).contains("no call came through"));
    }

    #[test]
    fn many_runs_are_counted_and_not_all_told() {
        let text = summary(&vec![ran(); 12], &Look::Later);
        assert!(text.contains("12 runs, 24 steps") && text.contains("and 2 more runs"), "{text}");
    }
}
