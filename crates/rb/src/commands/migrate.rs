//! `rb migrate`: copies one database to another.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use clap::Args;
use rb_store::{RowCounts, copy, count_rows, open};

use crate::exit::Exit;
use crate::ui::{GREEN, Out, RED, grouped};

/// Copies all data from one database to another, for example from SQLite to PostgreSQL.
///
/// The source may be in use. A repeated copy, also after an interruption, transfers only what has changed since. To
/// move a server: copy, stop the server, copy again, start it with the new address. Exits with 1 if the row counts
/// differ.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Source database: `sqlite:PATH` or `postgres://…`.
    #[arg(long, value_name = "URL")]
    from: String,

    /// Target database; created if missing.
    #[arg(long, value_name = "URL")]
    to: String,
}

pub(crate) fn run(args: &MigrateArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(migrate(args, out))
}

async fn migrate(args: &MigrateArgs, out: &mut Out) -> Result<Exit> {
    if let Some(file) = args.from.strip_prefix("sqlite:") {
        let file = std::path::Path::new(file.strip_prefix("//").unwrap_or(file));
        // Opening would create an empty database and copy it successfully.
        anyhow::ensure!(file.is_file(), "source database not found: {}", file.display());
    }
    let from = open(&args.from).await.context("cannot open the source database (`--from`)")?;
    let to = open(&args.to).await.context("cannot open the target database (`--to`)")?;
    let total = count_rows(&from).await?.runs;
    let mut copied_runs = 0;
    copy(&from, &to, |seen, copied| {
        out.progress(seen, Some(total));
        copied_runs = copied;
    })
    .await?;
    out.progress_done();
    let (source, target) = (count_rows(&from).await?, count_rows(&to).await?);
    out.result(&table(&source, &target))?;
    out.note(&format!("{} runs copied; the others were already there", grouped(copied_runs)));
    if source == target {
        return Ok(Exit::Quiet);
    }
    out.warning(
        "the row counts differ; if the source is in use, stop its server and run this again to copy the changes",
    );
    Ok(Exit::Missed)
}

/// Formats the row counts of both databases.
fn table(source: &RowCounts, target: &RowCounts) -> String {
    let mut text = format!("{:<16}{:>14}{:>14}\n", "", "from", "to");
    for ((name, from), (_, to)) in source.named().into_iter().zip(target.named()) {
        let (style, word) = if from == to { (GREEN, "same") } else { (RED, "differ") };
        let (from, to) = (grouped(from), grouped(to));
        let _ = writeln!(text, "{name:<16}{from:>14}{to:>14}  {style}{word}{style:#}");
    }
    text
}
