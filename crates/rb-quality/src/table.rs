//! The report as a text table for terminals.

use std::fmt::Write as _;

use crate::corpus::Split;
use crate::report::{MeanReport, Report, ScorerReport, SetReport};
use crate::scorer::Statistic;
use crate::stats::Estimate;
use crate::stats::auc::Area;
use crate::stats::rate::Rate;

/// Style of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A cell.
    Plain,
    /// The title of a section.
    Title,
    /// Column heads and explanations.
    Dim,
}

/// Formats a piece of text. Names in it are untrusted.
pub type Format<'a> = &'a dyn Fn(Style, &str) -> String;

/// Formats the report.
pub fn table(report: &Report, format: Format<'_>) -> String {
    let mut out = String::new();
    let legend = format!(
        "Runs of at least {} steps; 95 % intervals from {} resamples of tasks; seed {}.\n\
         Dev: two thirds of the tasks, for tuning. Held out: the rest.\n\
         S and F: successful and failed runs; a run fires when any monitor fires at any step.\n\
         AUC: share of pairs in which the failed run scores above the successful one; 0.5 is chance. Matched: only\n\
         pairs of nearly equal length (10 % or one step).",
        report.steps_min, report.resamples, report.seed
    );
    for line in legend.lines() {
        let _ = writeln!(out, "{}", format(Style::Dim, line));
    }
    let sections = [
        ("Outcome by set", sets(report)),
        ("Average over sets", means(report)),
        ("Single monitors", monitors(report)),
        ("Agreement with labelled steps", agreement(report)),
    ];
    for (title, rows) in sections.iter().filter(|(_, rows)| rows.len() > 1) {
        let _ = writeln!(out, "\n{}", format(Style::Title, title));
        align(&mut out, rows, format);
    }
    out
}

type Row = Vec<String>;

/// Writes rows with left-aligned columns two spaces apart. The first row is the head.
fn align(out: &mut String, rows: &[Row], format: Format<'_>) {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    for (number, row) in rows.iter().enumerate() {
        let style = if number == 0 { Style::Dim } else { Style::Plain };
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if at + 1 == columns { 0 } else { width + 2 - cell.chars().count() };
            let _ = write!(out, "{}{:gap$}", format(style, cell), "");
        }
        out.push('\n');
    }
}

fn head(cells: &[&str]) -> Vec<Row> {
    vec![cells.iter().map(|cell| (*cell).to_owned()).collect()]
}

/// All scorers on all sets, without splits.
fn whole(report: &Report) -> impl Iterator<Item = (&SetReport, &ScorerReport)> {
    let sets = report.sets.iter().filter(|set| set.split == Split::All);
    sets.flat_map(|set| set.scorers.iter().map(move |scorer| (set, scorer)))
}

fn sets(report: &Report) -> Vec<Row> {
    let mut rows = head(&[
        "set",
        "S/F",
        "scorer",
        "fires on S",
        "fires on F",
        "AUC mean",
        "peak",
        "matched mean",
        "matched peak",
    ]);
    for (set, scorer) in whole(report) {
        let has_monitors = !scorer.monitors.is_empty();
        let fires = |rate| if has_monitors { self::rate(rate) } else { none() };
        let [mean, peak] =
            [Statistic::Mean, Statistic::Peak].map(|statistic| scorer.composite(statistic));
        rows.push(vec![
            set.set.clone(),
            format!("{}/{}", set.successes, set.failures),
            scorer.scorer.clone(),
            fires(scorer.fires_on_successes),
            fires(scorer.fires_on_failures),
            value(mean.and_then(|row| row.raw)),
            value(peak.and_then(|row| row.raw)),
            area(mean.and_then(|row| row.matched)),
            area(peak.and_then(|row| row.matched)),
        ]);
    }
    rows
}

fn means(report: &Report) -> Vec<Row> {
    let mut rows = head(&["scorer", "of", "raw AUC", "matched AUC", "dev", "held out", "sets"]);
    let of = |split| report.means.iter().filter(move |mean| mean.split == split);
    for mean in of(Split::All).filter(|mean| mean.statistic != Statistic::Last) {
        let same =
            |other: &&MeanReport| other.scorer == mean.scorer && other.statistic == mean.statistic;
        let part = |split| of(split).find(same).map_or_else(none, |mean| estimate(mean.matched));
        rows.push(vec![
            mean.scorer.clone(),
            if mean.statistic == Statistic::Mean { "mean" } else { "peak" }.to_owned(),
            format!("{:.2}", mean.raw),
            estimate(mean.matched),
            part(Split::Dev),
            part(Split::HeldOut),
            mean.sets.len().to_string(),
        ]);
    }
    rows
}

fn monitors(report: &Report) -> Vec<Row> {
    let mut rows = head(&["set", "monitor", "fires on S", "fires on F", "matched AUC"]);
    for (set, scorer) in whole(report) {
        for row in &scorer.monitors {
            rows.push(vec![
                set.set.clone(),
                row.monitor.clone(),
                rate(row.fires_on_successes),
                rate(row.fires_on_failures),
                area(row.matched),
            ]);
        }
    }
    rows
}

fn agreement(report: &Report) -> Vec<Row> {
    let mut rows = head(&[
        "set",
        "scorer",
        "labels hit",
        "at random",
        "lift",
        "precision of alarms",
        "at random",
    ]);
    for (set, scorer) in whole(report) {
        let Some(found) = scorer.agreement.as_ref().filter(|found| found.precision.of > 0) else {
            continue;
        };
        rows.push(vec![
            set.set.clone(),
            scorer.scorer.clone(),
            format!("{} of {}", rate(found.hits), found.hits.of),
            percent(found.hits_at_random),
            estimate(found.lift),
            format!("{} of {}", rate(found.precision), found.precision.of),
            percent(found.precision_at_random),
        ]);
    }
    rows
}

fn none() -> String {
    "–".to_owned()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// "8 % [0–35]", or a dash for 0 of 0.
pub fn rate(rate: Rate) -> String {
    if rate.of == 0 {
        return none();
    }
    let Estimate { value, low, high } = rate.share;
    format!("{:.0} % [{:.0}–{:.0}]", value * 100.0, low * 100.0, high * 100.0)
}

/// "0.62 [0.55–0.70]".
pub fn estimate(Estimate { value, low, high }: Estimate) -> String {
    let to = if low < 0.0 { " to " } else { "–" };
    // `+ 0.0` turns the negative zero of a rounded value into zero.
    let [value, low, high] = [value, low, high].map(|value| (value * 100.0).round() / 100.0 + 0.0);
    format!("{value:.2} [{low:.2}{to}{high:.2}]")
}

fn area(area: Option<Area>) -> String {
    area.map_or_else(none, |area| estimate(area.area))
}

fn value(area: Option<Area>) -> String {
    area.map_or_else(none, |area| format!("{:.2}", area.area.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{LabelledRun, LabelledStep, Outcome, OwnedStep, Task};
    use crate::evaluation::{Options, evaluate};
    use crate::scorer::{Fired, Scorer, StepCount, Trace, TracedStep};

    /// Fires where the thought contains "oops".
    struct Oops;

    impl Scorer for Oops {
        fn name(&self) -> &'static str {
            "oops"
        }

        fn monitors(&self) -> Vec<&'static str> {
            vec!["claim_contradiction"]
        }

        fn trace(&self, run: &LabelledRun) -> Trace {
            let score_of = |step: &OwnedStep| {
                let is_alarm = step.thought.contains("oops");
                let score = f64::from(u8::from(is_alarm));
                let fired =
                    if is_alarm { vec![Fired { monitor: 0, begins: true }] } else { Vec::new() };
                TracedStep { scores: vec![score], composite: score / 2.0, fired }
            };
            Trace { steps: run.steps.iter().map(score_of).collect() }
        }
    }

    /// Twelve successes, one with an alarm; twelve failures, nine with an alarm, eight of them at the label.
    fn corpus(set: &str) -> Vec<LabelledRun> {
        let run = |n: usize| {
            let failed = n >= 12;
            let fires = if failed { n < 21 } else { n == 0 };
            let mut steps =
                vec![OwnedStep { thought: "Go on.".into(), ..OwnedStep::default() }; 7 + n % 2];
            if fires {
                steps[3].thought = "oops".into();
            }
            let label =
                LabelledStep { index: if n == 20 { 6 } else { 3 }, category: "slip".into() };
            LabelledRun {
                id: format!("run {n}"),
                set: set.into(),
                task: Task { key: format!("task {n}"), text: String::new() },
                outcome: Some(if failed { Outcome::Failure } else { Outcome::Success }),
                steps,
                labelled_steps: if failed && fires { vec![label] } else { Vec::new() },
                ..LabelledRun::default()
            }
        };
        (0..24).map(run).collect()
    }

    #[test]
    fn counts_are_right_and_the_table_is_readable() {
        let runs = [corpus("alpha"), corpus("beta")].concat();
        let report = evaluate(&runs, &[&Oops, &StepCount], &Options::default(), &());
        let whole: Vec<_> = whole(&report).filter(|(_, scorer)| scorer.scorer == "oops").collect();
        for (set, scorer) in whole {
            assert_eq!((set.runs, set.successes, set.failures, set.tasks), (24, 12, 12, 24));
            assert_eq!((scorer.fires_on_successes.hits, scorer.fires_on_failures.hits), (1, 9));
            let agreement = scorer.agreement.as_ref().expect("labels");
            assert_eq!((agreement.hits.hits, agreement.hits.of), (8, 9));
        }
        insta::assert_snapshot!(table(&report, &|_, text| text.to_owned()));
    }

    #[test]
    fn numbers_are_formatted() {
        let shown = |value, low, high| estimate(Estimate { value, low, high });
        assert_eq!(shown(0.62, 0.55, 0.7), "0.62 [0.55–0.70]");
        assert_eq!(shown(-0.001, -0.03, 0.004), "0.00 [-0.03 to 0.00]");
        assert_eq!(rate(Rate::wilson(0, 0)), "–");
        assert_eq!(rate(Rate::wilson(5, 10)), "50 % [24–76]");
    }
}
