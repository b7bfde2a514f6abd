//! Terminal output: results go to standard output, everything else to standard error.
//!
//! Text from transcripts is untrusted. Callers pass it through `escape_control`, `short` or `fitted`.

/// Full-screen mode.
mod terminal;

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

use rb_view::text::is_invisible;
pub(crate) use rb_view::text::{counted, grouped};
pub(crate) use terminal::Terminal;
use unicode_width::UnicodeWidthChar as _;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();

/// Line width if standard output is not a terminal.
const DEFAULT_WIDTH: usize = 100;
const MIN_WIDTH: usize = 40;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// Standard output and standard error with a shared progress bar.
pub(crate) struct Out {
    stdout: AutoStream<io::Stdout>,
    stderr: AutoStream<io::Stderr>,
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

    /// Returns the number of columns of standard output.
    pub(crate) fn width() -> usize {
        let terminal = terminal_size::terminal_size_of(io::stdout());
        let width = terminal.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
        width.max(MIN_WIDTH)
    }

    /// Returns whether results are coloured.
    pub(crate) fn is_colored(&self) -> bool {
        self.stdout.current_choice() != ColorChoice::Never
    }

    /// Returns whether log lines on standard error are coloured.
    pub(crate) fn is_stderr_colored(&self) -> bool {
        self.stderr.current_choice() != ColorChoice::Never
    }

    /// Starts a progress bar for counted work; hidden if standard error is not a terminal.
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

    /// Shows the number of bytes done on a terminal; `total` is `None` if unknown.
    pub(crate) fn progress(&mut self, done: u64, total: Option<u64>) {
        if self.bar.is_none() && io::stderr().is_terminal() {
            self.bar = Some(byte_bar(total));
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

    /// Writes part of the result. Styles are removed if colour is off.
    pub(crate) fn result(&mut self, text: &str) -> io::Result<()> {
        let stdout = &mut self.stdout;
        suspending(self.bar.as_ref(), || stdout.write_all(text.as_bytes()))
    }

    /// Writes part of the result that contains no styles, without scanning it for them.
    pub(crate) fn plain_result(&mut self, text: &str) -> io::Result<()> {
        suspending(self.bar.as_ref(), || io::stdout().write_all(text.as_bytes()))
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    pub(crate) fn note(&mut self, text: &str) {
        self.log(GREEN, "note", text);
    }

    pub(crate) fn warning(&mut self, text: &str) {
        self.log(YELLOW, "warning", text);
    }

    pub(crate) fn error(&mut self, text: &str) {
        self.log(RED, "error", text);
    }

    /// Writes styled text to standard error.
    pub(crate) fn write_stderr(&mut self, text: &str) {
        let stderr = &mut self.stderr;
        // A failing standard error leaves no place for a report.
        drop(suspending(self.bar.as_ref(), || stderr.write_all(text.as_bytes())));
    }

    fn log(&mut self, style: Style, level: &str, text: &str) {
        self.write_stderr(&format!("{style}{level}{style:#}: {}\n", escape_control(text)));
    }
}

/// Progress of counted work, shared between threads.
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

/// Hides the progress bar during a write to the same terminal.
fn suspending<T>(bar: Option<&ProgressBar>, write: impl FnOnce() -> T) -> T {
    match bar {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

fn byte_bar(total: Option<u64>) -> ProgressBar {
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

/// Escapes characters that move the cursor, change colours, reverse the text direction or are invisible.
pub(crate) fn escape_control(text: &str) -> Cow<'_, str> {
    if !text.contains(needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            c if needs_escape(c) => escaped.extend(c.escape_unicode()),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

fn needs_escape(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_invisible(c)
}

/// Truncates to `max` characters and escapes the result.
pub(crate) fn short(text: &str, max: usize) -> String {
    let cut: String = text.chars().take(max + 1).collect();
    if cut.chars().count() <= max {
        return escape_control(&cut).into_owned();
    }
    let kept: String = cut.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", escape_control(&kept))
}

/// Escapes, then truncates or pads to exactly `columns` terminal columns.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    let mut shown = String::with_capacity(columns);
    let mut used = 0;
    for c in text.chars() {
        let (end, used_before) = (shown.len(), used);
        match escape_control(c.encode_utf8(&mut [0; 4])) {
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
            shown.truncate(end);
            used = used_before;
            // Frees a column for the ellipsis.
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

/// Escapes the text and breaks it between words into lines of at most `width` characters.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines().filter(|line| !line.trim().is_empty()) {
        let (mut line, mut used) = (String::new(), 0);
        for word in paragraph.split_whitespace().map(escape_control) {
            let len = word.chars().count();
            if used > 0 && used + 1 + len > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += len;
        }
        lines.push(line);
    }
    lines
}

/// Draws a score between 0 and 1 as one character.
pub(crate) fn bar(score: f64) -> char {
    if score <= 0.0 {
        return '·';
    }
    let thresholds = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];
    BARS[thresholds.iter().filter(|threshold| score > **threshold).count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, shown) in [
            ("plain ünïcode ✓", "plain ünïcode ✓"),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\r\nb\t", "a\\u{d}\\nb\\t"),
            ("\u{202e}gpj.exe\u{2066}", "\\u{202e}gpj.exe\\u{2066}"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
        ] {
            assert_eq!(escape_control(text), shown);
        }
    }

    #[test]
    fn fitted_text_has_the_exact_width() {
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
    fn numbers_and_names_are_formatted() {
        assert_eq!((short("abcdef", 6), short("abcdefg", 6)), ("abcdef".into(), "abcde…".into()));
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((counted(1, "run"), counted(0, "run")), ("1 run".into(), "0 runs".into()));
        let scores = [0.0, 0.001, 0.125, 0.126, 0.5, 0.6, 0.875, 0.876, 1.0, f64::NAN];
        assert_eq!(scores.map(bar).iter().collect::<String>(), "·▁▁▂▄▅▇██▁");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three\n\nfour", 8), ["one two", "three", "four"]);
        assert_eq!(wrapped("averyverylongword b", 5), ["averyverylongword", "b"]);
    }
}
