//! `rb watch`: live view of the runs of a server.
//!
//! On a terminal it draws a list of runs, or one run in full. Otherwise it prints one line per step.

/// Events from the server, the keyboard and signals.
mod client;
/// Runs and their newest scores.
mod model;
/// Screens as lines of text.
mod render;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rb_runtime::clock::now_ms;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{MissedTickBehavior, interval};

use self::client::{Api, Event};
use self::model::{RunKey, Runs};
use self::render::Frame;
use crate::api::{RunDetail, RunStep};
use crate::exit::Exit;
use crate::settings::{API_KEY, BASE_URL, DataArgs, Settings, variable};
use crate::ui::{Out, Terminal, YELLOW, short};

/// Capacity of the event queue.
const QUEUE_CAPACITY: usize = 4_096;
/// Minimum time between two frames.
const DRAW_INTERVAL: Duration = Duration::from_millis(50);
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// Runs per request for stored scores.
const SCORES_BATCH: usize = 40;
/// Keys that move the selection, and by how many rows.
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
    let url = match args.url.clone().or_else(|| variable(BASE_URL)) {
        Some(url) => url,
        None => format!("http://{}", Settings::load(&args.data)?.raw.listen),
    };
    let key = args.key.clone().or_else(|| variable(API_KEY));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(watch(Api { url, key }, args.plain, out));
    // The keyboard thread may still block; it ends with the process.
    runtime.shutdown_background();
    match ended {
        Ok(()) => Ok(Exit::Quiet),
        Err(error) if is_closed_pipe(&error) => Ok(Exit::Quiet),
        Err(error) => Err(error),
    }
}

async fn watch(api: Api, is_plain: bool, out: &mut Out) -> Result<()> {
    api.get::<serde_json::Value>("/v1/monitor/runs?limit=1")
        .await
        .with_context(|| format!("cannot watch {}; is `rb serve` running there?", api.url))?;
    let (sender, events) = channel(QUEUE_CAPACITY);
    tokio::spawn(api.clone().subscribe(sender.clone()));
    tokio::spawn(client::wait_for_signal(sender.clone()));
    let mut watch = Watch::new(api, sender.clone());
    if is_plain || !Terminal::is_available() {
        return watch.in_lines(events, out).await;
    }
    let terminal = Terminal::enter(out.is_colored()).context("cannot use the terminal")?;
    std::thread::spawn(move || client::read_keys(&sender));
    watch.on_screen(events, &terminal).await
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// State of the view.
struct Watch {
    api: Api,
    sender: Sender<Event>,
    runs: Runs,
    open: Option<OpenRun>,
    /// Last error of the connection.
    error: Option<String>,
    /// Events have arrived since the last refresh.
    is_stale: bool,
    is_refreshing: bool,
}

/// Run that is shown in full.
#[derive(Default)]
struct OpenRun {
    key: RunKey,
    detail: RunDetail,
    /// Lines above the end.
    scroll: usize,
}

impl Watch {
    fn new(api: Api, sender: Sender<Event>) -> Self {
        let (runs, open, error) = (Runs::default(), None, None);
        Self { api, sender, runs, open, error, is_stale: true, is_refreshing: false }
    }

    async fn on_screen(&mut self, mut events: Receiver<Event>, terminal: &Terminal) -> Result<()> {
        let (mut refresh, mut draw) = (interval(REFRESH_INTERVAL), interval(DRAW_INTERVAL));
        draw.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_drawn = false;
        loop {
            tokio::select! {
                event = events.recv() => {
                    if self.handle(event.unwrap_or(Event::Stopped)).is_break() {
                        return Ok(());
                    }
                    is_drawn = false;
                }
                // Draws as well, because runs become silent without an event.
                _ = refresh.tick() => {
                    self.refresh();
                    is_drawn = false;
                }
                _ = draw.tick(), if !is_drawn => {
                    let (columns, lines) = Terminal::size();
                    terminal.draw(&self.lines(columns, lines, now_ms()))?;
                    is_drawn = true;
                }
            }
        }
    }

    /// Starts a refresh if events have arrived and none is running.
    fn refresh(&mut self) {
        if self.is_stale && !self.is_refreshing {
            (self.is_stale, self.is_refreshing) = (false, true);
            let open = self.open.as_ref().map(|open| {
                let run = self.runs.find(&open.key);
                (open.key.clone(), run.map_or(0, |run| run.summary.step_count))
            });
            tokio::spawn(self.api.clone().refresh(open, self.sender.clone()));
        }
    }

    fn lines(&mut self, columns: usize, lines: usize, now_ms: i64) -> Vec<String> {
        let (url, error) = (self.api.url.as_str(), self.error.as_deref());
        let frame = Frame { url, error, columns, lines, now_ms };
        match &mut self.open {
            None => render::list(&self.runs, &frame),
            Some(open) => render::detail(&open.detail, &mut open.scroll, &frame),
        }
    }

    fn handle(&mut self, event: Event) -> ControlFlow<()> {
        match event {
            Event::Key(key) => return self.key(key),
            Event::Resized => {}
            Event::Stopped => return ControlFlow::Break(()),
            Event::Subscribed => (self.error, self.is_stale) = (None, true),
            Event::Failed(error) => self.error = Some(error),
            Event::Step(step) => {
                self.is_stale = true;
                self.runs.add(&step, now_ms());
            }
            Event::Runs(runs) => {
                self.runs.merge(runs, now_ms());
                let missing = self.runs.shown().filter(|run| run.lacks_scores());
                let missing = missing.map(|run| (run.key(), run.summary.step_count));
                let missing = missing.take(SCORES_BATCH).collect();
                tokio::spawn(self.api.clone().scores(missing, self.sender.clone()));
            }
            Event::Scores(key, steps) => self.runs.fill(&key, &steps),
            Event::Detail(detail) => {
                if let Some(open) = &mut self.open
                    && open.key.1 == detail.summary.run_id
                {
                    open.detail = *detail;
                }
            }
            Event::Refreshed => self.is_refreshing = false,
        }
        ControlFlow::Continue(())
    }

    fn key(&mut self, key: KeyEvent) -> ControlFlow<()> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let code = key.code;
        let is_list = self.open.is_none();
        if code == KeyCode::Char('q') || is_control && matches!(code, KeyCode::Char('c' | 'd')) {
            return ControlFlow::Break(());
        }
        if let Some((_, by)) = MOVES.iter().find(|(key, _)| *key == code) {
            self.move_by(*by);
        } else if matches!(code, KeyCode::Esc | KeyCode::Left | KeyCode::Backspace) {
            self.open = None;
        } else if is_list && code == KeyCode::Char('f') {
            self.runs.is_fired_only = !self.runs.is_fired_only;
        } else if is_list && matches!(code, KeyCode::Enter | KeyCode::Right) {
            let key = self.runs.selected().map(model::Run::key);
            self.open = key.map(|key| OpenRun { key, ..OpenRun::default() });
            self.is_stale = true;
            self.refresh();
        }
        ControlFlow::Continue(())
    }

    fn move_by(&mut self, by: isize) {
        match &mut self.open {
            None => self.runs.move_selection(by),
            Some(open) => open.scroll = open.scroll.saturating_add_signed(-by),
        }
    }

    /// Prints one line per step.
    async fn in_lines(&mut self, mut events: Receiver<Event>, out: &mut Out) -> Result<()> {
        loop {
            match events.recv().await.unwrap_or(Event::Stopped) {
                Event::Stopped => return Ok(()),
                Event::Failed(error) => out.warning(&error),
                Event::Runs(runs) => self.runs.merge(runs, now_ms()),
                Event::Step(step) => {
                    let key = (step.org_id.clone(), step.run_id.clone());
                    self.is_stale = self.runs.find(&key).is_none();
                    self.refresh();
                    out.result(&self.plain_line(&step))?;
                    out.finish()?;
                }
                Event::Subscribed => self.refresh(),
                Event::Refreshed => self.is_refreshing = false,
                Event::Key(_) | Event::Resized | Event::Scores(..) | Event::Detail(_) => {}
            }
        }
    }

    fn plain_line(&self, step: &RunStep) -> String {
        let key = (step.org_id.clone(), step.run_id.clone());
        let run = self.runs.find(&key).map(|run| &run.summary);
        let name = |text: Option<&String>| {
            text.filter(|text| !text.is_empty()).map_or("-".to_owned(), |text| short(text, 40))
        };
        let fired = match step.fired.as_slice() {
            [] => String::new(),
            fired => format!("  {YELLOW}fired: {}{YELLOW:#}", short(&fired.join(", "), 160)),
        };
        format!(
            "{}  {}  {}  step {}  {:.2}{fired}\n",
            short(&step.run_id, 80),
            name(run.map(|run| &run.agent_name)),
            name(run.map(|run| &run.model)),
            step.index,
            step.total_score,
        )
    }
}
