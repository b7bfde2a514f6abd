//! The report for terminals: plain text, columns aligned.

use std::fmt::Write as _;

use super::{JudgeReport, MeanReport, PlantReport, Report, SetReport, Verdict};
use crate::judge::Statistic;
use crate::stats::Estimate;
use crate::stats::auc::Area;
use crate::stats::rate::Rate;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Without single monitors and ways of planting.
    #[default]
    Short,
    /// Everything.
    Full,
}

/// The whole report as text.
pub fn table(report: &Report, detail: Detail) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "Runs of at least {} steps; 95 % intervals from {} draws of tasks; seed {}.\n\
         S and F: successes and failures; a run fires when any monitor fires at any step.\n\
         AUC: chance that a failed run scores above a successful one; matched: of nearly equal length\n\
         (10 % or one step). Mean and peak: of the composite over the run. First 5 and 10: AUC of the\n\
         mean over these steps, between runs that have as many.",
        report.steps_min, report.resamples, report.seed
    );
    for section in sections(report, detail) {
        let _ = write!(out, "\n{}\n{}", section.title, section.grid.text());
    }
    out
}

/// A titled grid; the page shows the same ones.
pub(super) struct Section {
    pub(super) title: String,
    pub(super) grid: Grid,
}

/// Every grid that has a row.
pub(super) fn sections(report: &Report, detail: Detail) -> Vec<Section> {
    let mut sections = vec![
        Section { title: format!("Targets ({})", report.headline), grid: verdict_grid(report) },
        Section { title: "Outcome by set".to_owned(), grid: set_grid(report) },
        Section { title: "Average over sets".to_owned(), grid: mean_grid(report) },
        Section {
            title: "Agreement with human step labels".to_owned(),
            grid: agreement_grid(report),
        },
        Section { title: "Planted faults".to_owned(), grid: plant_grid(report, detail) },
    ];
    if detail == Detail::Full {
        let title = "Single monitors (peak score)".to_owned();
        sections.push(Section { title, grid: monitor_grid(report) });
    }
    sections.retain(|section| !section.grid.rows.is_empty());
    sections
}

/// Cells in rows and columns.
pub(super) struct Grid {
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Grid {
    fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Columns two spaces apart, aligned to the left.
    fn text(&self) -> String {
        let head = self.head.iter().map(ToString::to_string).collect();
        let rows: Vec<&Vec<String>> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut out = String::new();
        for row in rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, "{cell:<width$}  ");
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }
}

fn verdict_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&["target", "split", "value", "verdict", "rests on"]);
    let row = |verdict: &Verdict| {
        vec![
            verdict.target.clone(),
            verdict.split.name().to_owned(),
            verdict.value.map_or_else(dash, |value| format!("{value:.3}")),
            match verdict.met {
                Some(true) => "met".to_owned(),
                Some(false) => "MISSED".to_owned(),
                None => "not measured".to_owned(),
            },
            verdict.detail.clone(),
        ]
    };
    grid.rows.extend(report.verdicts.iter().map(row));
    grid
}

fn set_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&[
        "set",
        "split",
        "S/F",
        "judge",
        "fires on S",
        "fires on F",
        "AUC mean",
        "AUC peak",
        "matched mean",
        "matched peak",
        "pairs",
        "first 5",
        "first 10",
    ]);
    for set in &report.sets {
        grid.rows.extend(set.judges.iter().map(|judge| set_row(set, judge)));
    }
    grid
}

fn set_row(set: &SetReport, judge: &JudgeReport) -> Vec<String> {
    let of = |statistic| judge.composite.iter().find(|row| row.statistic == statistic);
    let (mean, peak) = (of(Statistic::Mean), of(Statistic::Peak));
    let early = |steps| {
        let mut rows = judge.early.iter().filter(|row| row.steps == steps);
        plain(rows.find(|row| row.statistic == Statistic::Mean).and_then(|row| row.raw))
    };
    vec![
        set.set.clone(),
        set.split.name().to_owned(),
        format!("{}/{}", set.successes, set.failures),
        judge.judge.clone(),
        rate(judge.fires_on_successes),
        rate(judge.fires_on_failures),
        plain(mean.and_then(|row| row.raw)),
        plain(peak.and_then(|row| row.raw)),
        area(mean.and_then(|row| row.matched)),
        area(peak.and_then(|row| row.matched)),
        mean.and_then(|row| row.matched).map_or_else(dash, |area| area.pairs.to_string()),
        early(5),
        early(10),
    ]
}

fn mean_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&["judge", "split", "statistic", "raw AUC", "matched AUC", "sets"]);
    let row = |mean: &MeanReport| {
        vec![
            mean.judge.clone(),
            mean.split.name().to_owned(),
            statistic(mean.statistic).to_owned(),
            format!("{:.3}", mean.raw),
            estimate(mean.matched),
            mean.sets.join(", "),
        ]
    };
    grid.rows.extend(report.means.iter().map(row));
    grid
}

fn agreement_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&[
        "set",
        "split",
        "judge",
        "monitor",
        "labels hit",
        "at random",
        "lift",
        "precision of alarms",
        "at random",
    ]);
    for set in &report.sets {
        for judge in set.judges.iter().filter(|judge| !judge.monitors.is_empty()) {
            let single = judge.monitors.iter().map(|row| (row.monitor.as_str(), &row.agreement));
            for (monitor, found) in std::iter::once(("any", &judge.agreement)).chain(single) {
                let Some(found) = found.as_ref().filter(|found| found.precision.of > 0) else {
                    continue;
                };
                grid.rows.push(vec![
                    set.set.clone(),
                    set.split.name().to_owned(),
                    judge.judge.clone(),
                    monitor.to_owned(),
                    format!("{} of {}", rate(found.hits), found.hits.of),
                    percent(found.hits_at_random),
                    estimate(found.lift),
                    format!("{} of {}", rate(found.precision), found.precision.of),
                    percent(found.precision_at_random),
                ]);
            }
        }
    }
    grid
}

fn plant_grid(report: &Report, detail: Detail) -> Grid {
    let mut grid = Grid::new(&[
        "judge",
        "planted",
        "way",
        "set",
        "split",
        "plants",
        "recall in 5 steps",
        "by a monitor meant for it",
        "alarms before",
        "median delay",
    ]);
    let shown = |plant: &&PlantReport| detail == Detail::Full || plant.variant.is_none();
    for plant in report.plants.iter().filter(shown) {
        grid.rows.push(vec![
            plant.judge.clone(),
            plant.kind.plural().to_owned(),
            plant.variant.clone().unwrap_or_else(|| "any".to_owned()),
            plant.set.clone().unwrap_or_else(|| "all".to_owned()),
            plant.split.name().to_owned(),
            plant.recall.of.to_string(),
            rate(plant.recall),
            rate(plant.recall_intended),
            rate(plant.alarms_before),
            plant.delay_median.map_or_else(dash, |delay| delay.to_string()),
        ]);
    }
    grid
}

fn monitor_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&[
        "set",
        "split",
        "judge",
        "monitor",
        "fires on S",
        "fires on F",
        "AUC",
        "matched AUC",
    ]);
    for set in &report.sets {
        for judge in &set.judges {
            grid.rows.extend(judge.monitors.iter().map(|row| {
                vec![
                    set.set.clone(),
                    set.split.name().to_owned(),
                    judge.judge.clone(),
                    row.monitor.clone(),
                    rate(row.fires_on_successes),
                    rate(row.fires_on_failures),
                    plain(row.raw),
                    area(row.matched),
                ]
            }));
        }
    }
    grid
}

fn statistic(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => "mean",
        Statistic::Peak => "peak",
        Statistic::Last => "last",
    }
}

fn dash() -> String {
    "–".to_owned()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn rate(rate: Rate) -> String {
    if rate.of == 0 {
        return dash();
    }
    let Estimate { value, low, high } = rate.share;
    format!("{:.0} % [{:.0}–{:.0}]", value * 100.0, low * 100.0, high * 100.0)
}

fn estimate(Estimate { value, low, high }: Estimate) -> String {
    format!("{value:.2} [{low:.2}–{high:.2}]")
}

fn area(area: Option<Area>) -> String {
    area.map_or_else(dash, |area| estimate(area.area))
}

fn plain(area: Option<Area>) -> String {
    area.map_or_else(dash, |area| format!("{:.2}", area.area.value))
}
