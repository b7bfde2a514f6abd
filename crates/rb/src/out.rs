//! The only place that prints: results to standard output, everything else to standard error.
//!
//! Text from transcripts is untrusted; whoever formats it passes it through `harmless` first.

/// The whole screen.
mod terminal;

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use rb_view::text::grouped;
use rb_view::text::is_invisible;
pub(crate) use terminal::Terminal;
use unicode_width::UnicodeWidthChar as _;

use crate::cli::Color;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();

/// Where no terminal says how wide it is.
const WIDTH_DEFAULT: usize = 100;
const WIDTH_MIN: usize = 40;

/// The way to the reader.
pub(crate) struct Out {
    stdout: AutoStream<io::Stdout>,
    stderr: AutoStream<io::Stderr>,
    /// There once something takes long.
    bar: Option<ProgressBar>,
}

impl Out {
    pub(crate) fn new(color: Color) -> Self {
        let choice = match color {
            Color::Auto => None,
            Color::Always => Some(ColorChoice::AlwaysAnsi),
            Color::Never => Some(ColorChoice::Never),
        };
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let stdout_choice = choice.unwrap_or_else(|| AutoStream::choice(&stdout));
        let stderr_choice = choice.unwrap_or_else(|| AutoStream::choice(&stderr));
        Self {
            stdout: AutoStream::new(stdout, stdout_choice),
            stderr: AutoStream::new(stderr, stderr_choice),
            bar: None,
        }
    }

    /// How many columns a line of standard output has.
    pub(crate) fn width() -> usize {
        let terminal = terminal_size::terminal_size_of(io::stdout());
        let width = terminal.map_or(WIDTH_DEFAULT, |(width, _)| usize::from(width.0));
        width.max(WIDTH_MIN)
    }

    /// Whether results are shown in colour.
    pub(crate) fn is_colored(&self) -> bool {
        self.stdout.current_choice() != ColorChoice::Never
    }

    /// A bar for work that is counted, if somebody is looking; it goes when it is dropped.
    pub(crate) fn work(what: &'static str) -> Work {
        if !io::stderr().is_terminal() {
            return Work(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} % {msg} {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Work(bar)
    }

    /// Shows how far a long piece of work has come, if somebody is looking. Without `total`, nobody
    /// knows how long it is.
    pub(crate) fn progress(&mut self, done: u64, total: Option<u64>) {
        if self.bar.is_none() && io::stderr().is_terminal() {
            self.bar = Some(bar(total));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }

    pub(crate) fn progress_done(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// A piece of the result. Styles are taken out where colour is not wanted.
    pub(crate) fn result(&mut self, text: &str) -> io::Result<()> {
        let stdout = &mut self.stdout;
        beside(self.bar.as_ref(), || stdout.write_all(text.as_bytes()))
    }

    /// A piece of the result that holds no styles.
    pub(crate) fn plain_result(&mut self, text: &str) -> io::Result<()> {
        beside(self.bar.as_ref(), || io::stdout().write_all(text.as_bytes()))
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    /// Something worth knowing beside the result.
    pub(crate) fn note(&mut self, text: &str) {
        self.say(GREEN, "note", text);
    }

    pub(crate) fn warning(&mut self, text: &str) {
        self.say(YELLOW, "warning", text);
    }

    pub(crate) fn error(&mut self, text: &str) {
        self.say(RED, "error", text);
    }

    /// A text with styles, beside the result.
    pub(crate) fn aside(&mut self, text: &str) {
        let stderr = &mut self.stderr;
        // Nobody is left to tell if standard error is gone.
        drop(beside(self.bar.as_ref(), || stderr.write_all(text.as_bytes())));
    }

    fn say(&mut self, style: Style, word: &str, text: &str) {
        let line = format!("{style}{word}{style:#}: {}\n", harmless(text));
        let stderr = &mut self.stderr;
        // Nobody is left to tell if standard error is gone.
        drop(beside(self.bar.as_ref(), || stderr.write_all(line.as_bytes())));
    }
}

/// Counted work that somebody may watch, from any thread.
pub(crate) struct Work(ProgressBar);

impl Work {
    pub(crate) fn planned(&self, more: usize) {
        self.0.inc_length(u64::try_from(more).unwrap_or(0));
    }

    pub(crate) fn done(&self, more: usize) {
        self.0.inc(u64::try_from(more).unwrap_or(0));
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Takes the bar away while something else is written to the same screen.
fn beside<T>(bar: Option<&ProgressBar>, write: impl FnOnce() -> T) -> T {
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total), "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        }
        None => (ProgressBar::no_length(), "{spinner} {bytes} {bytes_per_sec}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The text with everything that could move the cursor, colour the screen, reverse the reading
/// direction or hide written as an escape.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if is_harmful(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

fn is_harmful(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_invisible(c)
}

/// At most `max` characters, harmless.
pub(crate) fn short(text: &str, max: usize) -> String {
    let cut: String = text.chars().take(max + 1).collect();
    if cut.chars().count() <= max {
        return harmless(&cut).into_owned();
    }
    let kept: String = cut.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", harmless(&kept))
}

/// Exactly `columns` wide on the screen, harmless: cut where it is longer, filled up where it is shorter.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    let mut shown = String::with_capacity(columns);
    let mut used = 0;
    // A character may take several columns, and an escape many; no more are looked at than can be shown.
    for c in text.chars() {
        let (from, before) = (shown.len(), used);
        match harmless(c.encode_utf8(&mut [0; 4])) {
            Cow::Borrowed(_) => {
                shown.push(c);
                used += c.width().unwrap_or_default();
            }
            Cow::Owned(escaped) => {
                used += escaped.len();
                shown.push_str(&escaped);
            }
        }
        if used > columns {
            shown.truncate(from);
            used = before;
            // The mark of a cut needs a column of its own.
            while used + 1 > columns {
                let Some(last) = shown.pop() else { break };
                used -= last.width().unwrap_or_default();
            }
            if columns > 0 {
                shown.push('…');
                used += 1;
            }
            break;
        }
    }
    shown.extend(std::iter::repeat_n(' ', columns.saturating_sub(used)));
    shown
}

/// "1 run", "2 runs", "1,000 runs".
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hostile_reaches_the_terminal() {
        for (text, shown) in [
            ("plain ünïcode ✓", "plain ünïcode ✓"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\r\nb\t", "a\\u{d}\\nb\\t"),
            ("\u{202e}gpj.exe\u{2066}", "\\u{202e}gpj.exe\\u{2066}"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
        ] {
            assert_eq!(harmless(text), shown);
        }
    }

    #[test]
    fn columns_are_exact() {
        for (text, columns, shown) in [
            ("abc", 5, "abc  "),
            ("abcdef", 5, "abcd…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日… "),
            ("a\u{1b}[2J", 12, "a\\u{1b}[2J  "),
            ("a\u{1b}", 4, "a…  "),
            ("a\u{300}b", 2, "a\u{300}b"),
            ("abc", 0, ""),
        ] {
            assert_eq!(fitted(text, columns), shown, "{text:?} {columns}");
        }
    }

    #[test]
    fn long_names_are_cut_and_numbers_grouped() {
        assert_eq!((short("abcdef", 6), short("abcdefg", 6)), ("abcdef".into(), "abcde…".into()));
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((counted(1, "run"), counted(0, "run")), ("1 run".into(), "0 runs".into()));
    }
}
