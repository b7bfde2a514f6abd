//! What was measured of each monitor, as `docs/figures.json` holds it, in sentences.
//!
//! `rb quality DATA --figures docs/figures.json` writes that file. It holds sums over recorded runs and no text of any.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{out, shell};

const PATH: &str = "docs/figures.json";

/// The file, read.
pub(crate) struct Figures(Value);

impl Figures {
    pub(crate) fn read() -> Result<Self> {
        let text = std::fs::read_to_string(shell::root()?.join(PATH)).with_context(|| {
            format!("{PATH} cannot be read; `rb quality DATA --figures {PATH}` writes it")
        })?;
        Ok(Self(serde_json::from_str(&text).with_context(|| format!("{PATH} is no JSON"))?))
    }

    /// What the figures rest on.
    pub(crate) fn introduction(&self) -> String {
        let number = |name: &str| out::grouped(self.0[name].as_u64().unwrap_or_default());
        format!(
            "The figures below are sums over {} recorded runs of at least {} steps from {} sets, as `rb quality --figures` \
             wrote them to [`figures.json`](figures.json); [quality.md](quality.md) says how they are measured. A planted \
             fault is found when the monitor's alarm begins within five steps. Near a label is at most one step from a \
             mistake that people marked.",
            number("runs"),
            number("steps_min"),
            number("sets"),
        )
    }

    /// What one monitor did.
    pub(crate) fn of(&self, id: &str) -> String {
        let rows = self.0["monitors"].as_array();
        let row = rows.and_then(|rows| rows.iter().find(|row| row["monitor"] == id));
        row.map_or_else(|| "Not measured yet.".to_owned(), sentences)
    }
}

fn sentences(row: &Value) -> String {
    let fires = format!(
        "Fires on {} successful and {} failed runs.",
        share(&row["fires_on_successes"]),
        share(&row["fires_on_failures"])
    );
    let planted: Vec<String> = (row["planted"].as_array().into_iter().flatten())
        .map(|kind| {
            format!("{} planted {}", share(kind), kind["planted"].as_str().unwrap_or("faults"))
        })
        .collect();
    let finds = match planted.as_slice() {
        [] => "No planted fault is its business.".to_owned(),
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
    [fires, finds, precision].join(" ")
}

/// "3 % of 614", or "none of 0".
fn share(count: &Value) -> String {
    let [hits, of] = ["hits", "of"].map(|name| count[name].as_u64().unwrap_or_default());
    let whole = out::grouped(of);
    // Counts of runs are far below the numbers that a double cannot hold.
    let [hits, of] = [hits, of].map(|count| f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    if of > 0.0 { format!("{} of {whole}", percent(hits / of)) } else { "none of 0".to_owned() }
}

/// One digit after the point below ten, where it matters.
fn percent(share: f64) -> String {
    let share = share * 100.0;
    if share > 0.0 && share < 9.95 { format!("{share:.1} %") } else { format!("{share:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_sentences() {
        let figures = Figures(serde_json::json!({ "monitors": [
            {
                "monitor": "a",
                "fires_on_successes": { "hits": 3, "of": 1_200 },
                "fires_on_failures": { "hits": 30, "of": 60 },
                "planted": [{ "planted": "loops", "hits": 9, "of": 10 }],
                "near_labels": { "hits": 1, "of": 2, "at_random": 0.334 },
            },
            { "monitor": "b", "fires_on_successes": { "hits": 0, "of": 0 }, "near_labels": null },
        ] }));
        let cases = [
            (
                "a",
                "Fires on 0.2 % of 1,200 successful and 50 % of 60 failed runs. Finds 90 % of 10 planted loops. \
                 Precision: 50 % of 2 alarms are near a label; at random it would be 33 %.",
            ),
            (
                "b",
                "Fires on none of 0 successful and none of 0 failed runs. No planted fault is its business. No alarm in \
                 runs with labels.",
            ),
            ("c", "Not measured yet."),
        ];
        for (id, said) in cases {
            assert_eq!(figures.of(id), said);
        }
    }
}
