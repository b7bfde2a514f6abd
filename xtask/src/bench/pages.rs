//! Server time of the pages with a million stored steps. The store is filled through its trait, some thousand steps at once.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};

use super::load::Connection;
use super::process::{Server, fresh_folder};
use super::stored::{SPAN_MS, Stored};
use crate::out;

const STEPS_DEFAULT: u64 = 1_000_000;
/// Each page is asked for so often; the middle of the times is shown.
const ROUNDS: usize = 15;

/// The pages, as people ask for them.
const PAGES: [(&str, &str); 11] = [
    ("Runs", "/"),
    ("Runs, a page in the middle", "/?after_ms={middle}&after_org=default&after_id=z"),
    ("Runs of an agent", "/?agent=agent-7"),
    ("Runs of an agent that is not there", "/?agent=nobody"),
    ("Runs in which a monitor fired", "/?fired=semantic_loop"),
    ("Runs that showed a pattern", "/?pattern=e1:pattern-3"),
    ("Runs with a text that is rare", "/?q=run-0000777"),
    ("Runs with a text that is nowhere", "/?q=no+such+words"),
    ("Run, 40 steps", "/ui/run?id=run-0000777"),
    ("Run, 2,000 steps (the newest 400)", "/ui/run?id=run-0000000"),
    ("Health, 30 days", "/ui/health"),
];

/// Fills a store and prints how long the server takes for each page.
pub(crate) fn run(steps: Option<&str>) -> Result<()> {
    let steps = steps.map_or(Ok(STEPS_DEFAULT), str::parse).context("the number of steps")?;
    let data = fresh_folder("bench-pages-data")?;
    let now_ms = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let begun = Instant::now();
    let runtime = tokio::runtime::Runtime::new()?;
    let mut stored = Stored::default();
    runtime.block_on(async {
        let database = format!("sqlite:{}", data.join("reasonblocks.db").display());
        let store = rb_store::open(&database).await?;
        stored.grow(&store, steps, now_ms, |_| {}).await
    })?;
    drop(runtime);
    let Stored { runs, steps } = stored;
    out::say(&format!("{runs} runs, {steps} steps, filled in {}", out::seconds(begun.elapsed())));
    let server = Server::on(data, &[("REASONBLOCKS_KEYS", String::new())])?;
    let mut connection = Connection::open(server.address)?;
    let middle = (now_ms - SPAN_MS / 2).to_string();
    out::say(&format!("\n{:<40} {:>9} {:>9} {:>9}", "page", "median", "worst", "size"));
    for (name, path) in PAGES {
        let path = path.replace("{middle}", &middle);
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut times = Vec::with_capacity(ROUNDS);
        let mut size = 0;
        for _ in 0..ROUNDS {
            let asked = Instant::now();
            let (status, body) = connection.call(request.as_bytes())?;
            times.push(asked.elapsed());
            anyhow::ensure!(status == 200, "{path} is answered with {status}");
            size = body.len();
        }
        times.sort_unstable();
        let (median, worst) = (times[ROUNDS / 2], times[ROUNDS - 1]);
        let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        out::say(&format!("{name:<40} {:>9} {:>9} {:>6} KB", ms(median), ms(worst), size / 1000));
    }
    Ok(())
}
