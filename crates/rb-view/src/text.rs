//! Escaping and formatting of texts and numbers.

use maud::{Escaper, Render};
use std::fmt::Write as _;

/// Untrusted text and the maximum number of characters of it to render: escaped, with invisible characters made
/// visible.
#[derive(Debug)]
pub struct EscapedText<'a>(pub &'a str, pub usize);

/// Renders a name, truncated at 200 characters.
pub fn name(text: &str) -> EscapedText<'_> {
    EscapedText(text, MAX_NAME_CHARS)
}

const MAX_NAME_CHARS: usize = 200;

impl Render for EscapedText<'_> {
    fn render_to(&self, buffer: &mut String) {
        let mut out = Escaper::new(buffer);
        let end = self.0.char_indices().nth(self.1).map_or(self.0.len(), |(at, _)| at);
        for c in self.0[..end].chars() {
            let _ = match c {
                '\r' => Ok(()), // `\n` renders the line break
                c if is_invisible(c) => write!(out, "\\u{{{:x}}}", u32::from(c)),
                c => out.write_char(c),
            }; // writing to a string cannot fail
        }
        if end < self.0.len() {
            let omitted = self.0.len() - end;
            let _ = write!(out, " … ({} more not shown)", bytes(omitted));
        }
    }
}

/// Returns true for characters that move the cursor, change the text direction or are not displayed, except line
/// breaks and tabs.
pub fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Removes invisible characters from a text for a form field.
pub fn editable(text: &str) -> String {
    text.chars().filter(|c| !is_invisible(*c)).collect()
}

/// Returns the start of a text on one line.
pub fn line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    // Stops within a word: a word may have ten megabytes.
    for word in text.split_whitespace() {
        if chars > 0 {
            line.push(' ');
            chars += 1;
        }
        for c in word.chars() {
            if chars >= chars_max {
                line.push('…');
                return line;
            }
            line.push(c);
            chars += 1;
        }
    }
    line
}

fn bytes(count: usize) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{} kB", count / 1_000),
        _ => format!("{} MB", count / 1_000_000),
    }
}

/// Formats a number with thousands separators.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a count with its noun: "1 step", "2 steps".
pub fn counted(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats an amount in dollars; amounts below a cent get four decimals.
pub fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.01 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

/// Formats a duration.
pub fn duration(ms: i64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// Formats the age of an event.
pub fn ago(ms: i64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        ..1 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..1_440 => format!("{} h ago", minutes / 60),
        _ => format!("{} d ago", minutes / 1_440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_bounded_and_visible() {
        for (text, shown) in [
            ("plain ünïcode ✓\n\tx", "plain ünïcode ✓\n\tx"),
            ("<script>\"&", "&lt;script&gt;&quot;&amp;"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("\u{202e}gpj.exe\r\n", "\\u{202e}gpj.exe\n"),
            ("0123456789012345678901", "01234567890123456789 … (2 bytes more not shown)"),
        ] {
            assert_eq!(EscapedText(text, 20).render().0, shown);
        }
    }

    #[test]
    fn numbers_and_times_are_formatted_for_people() {
        assert_eq!(editable("a\u{202e}b\n\u{1b}c"), "ab\nc");
        assert_eq!(line(" a\n b  c", 9), "a b c");
        assert_eq!(line("abc def", 5), "abc d…");
        assert_eq!((grouped(1_234_567), counted(1, "step")), ("1,234,567".into(), "1 step".into()));
        assert_eq!(
            (dollars(0.0), dollars(0.0042), dollars(12.3)),
            ("$0.00".into(), "$0.0042".into(), "$12.30".into())
        );
        let cases = [(5, "5 ms"), (61_000, "1 min 01 s"), (7_260_000, "2 h 01 min")];
        for (ms, shown) in cases {
            assert_eq!(duration(ms), shown);
        }
        let past = [-5, 59_999, 60_000, 7_200_000, 172_800_000].map(ago);
        assert_eq!(past, ["just now", "just now", "1 min ago", "2 h ago", "2 d ago"]);
        assert_eq!([9_999, 10_240, 10_000_000].map(bytes), ["9999 bytes", "10 kB", "10 MB"]);
    }
}
