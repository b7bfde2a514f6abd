//! Rule about the wording of comments: the rate of each idiom may only fall.
//!
//! `xtask/prose.toml` records occurrences per 1,000 comment lines. A rate above the recorded one breaks the rule. When a
//! rate has fallen clearly, `hints` suggests to lower the record.

use anyhow::{Context as _, Result};

use super::Repository;

const RECORD: &str = "xtask/prose.toml";

/// Rates are recorded with one decimal, so a smaller difference is rounding.
const ROUNDING: f64 = 0.05;

/// A fall by this much, and by a tenth of the record, is worth recording.
const HINT_MIN: f64 = 0.5;

/// An idiom and its test on one comment line without its slashes.
struct Idiom {
    /// Key in the record.
    name: &'static str,
    matches: fn(&str) -> bool,
}

const IDIOMS: [Idiom; 7] = [
    Idiom { name: "noun_clause_opening", matches: opens_with_noun_clause },
    Idiom {
        name: "told_or_says",
        matches: |line| {
            let words = ["told", "tell", "tells", "heard", "hear", "hears", "said", "says"];
            has_any(line, &words)
        },
    },
    Idiom {
        name: "whoever_or_nobody",
        matches: |line| has_any(line, &["whoever", "nobody", "somebody", "everybody"]),
    },
    Idiom {
        name: "so_many",
        matches: |line| has_any(line, &["so many", "so long", "so often", "so few", "so much"]),
    },
    Idiom { name: "anew", matches: |line| has_any(line, &["anew", "once more"]) },
    Idiom {
        name: "stands_or_lies",
        matches: |line| has_any(line, &["stand", "stands", "lies", "stood"]),
    },
    Idiom {
        name: "of_its_own",
        matches: |line| {
            let phrases = ["of ours", "of its own", "of their own", "of others", "of our own"];
            has_any(line, &phrases)
        },
    },
];

/// Fails for each idiom whose rate is above the record.
pub(super) fn ratchet(repository: &Repository) -> Result<Vec<String>> {
    let record = repository.toml(RECORD)?;
    let mut problems = Vec::new();
    for (name, rate) in rates(repository) {
        let recorded = recorded(&record, name)?;
        if rate > recorded + ROUNDING {
            problems.push(format!(
                "`{name}`: {rate:.1} per 1,000 comment lines, {RECORD} allows {recorded:.1}; reword the new comments \
                 (STYLE.md, Language)"
            ));
        }
    }
    Ok(problems)
}

/// Suggestions to lower the record where a rate has fallen clearly.
pub(super) fn hints(repository: &Repository) -> Result<Vec<String>> {
    let record = repository.toml(RECORD)?;
    let mut hints = Vec::new();
    for (name, rate) in rates(repository) {
        let fallen = recorded(&record, name)? - rate;
        if fallen > HINT_MIN && fallen > rate / 10.0 {
            hints.push(format!("{RECORD}: lower `{name}` to {rate:.1}"));
        }
    }
    Ok(hints)
}

/// Keys of the record.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    IDIOMS.iter().map(|idiom| idiom.name)
}

fn recorded(record: &toml::Table, name: &str) -> Result<f64> {
    let value = record.get(name).and_then(toml::Value::as_float);
    value.with_context(|| format!("{RECORD}: `{name}` must be a number such as 8.0"))
}

/// Occurrences of each idiom per 1,000 comment lines of all Rust files.
fn rates(repository: &Repository) -> Vec<(&'static str, f64)> {
    let lines = repository.ending(".rs").flat_map(|file| file.text.lines());
    let comments: Vec<&str> = lines
        .map(str::trim)
        .filter(|line| line.starts_with("//"))
        .map(|line| line.trim_start_matches(['/', '!', '*', ' ']))
        .collect();
    let as_float = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let all = as_float(comments.len().max(1));
    IDIOMS
        .iter()
        .map(|idiom| {
            let hits = comments.iter().filter(|line| (idiom.matches)(line)).count();
            (idiom.name, 1_000.0 * as_float(hits) / all)
        })
        .collect()
}

/// A line that begins with a question word and is no question.
fn opens_with_noun_clause(line: &str) -> bool {
    let first = line.split(|c: char| !is_word(c)).next().unwrap_or_default();
    ["What", "Which", "Whether", "Where", "How", "Who", "Whose"].contains(&first)
        && !line.contains('?')
}

/// Contains one of the phrases as whole words, in any case.
fn has_any(line: &str, phrases: &[&str]) -> bool {
    let line = line.to_lowercase();
    phrases.iter().any(|phrase| {
        line.match_indices(phrase).any(|(at, _)| {
            !line[..at].ends_with(is_word) && !line[at + phrase.len()..].starts_with(is_word)
        })
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one source file and a record that allows `allowed` of each idiom.
    fn repository(source: &str, allowed: f64) -> Repository {
        let rows: Vec<String> =
            IDIOMS.iter().map(|idiom| format!("{} = {allowed:.1}\n", idiom.name)).collect();
        let record = rows.concat();
        Repository::of(&[("crates/a/src/lib.rs", source), (RECORD, &record)])
    }

    #[test]
    fn idioms_are_whole_words_in_comments() {
        let cases = [
            ("What waits for the writer.", "noun_clause_opening"),
            ("What does this return?", ""),
            ("Whatever it is.", ""),
            ("The caller is Told the id.", "told_or_says"),
            ("A teller machine.", ""),
            ("Nobody reads it.", "whoever_or_nobody"),
            ("Keeps so many rows.", "so_many"),
            ("Reads the file once more.", "anew"),
            ("The value stands at the end.", "stands_or_lies"),
            ("A thread of its own.", "of_its_own"),
            ("Returns the number of rows.", ""),
        ];
        for (line, expected) in cases {
            let found: Vec<&str> =
                IDIOMS.iter().filter(|idiom| (idiom.matches)(line)).map(|i| i.name).collect();
            assert_eq!(found.join(" "), expected, "{line}");
        }
    }

    #[test]
    fn a_rate_above_the_record_breaks_the_rule() {
        let source = "//! A crate.\n// Nobody reads it.\nlet told = 1;\n";
        assert_eq!(ratchet(&repository(source, 500.0)).unwrap(), Vec::<String>::new());
        let problems = ratchet(&repository(source, 400.0)).unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("`whoever_or_nobody`: 500.0 per 1,000"), "{problems:?}");
    }

    #[test]
    fn a_fallen_rate_gives_a_hint() {
        let clean = repository("//! A crate.\n", 3.0);
        assert_eq!(hints(&clean).unwrap().len(), IDIOMS.len());
        assert_eq!(hints(&repository("//! A crate.\n", 0.0)).unwrap(), Vec::<String>::new());
    }
}
