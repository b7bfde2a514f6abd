//! One page for a browser: no network, no script, light and dark; every text of a run is escaped.

use std::fmt::Write as _;

use super::table::{Detail, Section, sections};
use super::{FalseAlarm, MissedPlant, Report};

const STYLE: &str = include_str!("page.css");

/// The whole report as one self-contained page.
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Quality of the monitors</title>\n<style>\n{STYLE}</style>\n\
         <h1>Quality of the monitors</h1>\n\
         <p>Runs of at least {} steps. Intervals are 95 % ones, from {} draws of tasks; seed {}. \
         The targets are about the judge “{}”. AUC is the chance that a failed run scores above a \
         successful one; matched means between runs of nearly equal length (10 % or one step).</p>\n",
        report.steps_min,
        report.resamples,
        report.seed,
        Escaped(&report.headline),
    );
    for section in sections(report, Detail::Full) {
        write_section(&mut out, &section);
    }
    let shown = report.shown.name();
    let _ =
        writeln!(out, "<h2>Alarms in successful runs ({shown}), the highest composite first</h2>");
    if report.false_alarms.is_empty() {
        let _ = writeln!(out, "<p>None.</p>");
    }
    for alarm in &report.false_alarms {
        write_alarm(&mut out, alarm);
    }
    let _ = writeln!(out, "<h2>Planted faults that were missed ({shown})</h2>");
    if report.missed_plants.is_empty() {
        let _ = writeln!(out, "<p>None.</p>");
    }
    for plant in &report.missed_plants {
        write_plant(&mut out, plant);
    }
    out.push_str("</html>\n");
    out
}

fn write_section(out: &mut String, section: &Section) {
    let _ = writeln!(out, "<h2>{}</h2>\n<div class=\"wide\"><table>", Escaped(&section.title));
    let _ = write!(out, "<tr>");
    for cell in &section.grid.head {
        let _ = write!(out, "<th>{}", Escaped(cell));
    }
    out.push('\n');
    for row in &section.grid.rows {
        let _ = write!(out, "<tr>");
        for cell in row {
            let class = match cell.as_str() {
                "met" => " class=\"met\"",
                "MISSED" => " class=\"missed\"",
                _ => "",
            };
            let _ = write!(out, "<td{class}>{}", Escaped(cell));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "</table></div>");
}

fn write_alarm(out: &mut String, alarm: &FalseAlarm) {
    let _ = writeln!(
        out,
        "<details><summary><b>{}</b> at step {} of {}, composite {:.2}: {} / {}</summary>\n\
         <p class=\"evidence\">{}</p>\n<dl>",
        Escaped(&alarm.monitor),
        alarm.step,
        alarm.steps,
        alarm.composite,
        Escaped(&alarm.set),
        Escaped(&alarm.run),
        Escaped(&alarm.sentence),
    );
    for (name, text) in [
        ("task", &alarm.task),
        ("thought", &alarm.thought),
        ("action", &alarm.action),
        ("observation", &alarm.observation),
    ] {
        if !text.is_empty() {
            let _ = writeln!(out, "<dt>{name}<dd><pre>{}</pre>", Escaped(text));
        }
    }
    let _ = writeln!(out, "</dl></details>");
}

fn write_plant(out: &mut String, plant: &MissedPlant) {
    let _ = writeln!(
        out,
        "<details><summary><b>{}</b> ({}) from step {} of {}: {} / {}</summary>\n<dl>\n\
         <dt>task<dd><pre>{}</pre>",
        plant.kind.plural(),
        Escaped(&plant.variant),
        plant.start,
        plant.steps,
        Escaped(&plant.set),
        Escaped(&plant.run),
        Escaped(&plant.task),
    );
    for step in &plant.shown {
        let _ = writeln!(out, "<dt>step<dd><pre>{}</pre>", Escaped(step));
    }
    let _ = writeln!(out, "</dl></details>");
}

/// A text that cannot leave its place in the page.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(c)?,
                // Control characters and those that turn the direction of reading.
                c if c.is_control() => f.write_char('\u{fffd}')?,
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
