//! Patterns of a new installation. They are written into the store once and belong to the operator afterwards.

use rb_engine::guidance::Tier;
use rb_store::{Change, PatternRow, Result, Store};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::clock::now_ms;

/// Standing rules (E3).
const RULES: &str = include_str!("rules.toml");
/// Patterns for each failure type (E2).
const PATTERNS: &str = include_str!("patterns.toml");
/// Setting written with the patterns.
const LOADED: &str = "starter_library";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    rule: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    instruction: String,
    question: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patterns {
    pattern: Vec<Pattern>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    id: String,
    failure_type: String,
    /// Example thoughts of such a situation; each is compared separately.
    sounds_like: Vec<String>,
    trajectory: String,
    diagnosis: String,
    intervention: String,
    avoid: String,
}

impl Rule {
    fn into_row(self, at_ms: i64) -> PatternRow {
        let fields = json!({
            "instruction": self.instruction,
            "meta_reasoning_prompt": self.question,
        });
        row(Tier::E3, self.id, None, String::new(), fields, at_ms)
    }
}

impl Pattern {
    fn into_row(self, at_ms: i64) -> PatternRow {
        let context = self.sounds_like.join("\n");
        let fields = json!({
            "trigger_state": { "trajectory_description": self.trajectory },
            "diagnosis": self.diagnosis,
            "intervention": self.intervention,
            "anti_pattern": self.avoid,
        });
        row(Tier::E2, self.id, Some(self.failure_type), context, fields, at_ms)
    }
}

fn row(
    tier: Tier,
    pattern_id: String,
    failure_type: Option<String>,
    context: String,
    fields: Value,
    at_ms: i64,
) -> PatternRow {
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    PatternRow {
        tier: tier.name().to_owned(),
        pattern_id,
        failure_type,
        context,
        fields,
        created_ms: at_ms,
        updated_ms: at_ms,
        ..PatternRow::default()
    }
}

/// Rows of all starter patterns.
fn rows(at_ms: i64) -> std::result::Result<Vec<PatternRow>, toml::de::Error> {
    let rules: Rules = toml::from_str(RULES)?;
    let patterns: Patterns = toml::from_str(PATTERNS)?;
    let rules = rules.rule.into_iter().map(|rule| rule.into_row(at_ms));
    Ok(rules.chain(patterns.pattern.into_iter().map(|pattern| pattern.into_row(at_ms))).collect())
}

/// Writes the patterns into a store that never had them.
pub async fn load_once(store: &dyn Store) -> Result<()> {
    if store.setting(LOADED).await?.is_some() {
        return Ok(());
    }
    let at_ms = now_ms();
    let rows = rows(at_ms).unwrap_or_else(|error| {
        // The files are compiled in and tested; starting without them is better than failing.
        tracing::error!(%error, "starter patterns not parsed");
        Vec::new()
    });
    let put = |row: PatternRow| Change::PutPattern(Box::new(row));
    let mut changes: Vec<Change> = rows.into_iter().map(put).collect();
    changes.push(Change::PutSetting { name: LOADED.to_owned(), value: at_ms.to_string() });
    store.apply(changes).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use rb_engine::guidance::render::{Family, render_pattern};
    use rb_engine::monitors::ALL;

    use super::super::pattern_fields;
    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn every_failure_type_has_patterns() {
        let rows = rows(0).unwrap();
        let of = |tier: &str| rows.iter().filter(|row| row.tier == tier).count();
        assert!(of("e3") >= 12 && of("e2") >= 30, "{} {}", of("e3"), of("e2"));
        let known: BTreeSet<&str> = ALL.iter().map(|spec| spec.failure_type).collect();
        let mut covered: BTreeMap<&str, usize> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.tier == "e2") {
            *covered.entry(row.failure_type.as_deref().unwrap()).or_default() += 1;
        }
        assert_eq!(covered.keys().copied().collect::<BTreeSet<_>>(), known);
        assert!(covered.values().all(|count| *count >= 2), "{covered:?}");
    }

    #[test]
    fn ids_are_unique_and_readable() {
        let rows = rows(0).unwrap();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row.pattern_id.as_str()).collect();
        assert_eq!(ids.len(), rows.len());
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(ids.iter().all(|id| id.len() <= 48 && id.chars().all(plain)), "{ids:?}");
    }

    /// The rules of `STYLE.md` for what a model reads, and those the public SDKs need.
    #[test]
    fn texts_are_short_and_give_no_orders() {
        for row in rows(0).unwrap() {
            let tier = Tier::from_name(&row.tier).unwrap();
            assert_eq!(
                pattern_fields::missing_field(tier, &row.fields),
                None,
                "{}",
                row.pattern_id
            );
            let body = pattern_fields::body(tier, &row.fields);
            let text = render_pattern(&body, Family::default());
            let plain = text.replace("ALWAYS:", "").replace("NEVER:", "");
            for word in plain.split(|c: char| !c.is_alphanumeric()) {
                let shouted = word.len() > 4 && word.chars().all(|c| c.is_ascii_uppercase());
                let label =
                    ["MONITOR", "CORRECTION", "TRAJECTORY", "DIAGNOSIS", "INTERVENTION", "AVOID"];
                assert!(!shouted || label.contains(&word), "{}: {word}", row.pattern_id);
                assert!(!word.eq_ignore_ascii_case("must"), "{}", row.pattern_id);
                // The SDKs split a rule at this substring.
                let splits =
                    word.to_lowercase().contains("never") && !word.eq_ignore_ascii_case("never");
                assert!(!splits, "{}: {word}", row.pattern_id);
            }
            assert!(words(&text) <= 100, "{}: {} words", row.pattern_id, words(&text));
            assert!(!text.contains('!'), "{}", row.pattern_id);
        }
    }

    #[test]
    fn patterns_have_example_thoughts() {
        for row in rows(0).unwrap().iter().filter(|row| row.tier == "e2") {
            let lines: Vec<&str> = row.context.lines().collect();
            assert!((2..=8).contains(&lines.len()), "{}", row.pattern_id);
            assert!(lines.iter().all(|line| (4..=40).contains(&words(line))), "{}", row.pattern_id);
        }
    }
}
