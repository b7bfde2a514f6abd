//! Charts of the dashboard: values by day, and a difference with its interval.

use jiff::Timestamp;
use maud::{Markup, html};

/// View box; the chart scales with the page.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 84.0;
const FLOOR: f64 = 66.0;
const TOP: f64 = 14.0;

/// Converts a count for divisions.
pub fn real(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// Bar chart with one bar per day; `None` is a day without data.
pub struct DailyBars<'a> {
    /// Title.
    pub what: &'a str,
    /// Day of the first value, counted from 1970.
    pub first_day: i64,
    pub values: Vec<Option<f64>>,
    /// Value of a full bar.
    pub max: f64,
    /// CSS class of the bars.
    pub class: &'a str,
    pub format: &'a dyn Fn(f64) -> String,
}

impl DailyBars<'_> {
    pub fn render(&self) -> Markup {
        let count = u32::try_from(self.values.len().max(1)).map_or(1.0, f64::from);
        let column = WIDTH / count;
        let last_day =
            self.first_day + i64::try_from(self.values.len()).unwrap_or(1).saturating_sub(1);
        let bars = self.values.iter().zip(0_u32..).filter_map(|(value, place)| {
            let value = (*value)?;
            let share = if self.max > 0.0 { (value / self.max).clamp(0.0, 1.0) } else { 0.0 };
            let height = ((FLOOR - TOP) * share).max(if value > 0.0 { 1.5 } else { 0.0 });
            Some((f64::from(place) * column, height, self.first_day + i64::from(place), value))
        });
        html! {
            figure.days {
                figcaption { (self.what) }
                svg.chart.wide viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(self.description()) {
                    line.rule x1="0" x2=(WIDTH) y1=(FLOOR) y2=(FLOOR) {}
                    line.rule.faint x1="0" x2=(WIDTH) y1=(TOP) y2=(TOP) {}
                    text.tick.first x="0" y=(TOP - 4.0) { ((self.format)(self.max)) }
                    @for (x, height, day, value) in bars {
                        g { title { (iso_day(day)) ": " ((self.format)(value)) }
                            rect class=(self.class) x=(tenth(x + column * 0.1)) y=(tenth(FLOOR - height)) width=(tenth(column * 0.8)) height=(tenth(height)) rx="1" {} }
                    }
                    text.tick.first x="0" y=(HEIGHT - 3.0) { (iso_day(self.first_day)) }
                    text.tick.last x=(WIDTH) y=(HEIGHT - 3.0) { (iso_day(last_day)) }
                }
            }
        }
    }

    fn description(&self) -> String {
        let known: Vec<f64> = self.values.iter().copied().flatten().collect();
        let highest = known.iter().copied().fold(0.0, f64::max);
        format!("{}: {} days with data, at most {}", self.what, known.len(), (self.format)(highest))
    }
}

fn iso_day(day: i64) -> String {
    let midnight = Timestamp::from_second(day.saturating_mul(86_400)).unwrap_or_default();
    midnight.strftime("%F").to_string()
}

fn tenth(length: f64) -> String {
    format!("{length:.1}")
}

/// Renders a difference and its 95 % interval on an axis around zero.
pub fn interval(what: &str, delta: f64, from: f64, to: f64) -> Markup {
    let reach = [delta, from, to].into_iter().map(f64::abs).fold(0.05, f64::max) * 1.1;
    let place = |value: f64| WIDTH / 2.0 * (1.0 + (value / reach).clamp(-1.0, 1.0));
    let class = if from > 0.0 {
        "good"
    } else if to < 0.0 {
        "bad"
    } else {
        "open"
    };
    let percent = |value: f64| format!("{:+.1} points", value * 100.0);
    html! {
        svg class={ "chart wide interval " (class) } viewBox={ "0 0 " (WIDTH) " 58" } role="img"
            aria-label={ (what) ": " (percent(delta)) ", between " (percent(from)) " and " (percent(to)) } {
            line.rule x1="0" x2=(WIDTH) y1="28" y2="28" {}
            line.zero x1=(WIDTH / 2.0) x2=(WIDTH / 2.0) y1="12" y2="44" {}
            line.span x1=(tenth(place(from))) x2=(tenth(place(to))) y1="28" y2="28" {}
            @for end in [from, to] { line.end x1=(tenth(place(end))) x2=(tenth(place(end))) y1="21" y2="35" {} }
            circle.point cx=(tenth(place(delta))) cy="28" r="6" {}
            text.tick.first x="0" y="55" { "steered is worse" }
            text.tick x=(WIDTH / 2.0) y="55" { "no difference" }
            text.tick.last x=(WIDTH) y="55" { "steered is better" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_coloured_by_its_sign() {
        for (delta, from, to, class) in
            [(0.2, 0.1, 0.3, "good"), (-0.2, -0.3, -0.1, "bad"), (0.0, -0.1, 0.1, "open")]
        {
            let svg = interval("success", delta, from, to).into_string();
            assert!(svg.contains(&format!("interval {class}")), "{svg}");
        }
    }

    #[test]
    fn a_day_without_data_has_no_bar_and_the_maximum_is_full() {
        let format = |value: f64| format!("{value}");
        let values = vec![None, Some(0.0), Some(2.0), Some(4.0)];
        let chart = DailyBars {
            what: "cost",
            first_day: 20_000,
            values,
            max: 4.0,
            class: "bar",
            format: &format,
        };
        let svg = chart.render().into_string();
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains("height=\"52.0\"") && svg.contains("height=\"26.0\""), "{svg}");
        assert!(svg.contains("2024-10-04") && svg.contains("2024-10-07"), "{svg}");
    }
}
