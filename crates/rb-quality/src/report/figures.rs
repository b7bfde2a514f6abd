//! Numbers in words, the same in the table and on the page.

use super::Unit;
use crate::judge::Statistic;
use crate::stats::Estimate;
use crate::stats::auc::Area;
use crate::stats::rate::Rate;

/// Where there is nothing to say.
pub(super) fn dash() -> String {
    "–".to_owned()
}

/// "8 %".
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// "8 % [0–35]".
pub(super) fn rate(rate: Rate) -> String {
    if rate.of == 0 {
        return dash();
    }
    let Estimate { value, low, high } = rate.share;
    format!("{:.0} % [{:.0}–{:.0}]", value * 100.0, low * 100.0, high * 100.0)
}

/// "8 % [0–35] of 12".
pub(super) fn rate_of(rate: Rate) -> String {
    if rate.of == 0 { dash() } else { format!("{} of {}", self::rate(rate), rate.of) }
}

/// "0.62 [0.55–0.70]".
pub(super) fn estimate(Estimate { value, low, high }: Estimate) -> String {
    let to = if low < 0.0 { " to " } else { "–" };
    format!("{} [{}{to}{}]", two(value), two(low), two(high))
}

/// "0.62 [0.55–0.70]", or a dash.
pub(super) fn area(area: Option<Area>) -> String {
    area.map_or_else(dash, |area| estimate(area.area))
}

/// "0.62", or a dash.
pub(super) fn plain(area: Option<Area>) -> String {
    area.map_or_else(dash, |area| two(area.area.value))
}

/// "9.5 %" or "0.634".
pub(super) fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::Area => format!("{value:.3}"),
    }
}

/// "mean".
pub(super) fn statistic(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Mean => "mean",
        Statistic::Peak => "peak",
        Statistic::Last => "last",
    }
}

/// "24 runs", "1 run".
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Two digits; never "-0.00".
fn two(value: f64) -> String {
    let shown = format!("{value:.2}");
    if shown == "-0.00" { "0.00".to_owned() } else { shown.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        let lift = |value, low, high| estimate(Estimate { value, low, high });
        assert_eq!(lift(0.62, 0.55, 0.7), "0.62 [0.55–0.70]");
        assert_eq!(lift(-0.001, -0.03, 0.004), "0.00 [−0.03 to 0.00]");
        assert_eq!(rate(Rate::wilson(0, 0)), "–");
        assert_eq!(rate_of(Rate::wilson(5, 10)), "50 % [24–76] of 10");
        assert_eq!(
            (value(0.0952, Unit::Share), value(0.6344, Unit::Area)),
            ("9.5 %".into(), "0.634".into())
        );
    }
}
