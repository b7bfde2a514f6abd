//! One page for a browser: no network, no script, light and dark; every text of a run is escaped.

/// What a person should read.
mod cards;
/// Small pictures.
mod chart;
/// Texts that stay text.
mod escape;
/// Numbers with their pictures.
mod tables;

use std::fmt::Write as _;

use self::chart::{Look, Mark, strip};
use self::escape::Escaped;
use super::Report;
use crate::corpus::Split;
use crate::stats::Estimate;

const STYLE: &str = include_str!("page.css");

/// The whole report as one self-contained page.
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Quality of the monitors</title>\n<style>\n{STYLE}</style>\n<main>"
    );
    write_head(&mut out, report);
    tables::write(&mut out, report);
    cards::write(&mut out, report);
    write_foot(&mut out, report);
    out.push_str("</main>\n</html>\n");
    out
}

fn write_head(out: &mut String, report: &Report) {
    let _ = writeln!(
        out,
        "<header class=\"top\">\n<p class=\"brand\">ReasonBlocks</p>\n<h1>Quality of the monitors</h1>\n\
         <p class=\"summary\">{}</p>\n<p class=\"chips\">",
        Escaped(&report.sentence())
    );
    for split in Split::ALL {
        let (met, of) = report.met(split);
        if of > 0 {
            let class = if met == of { "good" } else { "bad" };
            let name = split.name();
            let _ = writeln!(out, "<span class=\"chip {class}\">{name}: {met} of {of} met</span>");
        }
    }
    let _ = writeln!(out, "</p>\n<nav>");
    let parts = [
        ("targets", "Targets", !report.verdicts.is_empty()),
        ("sets", "Outcome by set", !report.sets.is_empty()),
        ("labels", "Human labels", report.sets.iter().any(super::SetReport::has_labels)),
        ("plants", "Planted faults", !report.plants.is_empty()),
        ("alarms", "Alarms to read", true),
        ("how", "How to read this", true),
    ];
    for (id, name, _) in parts.iter().filter(|(_, _, there)| *there) {
        let _ = write!(out, "<a href=\"#{id}\">{name}</a> ");
    }
    let _ = writeln!(out, "</nav>\n</header>");
}

fn write_foot(out: &mut String, report: &Report) {
    let mark = |look| {
        let at = Estimate { value: 0.5, low: 0.3, high: 0.7 };
        strip(&[Mark { at, look }], &[], "an example of a mark")
    };
    let _ = writeln!(
        out,
        "<section id=\"how\">\n<h2>How to read this</h2>\n<dl class=\"how\">\n\
         <dt>{}<dd>What counts: failures, matched AUC, recall, all data. The line through it is the 95 % \
         interval, from {} draws of whole tasks.\n\
         <dt>{}<dd>What stands beside it: successes, raw AUC, the part held out.\n\
         <dt>fires<dd>The share of runs in which any monitor fires at any step. On successes it should be \
         near 0.\n\
         <dt>AUC<dd>The chance that a failed run scores above a successful one; 0.5 is a coin. Long runs \
         fail more often, so raw AUC is mostly length. Matched AUC compares only runs of nearly equal \
         length (10 % or one step).\n\
         <dt>first 5, 10<dd>AUC from these steps alone, between runs that have as many.\n\
         <dt>dev, held out<dd>Two thirds and one third of the tasks. Tune on the first, believe the \
         second.\n\
         <dt>planted<dd>A fault of known kind and place in a run that succeeded. Recall counts alarms that \
         begin within five steps.\n\
         <dt>left out<dd>Runs of fewer than {} steps. Seed {}.\n</dl>\n</section>",
        mark(Look::Full),
        report.resamples,
        mark(Look::Hollow),
        report.steps_min,
        report.seed,
    );
}
