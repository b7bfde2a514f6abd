//! `cargo xtask bench scale`: SQLite, PostgreSQL with one node and with two, and what growth does to them.
//!
//! For each: steps a second that are durable when they are answered, and traces a second that grow and are judged. Then
//! the same database with ever more stored steps: durable steps a second, and the server's time for the Runs page. Then
//! with ever more patterns that everybody shares: until a node that starts finds the last of them, the times of look-ups,
//! and memory. Nodes, database and load share the machine, so two nodes show what a second one costs there rather than
//! what it brings. The full run takes about an hour; `--up-to 100k` a few minutes. `steps` or `patterns` measures these alone.

/// A PostgreSQL of its own.
mod database;
/// Patterns by the million.
mod patterns;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use rb_store::Store;
use tokio::runtime::Runtime;

use self::database::Postgres;
use super::load::{self, Connection, Load, Requests};
use super::process::{Server, fresh_folder};
use super::server::{Bodies, GROWTH, log_steps, logged_steps};
use super::stored::Stored;
use crate::{out, shell};

/// How long each figure is measured.
const MEASURED_FOR: Duration = Duration::from_secs(5);
const STEPS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
const PATTERNS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Clients that log steps, on all nodes together.
const WRITERS: usize = 64;
/// Clients that have traces judged, or look patterns up.
const CALLERS: usize = 4;
/// Steps of the traces that are judged.
const TRACE: usize = 20;
/// The Runs page is asked for so often.
const ROUNDS: usize = 15;
/// Progress of filling is told this often.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// `[steps|patterns] [--up-to SIZE]`.
pub(crate) fn run(wanted: &[&str]) -> Result<()> {
    if cfg!(debug_assertions) && std::env::var_os("RB_BIN").is_none() {
        let args = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "scale"];
        return shell::run(shell::cargo(&args)?.args(wanted));
    }
    let (steps, patterns, up_to) = match wanted {
        ["steps", rest @ ..] => (true, false, rest),
        ["patterns", rest @ ..] => (false, true, rest),
        rest => (true, true, rest),
    };
    let up_to = match up_to {
        [] => u64::MAX,
        ["--up-to", text] => size(text)?,
        other => bail!("`{}` is not known; `cargo xtask help` shows what is", other.join(" ")),
    };
    let postgres = Postgres::start()?;
    let mut table = Table::default();
    for (kind, nodes) in [(Kind::Sqlite, &[1][..]), (Kind::Postgres(&postgres), &[1, 2])] {
        if steps {
            measure_steps(&mut Place::new(&kind, "scale")?, nodes, up_to, &mut table)?;
        }
        if patterns {
            measure_patterns(&Place::new(&kind, "patterns")?, up_to, &mut table)?;
        }
    }
    out::say("");
    table.print();
    Ok(())
}

/// `100k`, `10m`, or a plain number.
fn size(text: &str) -> Result<u64> {
    let lower = text.to_lowercase();
    let (digits, times) = match (lower.strip_suffix('k'), lower.strip_suffix('m')) {
        (Some(digits), _) => (digits, 1_000),
        (None, Some(digits)) => (digits, 1_000_000),
        (None, None) => (lower.as_str(), 1),
    };
    let number: u64 = digits.parse().with_context(|| format!("`{text}` is no size; `100k` is"))?;
    ensure!(number * times >= PATTERNS[0], "`{text}` is too small: 1k is the smallest size");
    Ok(number * times)
}

enum Kind<'a> {
    Sqlite,
    Postgres(&'a Postgres),
}

/// A database that grows, opened beside the nodes that use it.
struct Place {
    column: &'static str,
    address: String,
    runtime: Runtime,
    store: Arc<dyn Store>,
    stored: Stored,
    now_ms: i64,
}

impl Place {
    fn new(kind: &Kind<'_>, name: &str) -> Result<Self> {
        let (column, address) = match kind {
            Kind::Sqlite => {
                let folder = fresh_folder(&format!("bench-{name}-data"))?;
                ("SQLite", format!("sqlite:{}", folder.join("reasonblocks.db").display()))
            }
            Kind::Postgres(postgres) => ("PostgreSQL", postgres.database(name)?),
        };
        let runtime = Runtime::new()?;
        let store = runtime.block_on(rb_store::open(&address))?;
        let now_ms = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
        Ok(Self { column, address, runtime, store, stored: Stored::default(), now_ms })
    }

    /// Starts so many nodes on it.
    fn nodes(&self, count: usize) -> Result<Vec<Server>> {
        let node = |at: usize| {
            let data = fresh_folder(&format!("bench-scale-node-{at}"))?;
            // Without a key everybody on this machine may see the pages.
            let set =
                [("RB_DATABASE_URL", self.address.clone()), ("REASONBLOCKS_KEYS", String::new())];
            Server::on(data, &set)
        };
        (0..count).map(node).collect()
    }

    fn column(&self, nodes: usize) -> String {
        match (self.column, nodes) {
            ("PostgreSQL", 1) => "PostgreSQL, one node".to_owned(),
            ("PostgreSQL", _) => "PostgreSQL, two nodes".to_owned(),
            (other, _) => other.to_owned(),
        }
    }

    fn grow(&mut self, steps: u64) -> Result<()> {
        let (begun, mut told) = (Instant::now(), Instant::now());
        let progress = |stored: Stored| {
            if told.elapsed() >= TOLD_EVERY {
                told = Instant::now();
                out::say(&format!("    {} of {steps} steps", stored.steps));
            }
        };
        let growing = self.stored.grow(&self.store, steps, self.now_ms, progress);
        self.runtime.block_on(growing)?;
        let time = out::seconds(begun.elapsed());
        out::say(&format!("{}: {} steps stored, in {time}", self.column, self.stored.steps));
        Ok(())
    }
}

fn measure_steps(place: &mut Place, nodes: &[usize], up_to: u64, table: &mut Table) -> Result<()> {
    let logged = logged_steps();
    let bodies = Arc::new(Bodies::new(TRACE + GROWTH));
    for (at, size) in STEPS.into_iter().filter(|size| *size <= up_to).enumerate() {
        place.grow(size)?;
        for count in nodes {
            let column = place.column(*count);
            let servers = place.nodes(*count)?;
            if at == 0 {
                let load = spread(&servers, CALLERS, |server| {
                    bodies.growing_traces(TRACE, Some(server.address))
                })?;
                let shown = format!("{:.0}", per_second(&load));
                table.set(
                    &format!("evaluate, growing traces of {TRACE} steps, a second"),
                    &column,
                    shown,
                );
            }
            let load = spread(&servers, WRITERS, |_| Ok(log_steps(&logged)))?;
            let shown = format!("{:.0}", per_second(&load));
            table.set(&format!("durable steps a second, {} stored", grouped(size)), &column, shown);
            let shown = runs_page(&servers)?;
            table.set(&format!("Runs page, {} stored steps", grouped(size)), &column, shown);
        }
    }
    Ok(())
}

fn measure_patterns(place: &Place, up_to: u64, table: &mut Table) -> Result<()> {
    let mut there = 0;
    for size in PATTERNS.into_iter().filter(|size| *size <= up_to) {
        let begun = Instant::now();
        place.runtime.block_on(patterns::put(&place.store, there..size))?;
        there = size;
        out::say(&format!(
            "{}: {size} patterns stored, in {}",
            place.column,
            out::seconds(begun.elapsed())
        ));
        let column = place.column(1);
        let begun = Instant::now();
        let servers = place.nodes(1)?;
        let Some(server) = servers.first() else { bail!("a node") };
        patterns::wait_for(server, size - 1)?;
        let patterns = format!("{} patterns", grouped(size));
        let shown = format!("{:.1} s", begun.elapsed().as_secs_f64());
        table.set(&format!("from the start until all are found, {patterns}"), &column, shown);
        let load = spread(&servers, CALLERS, |_| Ok(patterns::look_ups(size)))?;
        let ms = |percent| {
            let slowest = load.iter().map(|load| load.percentile(percent)).fold(0.0, f64::max);
            format!("{:.2} ms", slowest * 1e3)
        };
        table.set(
            &format!("retrieve, p50 / p99, {patterns}"),
            &column,
            format!("{} / {}", ms(50), ms(99)),
        );
        let shown = format!("{:.0} MB", server.resident_bytes()? / 1e6);
        table.set(&format!("memory of a node, {patterns}"), &column, shown);
    }
    Ok(())
}

/// So many clients, dealt out among the nodes, all at once.
fn spread(
    servers: &[Server],
    clients: usize,
    requests: impl Fn(&Server) -> Result<Requests>,
) -> Result<Vec<Load>> {
    let each = clients / servers.len().max(1);
    let mut prepared = Vec::new();
    for server in servers {
        let requests = (0..each).map(|_| requests(server)).collect::<Result<Vec<_>>>()?;
        prepared.push((server.address, requests));
    }
    thread::scope(|scope| {
        let running: Vec<_> = prepared
            .into_iter()
            .map(|(address, all)| scope.spawn(move || load::run(address, all, MEASURED_FOR, None)))
            .collect();
        let ended = |one: thread::ScopedJoinHandle<'_, Result<Load>>| match one.join() {
            Ok(load) => load,
            Err(_) => bail!("the load ended in a panic"),
        };
        running.into_iter().map(ended).collect()
    })
}

fn per_second(load: &[Load]) -> f64 {
    load.iter().map(Load::per_second).sum()
}

/// The median time of the Runs page, over all nodes.
fn runs_page(servers: &[Server]) -> Result<String> {
    let request = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut times = Vec::new();
    for server in servers {
        let mut connection = Connection::open(server.address)?;
        for _ in 0..ROUNDS {
            let asked = Instant::now();
            let (status, _) = connection.call(request.as_bytes())?;
            ensure!(status == 200, "the Runs page is answered with {status}");
            times.push(asked.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(format!("{:.1} ms", load::percentile(&times, 50) * 1e3))
}

/// Figures by row and column, in the order in which the rows came.
#[derive(Default)]
struct Table {
    rows: Vec<(String, Vec<(String, String)>)>,
}

impl Table {
    /// Notes a figure, and says so: a long run shows what it has.
    fn set(&mut self, row: &str, column: &str, figure: String) {
        out::say(&format!("{column}: {row}: {figure}"));
        let figure = (column.to_owned(), figure);
        match self.rows.iter_mut().find(|(name, _)| name == row) {
            Some((_, figures)) => figures.push(figure),
            None => self.rows.push((row.to_owned(), vec![figure])),
        }
    }

    fn print(&self) {
        let columns = ["SQLite", "PostgreSQL, one node", "PostgreSQL, two nodes"];
        out::say(&format!("| | {} |", columns.join(" | ")));
        out::say("|---|--:|--:|--:|");
        for (row, figures) in &self.rows {
            let cells = columns.map(|column| {
                let figure = figures.iter().find(|(of, _)| of == column);
                figure.map_or("–", |(_, figure)| figure.as_str())
            });
            out::say(&format!("| {row} | {} |", cells.join(" | ")));
        }
    }
}

/// With a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_a_letter() {
        for (text, expected) in
            [("1k", 1_000), ("100K", 100_000), ("10m", 10_000_000), ("5000", 5_000)]
        {
            assert_eq!(size(text).ok(), Some(expected), "{text}");
        }
        for text in ["", "k", "12", "1g", "-5k"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn thousands_are_kept_apart() {
        assert_eq!([7, 1_000, 12_345_678].map(grouped), ["7", "1,000", "12,345,678"]);
    }
}
