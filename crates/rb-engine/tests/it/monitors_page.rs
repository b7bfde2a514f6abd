//! `docs/monitors.md` is generated from the monitor table, the opening comment of each monitor's file, and the measurements
//! in `docs/figures.json`. `cargo xtask gen` runs this test with `RB_WRITE_PAGES` and so updates the page.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rb_engine::config::EngineConfig;
use rb_engine::config::weights::{Profile, Weights};
use rb_engine::monitors::{ALL, MonitorSpec, Suite, SuiteChoice};
use rb_engine::policy::Policy;
use rb_engine::run::MonitorSet;
use rb_engine::step::{Input, Step};
use serde_json::Value;

#[test]
fn monitors_page_is_current() {
    let file = repository().join("docs/monitors.md");
    let page = page();
    if std::env::var_os("RB_WRITE_PAGES").is_some() {
        fs::write(&file, page).expect("write the page");
        return;
    }
    let stored = fs::read_to_string(&file).expect("read the page");
    let difference =
        stored.lines().zip(page.lines()).enumerate().find(|(_, (old, new))| old != new);
    assert!(
        stored == page,
        "docs/monitors.md is stale: `cargo xtask gen` updates it; first different line: {difference:?}"
    );
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    let figures =
        fs::read_to_string(repository().join("docs/figures.json")).expect("read the figures");
    let figures: Value = serde_json::from_str(&figures).expect("figures are JSON");
    let mut page = String::from(
        "# The monitors\n\n\
         <!-- Written by `cargo xtask gen` from the code; edit the monitor's row or its opening comment. -->\n\n\
         Each monitor watches a run for one failure mode. Its score after every step is between 0 (healthy) and 1 (worst); it \
         fires when the score reaches its threshold. The composite of a suite is the weighted sum of the scores, with the \
         weights of the profile.\n",
    );
    let number = |name: &str| grouped(figures[name].as_u64().expect("a number"));
    write!(
        page,
        "\nThe figures below are sums over {} recorded runs of at least {} steps from {} sets, which are also the sets that the \
         monitors were tuned on. `cargo lab-quality --figures` writes them to [`figures.json`](figures.json); \
         [quality.md](quality.md) describes the method. An injected fault is found when the monitor's alarm begins within five \
         steps. Near a label means at most one step from a mistake that people marked.\n",
        number("runs"),
        number("steps_min"),
        number("sets"),
    )
    .expect("write to a string");
    for suite in [Suite::Heuristic, Suite::Semantic] {
        let specs: Vec<&MonitorSpec> = ALL.into_iter().filter(|spec| spec.suite == suite).collect();
        write!(page, "\n## Suite `{}`\n\n{}\n\n", suite.name(), about(suite))
            .expect("write to a string");
        page.push_str(&table(&specs));
        for spec in specs {
            let row = figures["monitors"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|row| row["monitor"] == spec.id);
            let measured = row.map_or_else(|| "Not measured yet.".to_owned(), sentences);
            let comment = opening_comment(spec);
            write!(page, "\n### `{}`\n\n{comment}\n**Figures.** {measured}\n", spec.id)
                .expect("write to a string");
            if let Some(advice) = sample_advice(spec) {
                write!(page, "\n**Advice**, for example:\n\n> {advice}\n")
                    .expect("write to a string");
            }
        }
    }
    page
}

fn about(suite: Suite) -> &'static str {
    match suite {
        Suite::Heuristic => {
            "Counts and words, equal to the public `reasonblocks` 0.1.0 bit for bit. Quiet signals: they are recorded and shown, and \
             do not interrupt the agent unless the suite is switched on."
        }
        Suite::Semantic => "Meaning, claims and checks. The suite that steers.",
    }
}

fn table(specs: &[&MonitorSpec]) -> String {
    let profiles = Profile::ALL.map(|profile| (profile.name(), Weights::of(profile)));
    let names = profiles.each_ref().map(|(name, _)| format!(" `{name}` |")).concat();
    let mut table = format!(
        "| monitor | detects | failure type | fires at |{names}\n|---|---|---|--:|{}\n",
        "--:|".repeat(profiles.len())
    );
    for MonitorSpec { id, summary, failure_type, fire_at, .. } in specs {
        let weights = profiles
            .each_ref()
            .map(|(_, weights)| format!(" {:.2} |", weights.get(id).unwrap_or_default()));
        writeln!(
            table,
            "| `{id}` | {summary} | `{failure_type}` | {fire_at} |{}",
            weights.concat()
        )
        .expect("write to a string");
    }
    table
}

/// The opening comment of the monitor's file without its first line, which repeats the title.
fn opening_comment(spec: &MonitorSpec) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/monitors/{}.rs", spec.id));
    let source = fs::read_to_string(file).expect("read the monitor's file");
    let comment = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines = comment.map(str::trim).skip(1).skip_while(|line| line.is_empty());
    lines.map(|line| with_values(line, &source) + "\n").collect()
}

/// Adds the values of the file's constants: "`FILES_MAX` (512)".
fn with_values(line: &str, source: &str) -> String {
    let parts = line.split('`').enumerate().map(|(at, part)| match constant(part, source) {
        // Every second part is code.
        Some(value) if at % 2 == 1 => format!("`{part}` ({})", grouped(value)),
        _ if at % 2 == 1 => format!("`{part}`"),
        _ => part.to_owned(),
    });
    parts.collect()
}

/// The value of a constant that is a whole number.
fn constant(name: &str, source: &str) -> Option<u64> {
    source.lines().find_map(|line| {
        let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        let (_, value) = line.strip_prefix(&format!("const {name}:"))?.split_once('=')?;
        value.trim().trim_end_matches(';').replace('_', "").parse().ok()
    })
}

/// The measurements of one monitor.
fn sentences(row: &Value) -> String {
    let (successes, failures) =
        (share(&row["fires_on_successes"]), share(&row["fires_on_failures"]));
    let injected = row["planted"].as_array().into_iter().flatten();
    let injected: Vec<String> = injected
        .map(|kind| {
            format!("{} injected {}", share(kind), kind["planted"].as_str().unwrap_or("faults"))
        })
        .collect();
    let finds = match injected.as_slice() {
        [] => "No injected fault is meant for it.".to_owned(),
        all => format!("Finds {}.", all.join(", ")),
    };
    let labels = &row["near_labels"];
    let precision = if labels.is_null() {
        "No alarm in runs with labels.".to_owned()
    } else {
        let chance = percent(labels["at_random"].as_f64().unwrap_or_default());
        format!(
            "Precision: {} alarms are near a label; at random it would be {chance}.",
            share(labels)
        )
    };
    format!("Fires on {successes} successful and {failures} failed runs. {finds} {precision}")
}

/// "3 % of 614", or "none of 0".
fn share(count: &Value) -> String {
    let [hits, of] = ["hits", "of"].map(|name| count[name].as_u64().unwrap_or_default());
    let total = grouped(of);
    // Exact: counts of runs are far below 2^32.
    let [hits, of] = [hits, of].map(|count| f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    if of > 0.0 { format!("{} of {total}", percent(hits / of)) } else { "none of 0".to_owned() }
}

fn percent(share: f64) -> String {
    let share = share * 100.0;
    if share > 0.0 && share < 9.95 { format!("{share:.1} %") } else { format!("{share:.0} %") }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits"))
        .collect();
    groups.join(",")
}

const TASK: &str = "Make the parser read the last token.";

/// A short run that makes most monitors fire.
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

/// The advice of the monitor when it first fires in [`MESSY_RUN`].
fn sample_advice(spec: &MonitorSpec) -> Option<String> {
    let policy = Policy::only(SuiteChoice::Both);
    let engine = EngineConfig::with_policy(policy).check().expect("valid settings");
    let mut monitors = MonitorSet::new(&engine, TASK);
    MESSY_RUN.into_iter().find_map(|(thought, tool, input, observation)| {
        let step = Step::thought(thought)
            .with_action(tool, Input::Text(input))
            .with_observation(observation);
        let assessment = monitors.observe(&step);
        assessment.fired().find(|reading| reading.monitor == spec)?.advice()
    })
}

#[test]
fn measurements_become_sentences() {
    let row = |text: &str| sentences(&serde_json::from_str(text).expect("JSON"));
    for (json, expected) in [
        (
            r#"{"fires_on_successes": {"hits": 3, "of": 1200}, "fires_on_failures": {"hits": 30, "of": 60},
                "planted": [{"planted": "loops", "hits": 9, "of": 10}], "near_labels": {"hits": 1, "of": 2, "at_random": 0.334}}"#,
            "Fires on 0.2 % of 1,200 successful and 50 % of 60 failed runs. Finds 90 % of 10 injected loops. \
             Precision: 50 % of 2 alarms are near a label; at random it would be 33 %.",
        ),
        (
            r#"{"fires_on_successes": {"hits": 0, "of": 0}, "near_labels": null}"#,
            "Fires on none of 0 successful and none of 0 failed runs. No injected fault is meant for it. No alarm in runs with \
             labels.",
        ),
    ] {
        assert_eq!(row(json), expected);
    }
    let source = "const FILES_MAX: usize = 8_192;";
    assert_eq!(
        with_values("at most `FILES_MAX` of `Other`.", source),
        "at most `FILES_MAX` (8,192) of `Other`."
    );
}
