//! The whole screen, for as long as something is watched: taken over, drawn on, and given back however it ends.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Once;

use anstream::StripStream;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap,
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

/// A terminal that is ours until this is dropped.
pub(crate) struct Terminal {
    is_colored: bool,
}

impl Terminal {
    /// Whether both what is typed and what is shown go through a terminal.
    pub(crate) fn is_there() -> bool {
        io::stdout().is_terminal() && io::stdin().is_terminal()
    }

    /// Takes the terminal over. A panic gives it back before it is told.
    pub(crate) fn take(is_colored: bool) -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        enable_raw_mode()?;
        // From here on, dropping it gives everything back.
        let taken = Self { is_colored };
        execute!(io::stdout(), EnterAlternateScreen, Hide, DisableLineWrap)?;
        Ok(taken)
    }

    /// Columns and lines.
    pub(crate) fn size() -> (usize, usize) {
        let (columns, lines) = size().unwrap_or((80, 24));
        (usize::from(columns), usize::from(lines))
    }

    /// Shows these lines, one a line of the screen.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(16 << 10);
        queue!(frame, BeginSynchronizedUpdate)?;
        for (line, row) in lines.iter().zip(0..) {
            queue!(frame, MoveTo(0, row))?;
            if self.is_colored {
                frame.extend_from_slice(line.as_bytes());
            } else {
                StripStream::new(&mut frame).write_all(line.as_bytes())?;
            }
            queue!(frame, Clear(ClearType::UntilNewLine))?;
        }
        // Below the last line of the screen there is nothing, and moving there would end up on it.
        if let Ok(row) = u16::try_from(lines.len())
            && lines.len() < Self::size().1
        {
            queue!(frame, MoveTo(0, row), Clear(ClearType::FromCursorDown))?;
        }
        queue!(frame, EndSynchronizedUpdate)?;
        let mut stdout = io::stdout().lock();
        stdout.write_all(&frame)?;
        stdout.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Nobody is left to tell if this fails.
fn give_back() {
    drop(execute!(io::stdout(), EndSynchronizedUpdate, EnableLineWrap, Show, LeaveAlternateScreen));
    drop(disable_raw_mode());
}
