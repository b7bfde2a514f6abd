//! Full-screen drawing on a terminal, with restoration on drop and on panic.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Once;

use anstream::adapter::strip_str;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};

/// Raw mode and alternate screen, until dropped.
pub(crate) struct Terminal {
    is_colored: bool,
}

impl Terminal {
    pub(crate) fn is_available() -> bool {
        io::stdout().is_terminal() && io::stdin().is_terminal()
    }

    /// Enters raw mode and the alternate screen. The panic hook restores both before the message is printed.
    pub(crate) fn enter(is_colored: bool) -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                previous(panic);
            }));
        });
        enable_raw_mode()?;
        let terminal = Self { is_colored };
        execute!(io::stdout(), EnterAlternateScreen, Hide, DisableLineWrap)?;
        Ok(terminal)
    }

    /// Returns columns and lines.
    pub(crate) fn size() -> (usize, usize) {
        let (columns, lines) = size().unwrap_or((80, 24));
        (usize::from(columns), usize::from(lines))
    }

    /// Draws the lines from the top in one write; they fill the screen.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut frame = Vec::new();
        for (line, row) in lines.iter().zip(0..) {
            queue!(frame, MoveTo(0, row))?;
            if self.is_colored {
                frame.extend_from_slice(line.as_bytes());
            } else {
                write!(frame, "{}", strip_str(line))?;
            }
            queue!(frame, Clear(ClearType::UntilNewLine))?;
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(&frame)?;
        stdout.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Ignores errors: there is no terminal left to report them to.
fn restore() {
    drop(execute!(io::stdout(), EnableLineWrap, Show, LeaveAlternateScreen));
    drop(disable_raw_mode());
}
