//! What runs, keys and days may cost, kept across restarts.

use std::collections::HashMap;
use std::sync::Mutex;

use rb_store::{Change, RunKey, Scope, StepRow};
use serde::Deserialize;

use super::conversations::lock;
use crate::app::App;
use crate::clock::{day_of, iso_day, now_ms};

/// Hard limits; what is left out is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// Tokens of one run. From four fifths on the agent is asked to wrap up.
    pub run_tokens: Option<u64>,
    /// Dollars of one run.
    pub run_usd: Option<f64>,
    /// Dollars a key may use in a day (UTC).
    pub key_day_usd: Option<f64>,
    /// Dollars that all keys together may use in a day (UTC).
    pub day_usd: Option<f64>,
}

/// The day's spending by key, and that of all keys under the empty name.
pub(super) struct Budgets {
    config: BudgetConfig,
    spent: Mutex<Spent>,
}

#[derive(Default)]
struct Spent {
    day: i64,
    usd: HashMap<String, f64>,
}

const ALL: &str = "";

impl Budgets {
    pub(super) fn new(config: BudgetConfig) -> Self {
        Self { config, spent: Mutex::default() }
    }

    /// Why a request must not be sent, if it must not.
    pub(super) async fn exceeded(&self, app: &App, key: &str, run: &RunKey) -> Option<String> {
        if let Some(limit) = self.config.run_usd {
            let row = app.store.run(&Scope::org(&run.org), &run.run_id).await.ok().flatten();
            let used = row.map_or(0.0, |row| row.cost_usd);
            if used >= limit {
                return Some(format!(
                    "the budget of this run is used up: ${used:.2} of ${limit:.2}"
                ));
            }
        }
        let limits =
            [(key, self.config.key_day_usd, "this key"), (ALL, self.config.day_usd, "all keys")];
        for (name, limit, whose) in limits {
            let Some(limit) = limit else { continue };
            let used = self.today(app, name).await;
            if used >= limit {
                return Some(format!(
                    "the budget of {whose} for today is used up: ${used:.2} of ${limit:.2}"
                ));
            }
        }
        None
    }

    /// A call was made.
    pub(super) fn spend(&self, app: &App, key: &str, row: &StepRow) {
        if self.config.key_day_usd.is_none() && self.config.day_usd.is_none() {
            return;
        }
        for name in [key, ALL] {
            let (day, usd) = {
                let mut spent = lock(&self.spent);
                spent.turn_page(day_of(now_ms()));
                let usd = spent.usd.entry(name.to_owned()).or_default();
                *usd += row.cost_usd;
                (spent.day, spent.usd[name])
            };
            let value = usd.to_string();
            app.gateway.recorder.put(Change::PutSetting { name: setting(day, name), value });
        }
    }

    /// What a key has used today; after a restart the store knows.
    async fn today(&self, app: &App, name: &str) -> f64 {
        let day = day_of(now_ms());
        {
            let mut spent = lock(&self.spent);
            spent.turn_page(day);
            if let Some(usd) = spent.usd.get(name) {
                return *usd;
            }
        }
        let stored = app.store.setting(&setting(day, name)).await.ok().flatten();
        let stored: f64 = stored.and_then(|value| value.parse().ok()).unwrap_or_default();
        *lock(&self.spent).usd.entry(name.to_owned()).or_insert(stored)
    }
}

impl Spent {
    fn turn_page(&mut self, day: i64) {
        if self.day != day {
            self.day = day;
            self.usd.clear();
        }
    }
}

fn setting(day: i64, name: &str) -> String {
    format!("spent:{}:{name}", iso_day(day))
}
