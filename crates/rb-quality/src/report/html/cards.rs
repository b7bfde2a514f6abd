//! What a person should read: alarms in runs that succeeded, and plants that nobody saw.

use std::fmt::Write as _;

use super::escape::Escaped;
use crate::report::{FalseAlarm, MissedPlant, Report};
use crate::splice::Kind;

/// The alarms and the missed plants, a card each.
pub(super) fn write(out: &mut String, report: &Report) {
    let shown = report.shown.name();
    let _ = writeln!(
        out,
        "<section id=\"alarms\">\n<h2>Alarms in successful runs</h2>\n<p class=\"lead\">The highest \
         composite first; texts come from the part “{shown}”. Some are real trouble that the agent \
         got out of; the others are what to mend.</p>"
    );
    if report.false_alarms.is_empty() {
        let _ = writeln!(out, "<p class=\"none\">There is none.</p>");
    }
    let _ = writeln!(out, "<div class=\"cards\">");
    for alarm in &report.false_alarms {
        write_alarm(out, alarm);
    }
    let _ = writeln!(out, "</div>\n</section>");
    if report.plants.is_empty() {
        return;
    }
    let _ = writeln!(out, "<section id=\"missed\">\n<h2>Planted faults that were missed</h2>");
    let _ = writeln!(out, "<p class=\"lead\">From the part “{shown}”, a few of each kind.</p>");
    if report.missed_plants.is_empty() {
        let _ = writeln!(out, "<p class=\"none\">There is none.</p>");
    }
    for kind in Kind::ALL {
        let of_kind: Vec<_> =
            report.missed_plants.iter().filter(|plant| plant.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let (name, count) = (kind.plural(), of_kind.len());
        let _ = writeln!(
            out,
            "<details><summary>{name} <span class=\"dim\">{count} shown</span></summary>\n\
             <div class=\"cards\">"
        );
        for plant in of_kind {
            write_plant(out, plant);
        }
        let _ = writeln!(out, "</div></details>");
    }
    let _ = writeln!(out, "</section>");
}

fn write_alarm(out: &mut String, alarm: &FalseAlarm) {
    let _ = writeln!(
        out,
        "<article class=\"card\">\n<header><b class=\"tag\">{}</b> <span class=\"dim\">step {} of {}, \
         composite {:.2}</span><br><span class=\"where\">{} / {}</span></header>",
        Escaped(&alarm.monitor),
        alarm.step,
        alarm.steps,
        alarm.composite,
        Escaped(&alarm.set),
        Escaped(&alarm.run),
    );
    if !alarm.sentence.is_empty() {
        let _ = writeln!(out, "<blockquote>{}</blockquote>", Escaped(&alarm.sentence));
    }
    let _ = writeln!(out, "<dl>");
    entry(out, "task", &alarm.task);
    if alarm.before.iter().any(|line| !line.is_empty()) {
        let first = alarm.step.saturating_sub(alarm.before.len());
        let _ = write!(out, "<dt>before<dd><ol start=\"{first}\">");
        for line in &alarm.before {
            let _ = write!(out, "<li>{}", Escaped(if line.is_empty() { "–" } else { line }));
        }
        let _ = writeln!(out, "</ol>");
    }
    entry(out, "thought", &alarm.thought);
    entry(out, "action", &alarm.action);
    entry(out, "observation", &alarm.observation);
    let _ = writeln!(out, "</dl></article>");
}

fn entry(out: &mut String, name: &str, text: &str) {
    if !text.trim().is_empty() {
        let _ = writeln!(out, "<dt>{name}<dd><pre tabindex=\"0\">{}</pre>", Escaped(text.trim()));
    }
}

fn write_plant(out: &mut String, plant: &MissedPlant) {
    let _ = writeln!(
        out,
        "<article class=\"card\">\n<header><b class=\"tag\">{}</b> <span class=\"dim\">from step {} of \
         {}</span><br><span class=\"where\">{} / {}</span></header>\n<dl>",
        Escaped(&plant.variant),
        plant.start,
        plant.steps,
        Escaped(&plant.set),
        Escaped(&plant.run),
    );
    entry(out, "task", &plant.task);
    for step in &plant.shown {
        entry(out, "step", step);
    }
    let _ = writeln!(out, "</dl></article>");
}
