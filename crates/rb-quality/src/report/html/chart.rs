//! Small pictures: marks with their intervals on a line from 0 to 1.

use std::fmt::Write as _;

use super::escape::Escaped;
use crate::stats::Estimate;

/// The line from 0 to 1, in the units of the picture, with room for half a mark on both sides.
const WIDTH: f64 = 200.0;
const MARGIN: f64 = 6.0;
/// A mark a lane.
const LANE: f64 = 14.0;
/// The radius of a mark.
const RADIUS: f64 = 4.0;

/// How a mark looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// What counts: failures, matched areas, recall.
    Full,
    /// What it is compared with: successes, raw areas, the part held out.
    Hollow,
}

/// One number on the line.
pub(super) struct Mark {
    pub(super) at: Estimate,
    pub(super) look: Look,
}

/// A place on the line that all marks are read against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Tick {
    /// A coin, or alarms at random.
    Chance(f64),
    /// The number to reach.
    Target(f64),
}

/// The picture, with its meaning in words for whoever cannot see it.
pub(super) fn strip(marks: &[Mark], ticks: &[Tick], words: &str) -> String {
    if marks.is_empty() {
        return String::new();
    }
    let height = LANE * lanes(marks.len());
    let full = WIDTH + 2.0 * MARGIN;
    let mut out = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {full} {height}\" role=\"img\" aria-label=\"{}\">",
        Escaped(words)
    );
    let (start, end) = (x(0.0), x(1.0));
    for place in [0.0, 0.25, 0.5, 0.75, 1.0].map(x) {
        let _ = write!(out, "<path class=\"grid\" d=\"M{place:.1} 0V{height}\"/>");
    }
    for tick in ticks {
        let (class, place) = match tick {
            Tick::Chance(place) => ("chance", x(*place)),
            Tick::Target(place) => ("target", x(*place)),
        };
        let _ = write!(out, "<path class=\"{class}\" d=\"M{place:.1} 0V{height}\"/>");
    }
    for (lane, mark) in marks.iter().enumerate() {
        let y = LANE * (lanes(lane) + 0.5);
        let class = match mark.look {
            Look::Full => "full",
            Look::Hollow => "hollow",
        };
        let (low, high, value) = (x(mark.at.low), x(mark.at.high), x(mark.at.value));
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{start} {y}H{end}\"/>\
             <path class=\"whisker\" d=\"M{low:.1} {y}H{high:.1}\"/>\
             <circle class=\"{class}\" cx=\"{value:.1}\" cy=\"{y}\" r=\"{RADIUS}\"/>"
        );
    }
    out.push_str("</svg>");
    out
}

fn lanes(count: usize) -> f64 {
    crate::stats::real(count)
}

/// Where a share stands.
fn x(share: f64) -> f64 {
    MARGIN + WIDTH * share.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stay_on_the_line() {
        let at = Estimate { value: 0.5, low: -1.0, high: 7.0 };
        let picture = strip(&[Mark { at, look: Look::Full }], &[Tick::Target(0.25)], "a \"b\"");
        assert!(picture.contains("M6.0 7H206.0"), "{picture}");
        assert!(picture.contains("cx=\"106.0\"") && picture.contains("M56.0 0V14"), "{picture}");
        assert!(picture.contains("aria-label=\"a &quot;b&quot;\""), "{picture}");
        assert_eq!(strip(&[], &[], ""), "");
    }
}
