//! Numbers with their pictures: targets, sets, averages, labels, plants.

use std::fmt::Write as _;

use super::chart::{Look, Mark, Tick, strip};
use super::escape::Escaped;
use crate::corpus::Split;
use crate::judge::Statistic;
use crate::report::figures::{
    area, counted, dash, estimate, percent, plain, rate, rate_of, statistic, value,
};
use crate::report::{Bound, JudgeReport, MonitorReport, PlantReport, Report, SetReport, Verdict};
use crate::stats::Estimate;
use crate::stats::agreement::Agreement;
use crate::stats::auc::Area;
use crate::stats::rate::Rate;

/// Everything that is a table.
pub(super) fn write(out: &mut String, report: &Report) {
    write_targets(out, report);
    write_sets(out, report);
    write_means(out, report);
    write_labels(out, report);
    write_plants(out, report);
}

/// A table; on a narrow screen every cell has its column's name before it.
struct Table<'a> {
    out: &'a mut String,
    head: &'a [&'a str],
}

impl<'a> Table<'a> {
    /// The class gives the columns their widths.
    fn new(out: &'a mut String, class: &str, head: &'a [&'a str]) -> Self {
        let _ = write!(out, "<table class=\"{class}\"><thead><tr>");
        for name in head {
            let _ = write!(out, "<th>{name}");
        }
        let _ = writeln!(out, "</thead><tbody>");
        Self { out, head }
    }

    /// The cells are markup; the first one names the row.
    fn row(&mut self, class: &str, cells: &[String]) {
        let _ = write!(self.out, "<tr class=\"{class}\">");
        for (at, (name, cell)) in self.head.iter().zip(cells).enumerate() {
            if at == 0 {
                let _ = write!(self.out, "<th scope=\"row\">{cell}");
            } else {
                let _ = write!(self.out, "<td data-name=\"{name}\">{cell}");
            }
        }
        self.out.push('\n');
    }

    fn end(self) {
        let _ = writeln!(self.out, "</tbody></table>");
    }
}

fn text(text: &str) -> String {
    Escaped(text).to_string()
}

/// A picture and its numbers under it.
fn pictured(picture: &str, words: &str) -> String {
    format!("{picture}<span class=\"num\">{}</span>", Escaped(words))
}

fn exact(value: f64) -> Estimate {
    Estimate { value, low: value, high: value }
}

fn class(judge: &str, report: &Report) -> &'static str {
    if judge == report.headline { "headline" } else { "beside" }
}

fn write_targets(out: &mut String, report: &Report) {
    let _ = writeln!(
        out,
        "<section id=\"targets\">\n<h2>Targets</h2>\n<p class=\"lead\">What the judge “{}” is held to. \
         The line is the number to reach; full is all data, hollow the part held out.</p>",
        Escaped(&report.headline)
    );
    let mut table = Table::new(out, "targets", &["target", "", "all", "dev", "held out"]);
    for (target, verdicts) in report.targets() {
        let of = |split| verdicts.iter().copied().find(|verdict| verdict.split == split);
        let mut cells = vec![text(target), target_strip(of(Split::All), of(Split::HeldOut))];
        cells.extend(Split::ALL.map(|split| chip(of(split))));
        table.row("", &cells);
    }
    table.end();
    let _ = writeln!(out, "</section>");
}

fn target_strip(all: Option<&Verdict>, held_out: Option<&Verdict>) -> String {
    let mut marks = Vec::new();
    for (verdict, look) in [(all, Look::Full), (held_out, Look::Hollow)] {
        if let Some(value) = verdict.and_then(|verdict| verdict.value) {
            marks.push(Mark { at: exact(value), look });
        }
    }
    let bound = all.map(|verdict| match verdict.bound {
        Bound::AtMost(bound) | Bound::AtLeast(bound) => Tick::Target(bound),
    });
    let ticks: Vec<Tick> = bound.into_iter().collect();
    strip(&marks, &ticks, "all data and the part held out, against the number to reach")
}

fn chip(verdict: Option<&Verdict>) -> String {
    let reached = verdict.and_then(|verdict| Some((verdict, verdict.value?, verdict.met?)));
    let Some((verdict, reached, met)) = reached else {
        return "<span class=\"dim\">not measured</span>".to_owned();
    };
    let (class, word) = if met { ("good", "met") } else { ("bad", "missed") };
    format!(
        "<span class=\"chip {class}\" title=\"{}\">{} {word}</span>",
        Escaped(&verdict.detail),
        value(reached, verdict.unit),
    )
}

fn write_sets(out: &mut String, report: &Report) {
    if report.sets.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<section id=\"sets\">\n<h2>Outcome by set</h2>\n<p class=\"lead\">Fires: hollow on successes, \
         full on failures. AUC of the composite’s peak: hollow raw, full matched; the dashed line is a \
         coin.</p>"
    );
    for set in report.sets.iter().filter(|set| set.split == Split::All) {
        let _ = writeln!(
            out,
            "<article class=\"set\">\n<h3>{} <span class=\"dim\">{}</span></h3>",
            Escaped(&set.set),
            size(set)
        );
        write_judges(out, set, report);
        let parts =
            report.sets.iter().filter(|part| part.set == set.set && part.split != Split::All);
        let _ = writeln!(out, "<details><summary>dev and held out</summary>");
        for part in parts {
            let _ = writeln!(
                out,
                "<h4>{} <span class=\"dim\">{}</span></h4>",
                part.split.name(),
                size(part)
            );
            write_judges(out, part, report);
        }
        let _ = writeln!(out, "</details>\n<details><summary>single monitors</summary>");
        write_monitors(out, set, report);
        let _ = writeln!(out, "</details>\n</article>");
    }
    let _ = writeln!(out, "</section>");
}

fn size(set: &SetReport) -> String {
    format!(
        "{}, {}, {}, median {}",
        counted_es(set.successes),
        counted(set.failures, "failure"),
        counted(set.tasks, "task"),
        counted(set.steps_median, "step"),
    )
}

fn counted_es(count: usize) -> String {
    format!("{count} success{}", if count == 1 { "" } else { "es" })
}

fn write_judges(out: &mut String, set: &SetReport, report: &Report) {
    let head =
        ["judge", "fires, 0 to 100 %", "AUC of peak, 0 to 1", "AUC of mean", "first 5", "first 10"];
    let mut table = Table::new(out, "judges", &head);
    for judge in &set.judges {
        let of = |statistic| judge.composite(statistic);
        let (mean, peak) = (of(Statistic::Mean), of(Statistic::Peak));
        let mean_words = format!("raw {}", plain(mean.and_then(|row| row.raw)));
        let mean_area = area(mean.and_then(|row| row.matched));
        let has_area = mean.is_some_and(|row| row.raw.is_some());
        table.row(
            class(&judge.judge, report),
            &[
                text(&judge.judge),
                fires(judge),
                areas(peak.and_then(|row| row.raw), peak.and_then(|row| row.matched)),
                if has_area { pictured(&mean_area, &mean_words) } else { dash() },
                plain(judge.early(5)),
                plain(judge.early(10)),
            ],
        );
    }
    table.end();
}

fn fires(judge: &JudgeReport) -> String {
    if judge.monitors.is_empty() {
        return dash();
    }
    fire_rates(judge.fires_on_successes, judge.fires_on_failures)
}

fn fire_rates(successes: Rate, failures: Rate) -> String {
    let mut marks = Vec::new();
    for (rate, look) in [(successes, Look::Hollow), (failures, Look::Full)] {
        if rate.of > 0 {
            marks.push(Mark { at: rate.share, look });
        }
    }
    let words = format!("S {}, F {}", rate(successes), rate(failures));
    pictured(&strip(&marks, &[], &format!("fires: {words}")), &words)
}

fn areas(raw: Option<Area>, matched: Option<Area>) -> String {
    let mut marks = Vec::new();
    for (area, look) in [(raw, Look::Hollow), (matched, Look::Full)] {
        if let Some(area) = area {
            marks.push(Mark { at: area.area, look });
        }
    }
    if marks.is_empty() {
        return dash();
    }
    let words = format!("raw {}, matched {}", plain(raw), area(matched));
    pictured(&strip(&marks, &[Tick::Chance(0.5)], &format!("AUC: {words}")), &words)
}

fn write_monitors(out: &mut String, set: &SetReport, report: &Report) {
    let mut table = Table::new(
        out,
        "monitors",
        &["monitor", "judge", "fires, 0 to 100 %", "AUC of peak, 0 to 1"],
    );
    for judge in &set.judges {
        for monitor in &judge.monitors {
            let MonitorReport { fires_on_successes, fires_on_failures, raw, matched, .. } = monitor;
            table.row(
                class(&judge.judge, report),
                &[
                    text(&monitor.monitor),
                    text(&judge.judge),
                    fire_rates(*fires_on_successes, *fires_on_failures),
                    areas(*raw, *matched),
                ],
            );
        }
    }
    table.end();
}

fn write_means(out: &mut String, report: &Report) {
    if report.means.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<section id=\"means\">\n<h2>Average over sets</h2>\n<p class=\"lead\">Matched AUC of the \
         composite, over the sets with enough pairs: full all data, hollow the part held out.</p>"
    );
    let head = ["judge", "of", "0 to 1", "all", "dev", "held out", "raw"];
    let mut table = Table::new(out, "means", &head);
    for mean in report.means_of(Split::All).filter(|mean| mean.statistic != Statistic::Last) {
        let of = |split| {
            let mut parts = report.means_of(split);
            parts.find(|part| part.judge == mean.judge && part.statistic == mean.statistic)
        };
        let words = |split| of(split).map_or_else(dash, |part| estimate(part.matched));
        let mut marks = vec![Mark { at: mean.matched, look: Look::Full }];
        marks.extend(of(Split::HeldOut).map(|part| Mark { at: part.matched, look: Look::Hollow }));
        let (all, dev, held_out) = (words(Split::All), words(Split::Dev), words(Split::HeldOut));
        let said = format!("matched AUC: {all}, held out {held_out}");
        let cells = [
            text(&mean.judge),
            statistic(mean.statistic).to_owned(),
            strip(&marks, &[Tick::Chance(0.5)], &said),
            all,
            dev,
            held_out,
            format!("{:.2}", mean.raw),
        ];
        table.row(class(&mean.judge, report), &cells);
    }
    table.end();
    let _ = writeln!(out, "</section>");
}

fn write_labels(out: &mut String, report: &Report) {
    let labelled: Vec<&SetReport> = report.sets.iter().filter(|set| set.has_labels()).collect();
    if labelled.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<section id=\"labels\">\n<h2>Agreement with human step labels</h2>\n<p class=\"lead\">A label is \
         hit when an alarm begins at most one step away. The dashed line is the same number of alarms at \
         random steps.</p>"
    );
    for set in labelled {
        let rows = set.judges.iter().flat_map(|judge| {
            let single = judge.monitors.iter().map(|row| (row.monitor.as_str(), &row.agreement));
            let all = std::iter::once(("any", &judge.agreement)).chain(single);
            all.filter_map(move |(monitor, found)| Some((judge, monitor, found.as_ref()?)))
                .filter(|(_, _, found)| found.precision.of > 0)
        });
        let rows: Vec<(&JudgeReport, &str, &Agreement)> = rows.collect();
        if rows.is_empty() {
            continue;
        }
        let name = format!("{} <span class=\"dim\">{}</span>", text(&set.set), set.split.name());
        let (begin, end) = if set.split == Split::All {
            (format!("<article class=\"set\"><h3>{name}</h3>"), "</article>")
        } else {
            (format!("<article><details><summary>{name}</summary>"), "</details></article>")
        };
        let _ = writeln!(out, "{begin}");
        let head = ["monitor", "judge", "labels hit", "lift", "precision of alarms"];
        let mut table = Table::new(out, "labels", &head);
        for (judge, monitor, found) in rows {
            table.row(
                class(&judge.judge, report),
                &[
                    text(monitor),
                    text(&judge.judge),
                    against(found.hits, found.hits_at_random),
                    estimate(found.lift),
                    against(found.precision, found.precision_at_random),
                ],
            );
        }
        table.end();
        let _ = writeln!(out, "{end}");
    }
    let _ = writeln!(out, "</section>");
}

/// A share against the same at random.
fn against(rate: Rate, at_random: f64) -> String {
    let words = format!("{}, at random {}", rate_of(rate), percent(at_random));
    let marks = [Mark { at: rate.share, look: Look::Full }];
    pictured(&strip(&marks, &[Tick::Chance(at_random)], &words), &words)
}

fn write_plants(out: &mut String, report: &Report) {
    if report.plants.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<section id=\"plants\">\n<h2>Planted faults</h2>\n<p class=\"lead\">Recall: an alarm begins within \
         five steps of the plant. Before: runs with an alarm before anything was planted; it \
         should be near 0.</p>"
    );
    let head = [
        "judge",
        "found in time",
        "dev",
        "held out",
        "meant for it",
        "alarms before",
        "median delay",
    ];
    for kind in crate::splice::Kind::ALL {
        let of_kind = |plant: &&PlantReport| plant.kind == kind;
        let pooled: Vec<_> = report.pooled_plants(Split::All).filter(of_kind).collect();
        let Some(first) = pooled.first() else { continue };
        let _ = writeln!(
            out,
            "<article class=\"set\">\n<h3>{} <span class=\"dim\">{}</span></h3>",
            kind.plural(),
            counted(first.recall.of, "plant")
        );
        let mut table = Table::new(out, "plants", &head);
        for plant in pooled {
            let of = |split| {
                let mut parts = report.pooled_plants(split).filter(of_kind);
                let part = parts.find(|part| part.judge == plant.judge);
                part.map_or_else(dash, |part| percent(part.recall.share.value))
            };
            table.row(
                class(&plant.judge, report),
                &[
                    text(&plant.judge),
                    pictured(&recall_strip(plant, report), &rate(plant.recall)),
                    of(Split::Dev),
                    of(Split::HeldOut),
                    percent(plant.recall_intended.share.value),
                    pictured(&before_strip(plant), &rate(plant.alarms_before)),
                    plant.delay_median.map_or_else(dash, |delay| counted(delay, "step")),
                ],
            );
        }
        table.end();
        write_ways(out, kind, report);
        let _ = writeln!(out, "</article>");
    }
    let _ = writeln!(out, "</section>");
}

fn recall_strip(plant: &PlantReport, report: &Report) -> String {
    let words = rate_of(plant.recall);
    let target = report.verdicts.iter().find(|verdict| verdict.kind == Some(plant.kind));
    let ticks: Vec<Tick> = target
        .map(|verdict| match verdict.bound {
            Bound::AtMost(bound) | Bound::AtLeast(bound) => Tick::Target(bound),
        })
        .into_iter()
        .collect();
    strip(&[Mark { at: plant.recall.share, look: Look::Full }], &ticks, &format!("found: {words}"))
}

fn before_strip(plant: &PlantReport) -> String {
    let words = format!("alarms before: {}", rate_of(plant.alarms_before));
    strip(&[Mark { at: plant.alarms_before.share, look: Look::Hollow }], &[], &words)
}

fn write_ways(out: &mut String, kind: crate::splice::Kind, report: &Report) {
    let _ = writeln!(out, "<details><summary>by set and way of planting</summary>");
    let head = ["set or way", "judge", "plants", "found in time", "alarms before"];
    let mut table = Table::new(out, "ways", &head);
    let of_kind = report.plants.iter().filter(|plant| plant.kind == kind);
    for plant in of_kind.filter(|plant| plant.set.is_some() || plant.variant.is_some()) {
        let place = plant.variant.as_ref().or(plant.set.as_ref());
        table.row(
            class(&plant.judge, report),
            &[
                text(place.map_or("all", String::as_str)),
                text(&plant.judge),
                plant.recall.of.to_string(),
                pictured(&recall_strip(plant, report), &rate(plant.recall)),
                rate(plant.alarms_before),
            ],
        );
    }
    table.end();
    let _ = writeln!(out, "</details>");
}
