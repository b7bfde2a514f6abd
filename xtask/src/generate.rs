//! Pages that are written from the code, checked in, and compared: `cargo xtask gen [--check]`.
//!
//! `docs/monitors.md` comes from the table of monitors and from the opening comment of each monitor's file, so
//! there is one place to write either. What was measured comes from `docs/figures.json`.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use rb_engine::config::Engine;
use rb_engine::config::weights::{Profile, Weights};
use rb_engine::monitors::{ALL, MonitorSpec, Suite};
use rb_engine::run::MonitorSet;
use rb_engine::step::{Input, Step};

use crate::figures::Figures;
use crate::{out, shell};

/// A page and how it is written.
type Page = (&'static str, fn() -> Result<String>);

const PAGES: [Page; 1] = [("docs/monitors.md", monitors)];

/// Writes the pages that have changed.
pub(crate) fn write() -> Result<()> {
    for (path, make) in PAGES {
        let (file, page) = (shell::root()?.join(path), make()?);
        if std::fs::read_to_string(&file).ok().as_ref() == Some(&page) {
            out::say(&format!("{path} is up to date"));
        } else {
            std::fs::write(&file, page).with_context(|| path.to_owned())?;
            out::say(&format!("{path} written"));
        }
    }
    Ok(())
}

/// One line for every page that says something else than the code.
pub(crate) fn stale() -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for (path, make) in PAGES {
        let there = std::fs::read_to_string(shell::root()?.join(path)).unwrap_or_default();
        if let Some(hint) = first_difference(&there, &make()?) {
            stale.push(format!("{path} is stale, `cargo xtask gen` writes it anew; {hint}"));
        }
    }
    Ok(stale)
}

fn first_difference(there: &str, wanted: &str) -> Option<String> {
    if there == wanted {
        return None;
    }
    let end = "(end of the page)";
    let (mut old, mut new) = (there.lines(), wanted.lines());
    for at in 1_u32.. {
        let (has, wants) = (old.next(), new.next());
        if has != wants || has.is_none() {
            let (has, wants) = (has.unwrap_or(end), wants.unwrap_or(end));
            return Some(format!("line {at}:\n        - {has}\n        + {wants}"));
        }
    }
    None
}

fn monitors() -> Result<String> {
    let mut page = String::from(
        "# The monitors\n\n\
         <!-- Written by `cargo xtask gen` from the code; edit the monitor's row or its opening comment. -->\n\n\
         Each monitor watches a run for one failure mode. After every step it reads from 0 (healthy) to 1 \
         (worst), and it has fired when the reading reaches its threshold. The composite of a suite is the sum \
         of its readings, each times its weight in the profile.\n",
    );
    let figures = Figures::read()?;
    write!(page, "\n{}\n", figures.introduction())?;
    for suite in [Suite::Heuristic, Suite::Semantic] {
        let rows: Vec<&MonitorSpec> = ALL.into_iter().filter(|spec| spec.suite == suite).collect();
        write!(page, "\n## Suite `{}`\n\n{}\n\n", suite.name(), about(suite))?;
        page.push_str(&table(&rows)?);
        for spec in rows {
            write!(page, "\n### `{}`\n\n{}", spec.id, opening_comment(spec)?)?;
            write!(page, "\n**Figures.** {}\n", figures.of(spec.id))?;
            if let Some(advice) = sample_advice(spec) {
                write!(page, "\n**What the agent is told**, for example:\n\n> {advice}\n")?;
            }
        }
    }
    Ok(page)
}

fn about(suite: Suite) -> &'static str {
    match suite {
        Suite::Heuristic => {
            "The first generation: counts and words. Equal to the public `reasonblocks` 0.1.0, bit for bit."
        }
        Suite::Semantic => "The second generation: what was meant, claimed and checked.",
    }
}

fn table(rows: &[&MonitorSpec]) -> Result<String> {
    let profiles = Profile::ALL.map(|profile| (profile.name(), Weights::of(profile)));
    let mut table = String::from("| monitor | what it sees | failure type | fires at |");
    for (name, _) in &profiles {
        write!(table, " `{name}` |")?;
    }
    table.push_str("\n|---|---|---|--:|--:|--:|--:|\n");
    for spec in rows {
        write!(
            table,
            "| `{}` | {} | `{}` | {} |",
            spec.id, spec.summary, spec.failure_type, spec.fire_at
        )?;
        for (_, weights) in &profiles {
            write!(table, " {:.2} |", weights.get(spec.id).unwrap_or_default())?;
        }
        table.push('\n');
    }
    Ok(table)
}

/// What the monitor's file says of itself, without its first line (the title is that).
fn opening_comment(spec: &MonitorSpec) -> Result<String> {
    let path = format!("crates/rb-engine/src/monitors/{}.rs", spec.id);
    let source = PathBuf::from(&path);
    let source =
        std::fs::read_to_string(shell::root()?.join(source)).with_context(|| path.clone())?;
    let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
    let comment: Vec<&str> =
        comment.map(str::trim).skip(1).skip_while(|line| line.is_empty()).collect();
    let mut text = String::new();
    for line in comment {
        writeln!(text, "{}", with_values(line, &source))?;
    }
    Ok(text)
}

/// Constants of the file get their values: "`FILES_MAX` (512)".
fn with_values(line: &str, source: &str) -> String {
    let mut text = String::new();
    for (at, part) in line.split('`').enumerate() {
        if at > 0 {
            text.push('`');
        }
        text.push_str(part);
        // Every second part stands between two marks.
        if at % 2 == 1
            && let Some(value) = constant(part, source)
        {
            let _ = write!(text, "` ({})", out::grouped(value));
            text.push('\u{0}'); // the closing mark is written already
        }
    }
    text.replace("\u{0}`", "")
}

/// The value of a constant of that name, where it is a whole number.
fn constant(name: &str, source: &str) -> Option<u64> {
    source.lines().find_map(|line| {
        let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        let (_, value) = line.strip_prefix(&format!("const {name}:"))?.split_once('=')?;
        value.trim().trim_end_matches(';').replace('_', "").parse().ok()
    })
}

/// What the user asked for in [`MESSY_RUN`].
const TASK: &str = "Make the parser read the last token.";

/// A short run in which most things that can go wrong do.
const MESSY_RUN: [(&str, &str, &str, &str); 17] = [
    ("Reading the parser first.", "read_file", "src/parser.py", "def parse(text): ..."),
    ("Now the lexer.", "read_file", "src/lexer.py", "def lex(text): ..."),
    ("And where both are used.", "read_file", "src/main.py", "from parser import parse"),
    ("The loop skips the last token.", "edit", "src/parser.py: while at < end:", "ok"),
    ("Checking.", "run_tests", "", "1 failed: test_parse, AssertionError at 0x7f10"),
    (
        "Back to the other bound.",
        "edit",
        "src/parser.py: while at <= end - 1 and more:",
        "error: no such text",
    ),
    ("Once more.", "edit", "src/parser.py: while at <= end - 1 or more:", "error: no such text"),
    ("Again.", "edit", "src/parser.py: while at <= end - 1 and not more:", "ok"),
    ("Checking.", "run_tests", "", "1 failed: test_parse, AssertionError at 0x88aa"),
    ("Never mind, the lexer it is.", "run_tests", "", "1 failed: test_lex"),
    ("Checking again.", "run_tests", "", "2 failed: test_lex, test_parse"),
    ("Checking again.", "run_tests", "", "3 failed: test_lex, test_parse, test_main"),
    ("Checking again.", "run_tests", "", "4 failed: and one more"),
    ("Checking again.", "run_tests", "", "4 failed: and one more"),
    ("Checking again.", "run_tests", "", "4 failed: and one more"),
    ("The lexer drops the first token.", "edit", "src/lexer.py: return tokens[1:]", "ok"),
    ("All tests pass now. The task is complete.", "", "", ""),
];

/// What the monitor says when it first fires in [`MESSY_RUN`]; one that does not fire there has no sample.
fn sample_advice(spec: &MonitorSpec) -> Option<String> {
    let mut panel = MonitorSet::new(&Engine::default(), TASK);
    MESSY_RUN.into_iter().find_map(|(thought, tool, input, observation)| {
        let step = Step::thought(thought)
            .with_action(tool, Input::Text(input))
            .with_observation(observation);
        let assessment = panel.observe(&step);
        assessment.fired().find(|reading| reading.monitor == spec)?.advice()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_values() {
        let source = "const FILES_MAX: usize = 8_192;";
        assert_eq!(
            with_values("at most `FILES_MAX` of `Other`.", source),
            "at most `FILES_MAX` (8,192) of `Other`."
        );
    }

    #[test]
    fn a_stale_page_says_where() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let hint = first_difference("a\nb\n", "a\nc\n").expect("a difference");
        assert_eq!(hint, "line 2:\n        - b\n        + c");
        assert!(
            first_difference("a\n", "a\nb\n")
                .is_some_and(|hint| hint.contains("(end of the page)"))
        );
    }

    #[test]
    fn the_pages_say_what_the_code_says() {
        assert_eq!(stale().expect("pages"), Vec::<String>::new());
    }
}
