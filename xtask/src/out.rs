//! What is printed, and how long it took. The one place in this crate that prints.

use std::io::Write as _;
use std::time::Duration;

/// Prints a line on standard output. Nobody listening is no reason to fail.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", line.trim_end());
}

/// Prints a line on standard error.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", line.trim_end());
}

/// "0.8 s", "1 min 20 s".
pub(crate) fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    if whole < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

/// A whole number with commas: "8,192".
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 12, 999, 8_192, 1_234_567].map(grouped).join(" "),
            "0 12 999 8,192 1,234,567"
        );
        assert_eq!(seconds(Duration::from_millis(840)), "0.8 s");
        assert_eq!(seconds(Duration::from_secs(80)), "1 min 20 s");
    }
}
