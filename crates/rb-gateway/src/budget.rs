//! Budgets in tokens and dollars by run, by key and day, and by day. At the soft limit the agent is asked to wrap up; at
//! the hard limit requests are rejected. Usage survives a restart.

use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::Arc;

use parking_lot::Mutex;
use rb_engine::policy::token_budget::wrap_up;
use rb_store::{Change, RunKey, Scope, Store};
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use rb_runtime::clock::{day_of, format_day, now_ms};
use rb_runtime::write_queue::WriteQueue;

/// Hard limits; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// Tokens of one run.
    pub run_tokens: Option<u64>,
    /// Dollars of one run.
    pub run_usd: Option<f64>,
    /// Tokens a key may use in a day (UTC).
    pub key_day_tokens: Option<u64>,
    /// Dollars a key may use in a day (UTC).
    pub key_day_usd: Option<f64>,
    /// Tokens that all keys together may use in a day (UTC).
    pub day_tokens: Option<u64>,
    /// Dollars that all keys together may use in a day (UTC).
    pub day_usd: Option<f64>,
    /// Share of a limit at which the agent is asked to wrap up.
    pub soft_share: f64,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self {
            run_tokens: None,
            run_usd: None,
            key_day_tokens: None,
            key_day_usd: None,
            day_tokens: None,
            day_usd: None,
            soft_share: 0.8,
        }
    }
}

impl BudgetConfig {
    /// Validates the limits.
    pub(crate) fn check(self) -> Result<Self, ConfigError> {
        let wrong = |name, value: String, wanted| Err(ConfigError { name, value, wanted });
        if !(self.soft_share > 0.0 && self.soft_share <= 1.0) {
            let wanted = "a number above 0 and at most 1";
            return wrong("budget.soft_share", self.soft_share.to_string(), wanted);
        }
        let tokens = [
            ("budget.run_tokens", self.run_tokens),
            ("budget.key_day_tokens", self.key_day_tokens),
            ("budget.day_tokens", self.day_tokens),
        ];
        if let Some((name, _)) = tokens.into_iter().find(|(_, limit)| *limit == Some(0)) {
            return wrong(name, "0".to_owned(), "at least 1; leave it out for no limit");
        }
        let usd = [
            ("budget.run_usd", self.run_usd),
            ("budget.key_day_usd", self.key_day_usd),
            ("budget.day_usd", self.day_usd),
        ];
        for (name, limit) in usd {
            if let Some(limit) = limit
                && (limit.is_nan() || limit <= 0.0)
            {
                return wrong(name, limit.to_string(), "more than 0; leave it out for no limit");
            }
        }
        Ok(self)
    }
}

/// Tokens and their cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Spend {
    pub(crate) tokens: u64,
    pub(crate) usd: f64,
}

impl AddAssign for Spend {
    fn add_assign(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.usd += other.usd;
    }
}

impl Spend {
    /// Stored form: dollars, then tokens.
    fn write(self) -> String {
        format!("{} {}", self.usd, self.tokens)
    }

    fn read(kept: &str) -> Self {
        let mut words = kept.split(' ');
        let usd = words.next().and_then(|usd| usd.parse().ok()).unwrap_or_default();
        let tokens = words.next().and_then(|tokens| tokens.parse().ok()).unwrap_or_default();
        Self { tokens, usd }
    }
}

/// Budgets of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BudgetStatus {
    Ok,
    /// A soft limit is reached; text for the agent.
    SoftLimit(String),
    /// A hard limit is reached; reason of the rejection.
    HardLimit(String),
}

/// Usage by run, and by key and day.
pub(crate) struct Budgets {
    config: BudgetConfig,
    days: Mutex<Day>,
    runs: Mutex<HashMap<RunKey, Account>>,
    max_runs: usize,
    store: Arc<dyn Store>,
    queue: WriteQueue,
}

#[derive(Default)]
struct Day {
    day: i64,
    accounts: HashMap<String, Account>,
}

/// Usage before the start of this process, once it is read from the store, and since.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    before: Option<Spend>,
    since: Spend,
}

impl Account {
    fn total(&self) -> Spend {
        let mut total = self.before.unwrap_or_default();
        total += self.since;
        total
    }
}

/// Name of the account of all keys together.
const ALL_KEYS: &str = "";

impl Budgets {
    pub(crate) fn new(
        config: BudgetConfig,
        max_runs: usize,
        store: Arc<dyn Store>,
        queue: WriteQueue,
    ) -> Self {
        Self { config, days: Mutex::default(), runs: Mutex::default(), max_runs, store, queue }
    }

    /// Checks the budgets of a request. `auxiliary_spend` is the usage of the run apart from its steps.
    pub(crate) async fn standing(
        &self,
        key: &str,
        run: &RunKey,
        auxiliary_spend: Spend,
    ) -> BudgetStatus {
        let config = &self.config;
        let mut near = None;
        for (name, limits, whose) in [
            (None, (config.run_tokens, config.run_usd), "of this run"),
            (Some(key), (config.key_day_tokens, config.key_day_usd), "of this key for today"),
            (Some(ALL_KEYS), (config.day_tokens, config.day_usd), "of all keys for today"),
        ] {
            if limits == (None, None) {
                continue;
            }
            let spent = match name {
                None => self.of_run(run, auxiliary_spend).await,
                Some(name) => self.today(name).await,
            };
            match level(spent, limits, self.config.soft_share, whose) {
                BudgetStatus::HardLimit(why) => return BudgetStatus::HardLimit(why),
                BudgetStatus::SoftLimit(text) => drop(near.get_or_insert(text)),
                BudgetStatus::Ok => {}
            }
        }
        near.map_or(BudgetStatus::Ok, BudgetStatus::SoftLimit)
    }

    /// Records the usage of a call.
    pub(crate) fn spend(&self, key: &str, run: &RunKey, spent: Spend) {
        let config = &self.config;
        if config.run_tokens.is_some() || config.run_usd.is_some() {
            let mut runs = self.runs.lock();
            if runs.len() >= self.max_runs && !runs.contains_key(run) {
                runs.clear(); // the store has them
            }
            runs.entry(run.clone()).or_default().since += spent;
        }
        for (name, is_limited) in [
            (key, config.key_day_tokens.is_some() || config.key_day_usd.is_some()),
            (ALL_KEYS, config.day_tokens.is_some() || config.day_usd.is_some()),
        ] {
            if is_limited {
                self.spend_today(name, spent);
            }
        }
    }

    fn spend_today(&self, name: &str, spent: Spend) {
        let mut days = self.days.lock();
        days.roll_day(day_of(now_ms()));
        let day = days.day;
        let account = days.accounts.entry(name.to_owned()).or_default();
        account.since += spent;
        // Before the stored usage is known, the sum would be too small.
        if account.before.is_some() {
            let value = account.total().write();
            self.queue.put(Change::PutSetting { name: setting(day, name), value });
        }
    }

    /// Usage of a key today, read from the store after a restart.
    async fn today(&self, name: &str) -> Spend {
        let day = day_of(now_ms());
        {
            let mut days = self.days.lock();
            days.roll_day(day);
            if let Some(account) =
                days.accounts.get(name).filter(|account| account.before.is_some())
            {
                return account.total();
            }
        }
        let stored = self.store.setting(&setting(day, name)).await;
        let mut days = self.days.lock();
        days.roll_day(day);
        let account = days.accounts.entry(name.to_owned()).or_default();
        if let (Ok(stored), None) = (stored, account.before) {
            account.before = Some(stored.as_deref().map(Spend::read).unwrap_or_default());
        }
        account.total()
    }

    /// Usage of a run, read from its stored steps after a restart.
    async fn of_run(&self, run: &RunKey, auxiliary_spend: Spend) -> Spend {
        let known = self.runs.lock().get(run).copied();
        if let Some(account) = known.filter(|account| account.before.is_some()) {
            return account.total();
        }
        let Ok(row) = self.store.run(&Scope::org(&run.org), &run.run_id).await else {
            return known.unwrap_or_default().total();
        };
        let mut before = auxiliary_spend;
        if let Some(row) = row {
            before += Spend { tokens: row.tokens.total, usd: row.cost_usd };
        }
        let mut runs = self.runs.lock();
        let account = runs.entry(run.clone()).or_default();
        if account.before.is_none() {
            // The stored steps include the usage since.
            *account = Account { before: Some(before), since: Spend::default() };
        }
        account.total()
    }
}

/// Compares the usage of an account with its limits.
fn level(
    spent: Spend,
    limits: (Option<u64>, Option<f64>),
    soft_share: f64,
    whose: &str,
) -> BudgetStatus {
    let mut near = None;
    if let Some(limit) = limits.0 {
        let used = spent.tokens;
        if used >= limit {
            let why = format!("the token budget {whose} is used up: {used} of {limit}");
            return BudgetStatus::HardLimit(why);
        }
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
        let share = used as f64 / limit as f64;
        if share >= soft_share {
            let left = limit - used;
            near = Some(format!(
                "{used} of the {limit} tokens {whose} are used, about {left} are left."
            ));
        }
    }
    if let Some(limit) = limits.1 {
        let used = spent.usd;
        if used >= limit {
            let why = format!("the budget {whose} is used up: ${used:.2} of ${limit:.2}");
            return BudgetStatus::HardLimit(why);
        }
        if used >= limit * soft_share {
            let left = limit - used;
            near.get_or_insert(format!(
                "${used:.2} of the ${limit:.2} {whose} are used, about ${left:.2} are left."
            ));
        }
    }
    near.map_or(BudgetStatus::Ok, |used| BudgetStatus::SoftLimit(wrap_up(&used)))
}

impl Day {
    fn roll_day(&mut self, day: i64) {
        if self.day != day {
            self.day = day;
            self.accounts.clear();
        }
    }
}

fn setting(day: i64, name: &str) -> String {
    format!("spent:{}:{name}", format_day(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_speak_before_they_act() {
        let used = |tokens, usd| Spend { tokens, usd };
        let (tokens, dollars) = ((Some(100), None), (None, Some(1.0)));
        let both = (Some(100), Some(1.0));
        let cases = [
            (used(79, 0.0), tokens, ""),
            (
                used(80, 0.0),
                tokens,
                "80 of the 100 tokens of this run are used, about 20 are left.",
            ),
            (used(100, 0.0), tokens, "the token budget of this run is used up: 100 of 100"),
            (used(900, 0.79), dollars, ""),
            (
                used(900, 0.80),
                dollars,
                "$0.80 of the $1.00 of this run are used, about $0.20 are left.",
            ),
            (used(900, 1.25), dollars, "the budget of this run is used up: $1.25 of $1.00"),
            (used(85, 0.9), both, "85 of the 100 tokens"),
            (used(85, 1.0), both, "the budget of this run is used up: $1.00 of $1.00"),
        ];
        for (used, limits, said) in cases {
            match level(used, limits, 0.8, "of this run") {
                BudgetStatus::Ok => assert_eq!(said, "", "{used:?}"),
                BudgetStatus::SoftLimit(text) => {
                    assert!(text.contains(said) && text.contains("wrap up"), "{used:?}: {text}");
                }
                BudgetStatus::HardLimit(why) => assert_eq!(why, said, "{used:?}"),
            }
        }
    }

    #[test]
    fn what_is_spent_is_stored_and_read_again() {
        for (kept, spend) in [
            ("0.5 70", Spend { tokens: 70, usd: 0.5 }),
            ("0.5", Spend { tokens: 0, usd: 0.5 }),
            ("", Spend::default()),
        ] {
            assert_eq!(Spend::read(kept), spend, "{kept}");
            assert_eq!(Spend::read(&spend.write()), spend);
        }
    }

    #[test]
    fn limits_that_cannot_work_are_refused() {
        let config = BudgetConfig::default();
        let bad = [
            BudgetConfig { run_tokens: Some(0), ..config },
            BudgetConfig { day_usd: Some(0.0), ..config },
            BudgetConfig { key_day_usd: Some(f64::NAN), ..config },
            BudgetConfig { soft_share: 0.0, ..config },
            BudgetConfig { soft_share: 1.5, ..config },
        ];
        for bad in bad {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert!(config.check().is_ok());
    }
}
