//! `rb watch`: what the agents of a server do, as it happens.
//!
//! The server's list says which runs there are, its stream tells every step. On a terminal they make a screen; where
//! there is none, a line a step.

/// What comes in: keys, steps, answers.
mod client;
/// What is known of the runs.
mod model;
/// The screen as text.
mod render;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rb_runtime::clock::now_ms;

use self::client::{Feed, News};
use self::model::{Board, Told};
use self::render::{Detail, Frame};
use crate::exit::Exit;
use crate::settings::{DataArgs, Settings};
use crate::ui::{Out, Terminal, YELLOW, short};

/// The screen is drawn at most this often, however much happens.
const DRAW_EVERY: Duration = Duration::from_millis(50);
/// Costs and outcomes are asked for this often while steps are told.
const LIST_EVERY: Duration = Duration::from_secs(2);
/// Strips that are asked for together.
const STRIPS_AT_ONCE: usize = 40;
/// Keys that move, and how far down.
const MOVES: [(KeyCode, isize); 6] = [
    (KeyCode::Up, -1),
    (KeyCode::Char('k'), -1),
    (KeyCode::Down, 1),
    (KeyCode::Char('j'), 1),
    (KeyCode::PageUp, -10),
    (KeyCode::PageDown, 10),
];

/// Shows the agents of a running server live.
///
/// One line per run: agent, model, number of steps, recent scores, alarms and cost. Enter shows a run in full. If
/// standard output is not a terminal, every step is a plain line.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct WatchArgs {
    /// Server to watch; default: `REASONBLOCKS_BASE_URL` or the address in the settings.
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// API key; default: `REASONBLOCKS_API_KEY`.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Print plain lines, even on a terminal.
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    data: DataArgs,
}

const AFTER_HELP: &str = "\
Keys:
  up, down, k, j   select a run, or scroll
  enter            show the run in full
  escape, left     back to the list
  f                only runs with alarms
  q, control-C     quit

Examples:
  rb watch
  rb watch --url http://build-server:9000 --key rb_live_…
  rb watch | grep fired";

pub(crate) fn run(args: &WatchArgs, out: &mut Out) -> Result<Exit> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let url = match args.url.clone().or_else(|| variable("REASONBLOCKS_BASE_URL")) {
        Some(url) => url,
        None => format!("http://{}", Settings::load(&args.data)?.raw.listen),
    };
    let key = args.key.clone().or_else(|| variable("REASONBLOCKS_API_KEY"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let on_screen = Terminal::is_there() && !args.plain;
        let mut feed = Feed::new(&url, key)
            .await
            .with_context(|| format!("cannot watch {url}; is `rb serve` running there?"))?;
        if on_screen {
            let terminal = Terminal::take(out.is_colored()).context("cannot use the terminal")?;
            feed.listen_to_keys();
            Watch::new(&url).on_screen(&mut feed, &terminal).await
        } else {
            Watch::new(&url).in_lines(&mut feed, out).await
        }
    });
    // A thread may still wait for a key; it ends with the process.
    runtime.shutdown_background();
    match ended {
        Ok(()) => Ok(Exit::Quiet),
        // Whoever read along has seen enough.
        Err(error) if is_closed_pipe(&error) => Ok(Exit::Quiet),
        Err(error) => Err(error),
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Everything that the screen depends on.
struct Watch<'a> {
    url: &'a str,
    board: Board,
    /// The run that is shown in full, and how far back.
    open: Option<Open>,
    trouble: Option<String>,
    /// Something was told that the list does not say yet.
    is_behind: bool,
}

/// A run that is shown in full.
#[derive(Default)]
struct Open {
    org: String,
    run_id: String,
    detail: Option<Detail>,
    back: usize,
    back_max: usize,
}

/// Whether to go on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    On,
    End,
}

impl<'a> Watch<'a> {
    fn new(url: &'a str) -> Self {
        Self { url, board: Board::default(), open: None, trouble: None, is_behind: true }
    }

    async fn on_screen(&mut self, feed: &mut Feed, terminal: &Terminal) -> Result<()> {
        let mut listed = tokio::time::interval(LIST_EVERY);
        let mut drawn = tokio::time::interval(DRAW_EVERY);
        drawn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_stale = true;
        loop {
            tokio::select! {
                news = feed.next() => {
                    is_stale = true;
                    if self.take(news, feed) == Next::End {
                        return Ok(());
                    }
                }
                _ = listed.tick() => {
                    if std::mem::take(&mut self.is_behind) {
                        self.catch_up(feed);
                    }
                    is_stale = true; // a silent run is not running any more
                }
                _ = drawn.tick(), if is_stale => {
                    is_stale = false;
                    let (columns, lines) = Terminal::size();
                    terminal.draw(&self.lines(columns, lines, now_ms()))?;
                }
            }
        }
    }

    /// Asks for what the stream does not tell: costs, outcomes, the words of an open run.
    fn catch_up(&self, feed: &mut Feed) {
        feed.ask_list();
        if let Some(open) = &self.open {
            let run = self.board.find(&open.org, &open.run_id);
            let newest = run.map_or(0, |run| run.listed.step_count);
            feed.ask_detail(&open.org, &open.run_id, newest);
        }
    }

    /// What is shown at the moment.
    fn lines(&mut self, columns: usize, lines: usize, now_ms: i64) -> Vec<String> {
        let trouble = self.trouble.as_deref();
        let frame = Frame { url: self.url, trouble, columns, lines, now_ms };
        let Some(open) = &mut self.open else { return render::list(&self.board, &frame) };
        match &open.detail {
            Some(detail) => {
                let (lines, back_max) = render::detail(detail, open.back, &frame);
                open.back_max = back_max;
                lines
            }
            None => render::detail(&Detail::default(), 0, &frame).0,
        }
    }

    fn take(&mut self, news: News, feed: &mut Feed) -> Next {
        match news {
            News::Key(key) => return self.key(key, feed),
            News::Resized => {}
            News::End => return Next::End,
            News::Listening => {
                self.trouble = None;
                feed.ask_list();
            }
            News::Trouble(why) => self.trouble = Some(why),
            News::Step(told) => self.hear(&told, feed),
            News::Listed(runs) => {
                self.board.list(runs, now_ms(), client::time_ms);
                for run in self.board.shown().filter(|run| run.lacks_strip()).take(STRIPS_AT_ONCE) {
                    feed.ask_strip(&run.listed);
                }
            }
            News::Strip { org, run_id, steps } => self.board.fill(&org, &run_id, &steps),
            News::Detail(detail) => {
                let is_open = |open: &&mut Open| open.run_id == detail.run.run_id;
                if let Some(open) = self.open.as_mut().filter(is_open) {
                    open.detail = Some(*detail);
                }
            }
        }
        Next::On
    }

    fn hear(&mut self, told: &Told, feed: &mut Feed) {
        self.is_behind = true;
        if !self.board.hear(told, now_ms()) {
            feed.ask_list();
        }
        if let Some(open) = &self.open
            && (open.org.as_str(), open.run_id.as_str()) == (&told.org_id, &told.run_id)
        {
            feed.ask_detail(&open.org, &open.run_id, told.step_index);
        }
    }

    fn key(&mut self, key: KeyEvent, feed: &mut Feed) -> Next {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let code = key.code;
        if code == KeyCode::Char('q') || is_control && matches!(code, KeyCode::Char('c' | 'd')) {
            return Next::End;
        }
        if let Some((_, by)) = MOVES.iter().find(|(key, _)| *key == code) {
            self.move_by(*by);
        } else if matches!(code, KeyCode::Esc | KeyCode::Left | KeyCode::Backspace) {
            self.open = None;
        } else if code == KeyCode::Char('f') && self.open.is_none() {
            self.board.only_fired = !self.board.only_fired;
        } else if matches!(code, KeyCode::Enter | KeyCode::Right)
            && self.open.is_none()
            && let Some(run) = self.board.selected()
        {
            let (org, run_id) = (run.listed.org_id.clone(), run.listed.run_id.clone());
            feed.ask_detail(&org, &run_id, run.listed.step_count);
            self.open = Some(Open { org, run_id, ..Open::default() });
        }
        Next::On
    }

    fn move_by(&mut self, by: isize) {
        match &mut self.open {
            None => self.board.move_by(by),
            Some(open) => open.back = open.back.saturating_add_signed(-by).min(open.back_max),
        }
    }

    /// A line a step, for programs and pagers.
    async fn in_lines(&mut self, feed: &mut Feed, out: &mut Out) -> Result<()> {
        loop {
            match feed.next().await {
                News::End => return Ok(()),
                News::Listening => feed.ask_list(),
                News::Trouble(why) => out.warning(&why),
                News::Listed(runs) => self.board.list(runs, now_ms(), client::time_ms),
                News::Step(told) => {
                    if !self.board.hear(&told, now_ms()) {
                        feed.ask_list();
                    }
                    out.result(&self.plain_line(&told))?;
                    out.finish()?;
                }
                News::Key(_) | News::Resized | News::Strip { .. } | News::Detail(_) => {}
            }
        }
    }

    fn plain_line(&self, told: &Told) -> String {
        let run = self.board.find(&told.org_id, &told.run_id).map(|run| &run.listed);
        let name = |text: Option<&String>| {
            text.filter(|text| !text.is_empty()).map_or("-".to_owned(), |text| short(text, 40))
        };
        let fired = match told.fired.as_slice() {
            [] => String::new(),
            fired => format!("  {YELLOW}fired: {}{YELLOW:#}", short(&fired.join(", "), 160)),
        };
        format!(
            "{}  {}  {}  step {}  {:.2}{fired}\n",
            short(&told.run_id, 80),
            name(run.map(|run| &run.agent_name)),
            name(run.map(|run| &run.model)),
            told.step_index,
            told.total_score,
        )
    }
}
