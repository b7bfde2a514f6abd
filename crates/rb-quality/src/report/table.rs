//! The report for terminals: plain text, columns aligned; whoever prints it may paint it.

use std::fmt::Write as _;

use super::figures::{
    area, counted, dash, estimate, percent, plain, rate, rate_of, statistic, value,
};
use super::{JudgeReport, MeanReport, PlantReport, Report, SetReport, Verdict};
use crate::corpus::Split;
use crate::judge::Statistic;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Targets, outcomes, agreement and plants in a line each.
    #[default]
    Short,
    /// Everything: every split, single monitors, sets and ways of planting.
    Full,
}

/// What a piece of text is, for whoever wants to colour it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// The title of a section.
    Title,
    /// The head of a column, and what explains.
    Quiet,
    /// A target that is met.
    Good,
    /// A target that is missed.
    Bad,
}

/// Makes a piece of text ready for its reader. Names in it come from outside.
pub type Paint<'a> = &'a dyn Fn(Tone, &str) -> String;

/// The whole report as text, every piece of it painted.
pub fn table(report: &Report, detail: Detail, paint: Paint<'_>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", paint(Tone::Title, &report.sentence()));
    for line in legend(report) {
        let _ = writeln!(out, "{}", paint(Tone::Quiet, &line));
    }
    for section in sections(report, detail) {
        let _ = writeln!(out, "\n{}", paint(Tone::Title, &section.title));
        out.push_str(&section.grid.text(paint));
    }
    out
}

fn legend(report: &Report) -> [String; 5] {
    [
        format!(
            "Runs of at least {} steps; 95 % intervals from {} draws of tasks; seed {}.",
            report.steps_min, report.resamples, report.seed
        ),
        "Dev is the part to tune on; held out, a third of the tasks, is the part to believe.".into(),
        "S and F: successes and failures; a run fires when any monitor fires at any step.".into(),
        "AUC: chance that a failed run scores above a successful one, 0.5 is a coin; matched: only between"
            .into(),
        "runs of nearly equal length (10 % or one step); first 5, 10: from these steps alone.".into(),
    ]
}

/// A titled grid.
pub(super) struct Section {
    pub(super) title: String,
    pub(super) grid: Grid,
}

/// Every grid that has a row.
fn sections(report: &Report, detail: Detail) -> Vec<Section> {
    let section = |title: &str, grid| Section { title: title.to_owned(), grid };
    let mut sections = vec![
        section(&format!("Targets ({})", report.headline), verdict_grid(report)),
        section("Outcome by set", set_grid(report, detail)),
        section("Average over sets", mean_grid(report, detail)),
        section("Agreement with human step labels", agreement_grid(report, detail)),
        section("Planted faults, found within five steps", recall_grid(report)),
    ];
    if detail == Detail::Full {
        sections.push(section("Planted faults by set and way", plant_grid(report)));
        sections.push(section("Single monitors (peak score)", monitor_grid(report)));
        sections.push(section("What the targets rest on", detail_grid(report)));
    }
    sections.retain(|section| !section.grid.rows.is_empty());
    sections
}

/// A text and what it is.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }
}

/// Cells in rows and columns.
pub(super) struct Grid {
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Grid {
    fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().map(Cell::from).collect());
    }

    /// Columns two spaces apart, aligned to the left.
    fn text(&self, paint: Paint<'_>) -> String {
        let head = self.head.iter().map(|text| Cell { text: (*text).into(), tone: Tone::Quiet });
        let head: Vec<Cell> = head.collect();
        let rows: Vec<&Vec<Cell>> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut out = String::new();
        for row in rows {
            let mut gap = 0;
            for (cell, width) in row.iter().zip(&widths) {
                // Empty cells at the end leave no blanks behind.
                if !cell.text.is_empty() {
                    let _ = write!(out, "{:gap$}{}", "", paint(cell.tone, &cell.text));
                    gap = 0;
                }
                gap += width - cell.text.chars().count() + 2;
            }
            out.push('\n');
        }
        out
    }
}

/// "9.5 % met".
fn verdict_cell(verdict: Option<&Verdict>) -> Cell {
    let Some((verdict, (reached, met))) =
        verdict.and_then(|verdict| Some((verdict, verdict.value.zip(verdict.met)?)))
    else {
        return dash().into();
    };
    let reached = value(reached, verdict.unit);
    let (word, tone) = if met { ("met", Tone::Good) } else { ("MISSED", Tone::Bad) };
    Cell { text: format!("{reached:>6} {word}"), tone }
}

/// A row a target, a column a split.
fn verdict_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&["target", "all", "dev", "held out"]);
    for (target, verdicts) in report.targets() {
        let of = |split| verdicts.iter().copied().find(|verdict| verdict.split == split);
        let mut row = vec![Cell::from(target)];
        row.extend(Split::ALL.map(|split| verdict_cell(of(split))));
        grid.rows.push(row);
    }
    grid
}

fn detail_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&["target", "split", "rests on"]);
    for verdict in report.verdicts.iter().filter(|verdict| !verdict.detail.is_empty()) {
        grid.push([
            verdict.target.clone(),
            verdict.split.name().to_owned(),
            verdict.detail.clone(),
        ]);
    }
    grid
}

/// Short shows everything together; how the parts differ stands in the targets and the averages.
fn is_shown(split: Split, detail: Detail) -> bool {
    detail == Detail::Full || split == Split::All
}

fn set_grid(report: &Report, detail: Detail) -> Grid {
    let head = [
        "set",
        "split",
        "S/F",
        "judge",
        "fires on S",
        "fires on F",
        "AUC mean",
        "peak",
        "matched mean",
        "matched peak",
        "first 5",
        "first 10",
        "pairs",
    ];
    let mut grid = Grid::new(&head);
    for set in report.sets.iter().filter(|set| is_shown(set.split, detail)) {
        for judge in &set.judges {
            grid.push(set_row(set, judge));
        }
    }
    if detail == Detail::Short {
        grid.drop_columns(&["split", "pairs"]);
    }
    grid
}

impl Grid {
    fn drop_columns(&mut self, names: &[&str]) {
        for name in names {
            if let Some(at) = self.head.iter().position(|head| head == name) {
                self.head.remove(at);
                self.rows.iter_mut().filter(|row| at < row.len()).for_each(|row| {
                    row.remove(at);
                });
            }
        }
    }
}

fn set_row(set: &SetReport, judge: &JudgeReport) -> Vec<String> {
    let (mean, peak) = (judge.composite(Statistic::Mean), judge.composite(Statistic::Peak));
    let has_monitors = !judge.monitors.is_empty();
    let fires = |of| if has_monitors { rate(of) } else { dash() };
    vec![
        set.set.clone(),
        set.split.name().to_owned(),
        format!("{}/{}", set.successes, set.failures),
        judge.judge.clone(),
        fires(judge.fires_on_successes),
        fires(judge.fires_on_failures),
        plain(mean.and_then(|row| row.raw)),
        plain(peak.and_then(|row| row.raw)),
        area(mean.and_then(|row| row.matched)),
        area(peak.and_then(|row| row.matched)),
        plain(judge.early(5)),
        plain(judge.early(10)),
        mean.and_then(|row| row.matched).map_or_else(dash, |area| area.pairs.to_string()),
    ]
}

/// A row a judge and statistic, a column a split.
fn mean_grid(report: &Report, detail: Detail) -> Grid {
    let head = ["judge", "of", "raw AUC", "matched AUC", "dev", "held out", "sets"];
    let mut grid = Grid::new(&head);
    let shown = |statistic| detail == Detail::Full || statistic != Statistic::Last;
    for mean in report.means_of(Split::All).filter(|mean| shown(mean.statistic)) {
        let of = |split| {
            let same = |other: &&MeanReport| {
                other.judge == mean.judge && other.statistic == mean.statistic
            };
            report.means_of(split).find(same).map_or_else(dash, |part| estimate(part.matched))
        };
        grid.push([
            mean.judge.clone(),
            statistic(mean.statistic).to_owned(),
            format!("{:.2}", mean.raw),
            estimate(mean.matched),
            of(Split::Dev),
            of(Split::HeldOut),
            if detail == Detail::Full { mean.sets.join(", ") } else { mean.sets.len().to_string() },
        ]);
    }
    grid
}

fn agreement_grid(report: &Report, detail: Detail) -> Grid {
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
    for set in report.sets.iter().filter(|set| is_shown(set.split, detail)) {
        for judge in set.judges.iter().filter(|judge| !judge.monitors.is_empty()) {
            let single = judge.monitors.iter().map(|row| (row.monitor.as_str(), &row.agreement));
            let single = single.filter(|_| detail == Detail::Full);
            for (monitor, found) in std::iter::once(("any", &judge.agreement)).chain(single) {
                let Some(found) = found.as_ref().filter(|found| found.precision.of > 0) else {
                    continue;
                };
                grid.push([
                    set.set.clone(),
                    set.split.name().to_owned(),
                    judge.judge.clone(),
                    monitor.to_owned(),
                    rate_of(found.hits),
                    percent(found.hits_at_random),
                    estimate(found.lift),
                    rate_of(found.precision),
                    percent(found.precision_at_random),
                ]);
            }
        }
    }
    if detail == Detail::Short {
        grid.drop_columns(&["split", "monitor"]);
    }
    grid
}

/// A row a kind and judge, all sets and ways together.
fn recall_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&[
        "planted",
        "judge",
        "plants",
        "recall",
        "dev",
        "held out",
        "meant for it",
        "alarms before",
        "median delay",
    ]);
    for plant in report.pooled_plants(Split::All) {
        let of = |split| {
            let mut parts = report.pooled_plants(split);
            let same =
                |other: &&PlantReport| other.kind == plant.kind && other.judge == plant.judge;
            parts.find(same).map_or_else(dash, |part| percent(part.recall.share.value))
        };
        grid.push([
            plant.kind.plural().to_owned(),
            plant.judge.clone(),
            plant.recall.of.to_string(),
            rate(plant.recall),
            of(Split::Dev),
            of(Split::HeldOut),
            percent(plant.recall_intended.share.value),
            rate(plant.alarms_before),
            plant.delay_median.map_or_else(dash, |delay| counted(delay, "step")),
        ]);
    }
    grid
}

fn plant_grid(report: &Report) -> Grid {
    let mut grid = Grid::new(&[
        "judge",
        "planted",
        "set or way",
        "split",
        "plants",
        "recall",
        "meant for it",
        "alarms before",
        "median delay",
    ]);
    for plant in &report.plants {
        let place = plant.variant.as_ref().or(plant.set.as_ref());
        grid.push([
            plant.judge.clone(),
            plant.kind.plural().to_owned(),
            place.cloned().unwrap_or_else(|| "all".to_owned()),
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
            for row in &judge.monitors {
                grid.push([
                    set.set.clone(),
                    set.split.name().to_owned(),
                    judge.judge.clone(),
                    row.monitor.clone(),
                    rate(row.fires_on_successes),
                    rate(row.fires_on_failures),
                    plain(row.raw),
                    area(row.matched),
                ]);
            }
        }
    }
    grid
}
