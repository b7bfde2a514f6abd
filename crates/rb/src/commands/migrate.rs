//! `rb migrate`: moves everything from one database to another.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use clap::Args;
use rb_store::{RowCounts, copy, count_rows, open};

use crate::exit::Exit;
use crate::out::{GREEN, Out, RED, grouped};

/// Copies everything from one database to another, such as from SQLite to PostgreSQL.
///
/// The source may be in use: what changes meanwhile is copied by running this again, which passes over what is the same
/// on both sides. So is what an interrupted copy has done. To move: copy, stop the server, copy once more, and start it
/// with the new address. Ends with 1 if the counts of both sides differ.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Where everything is: `sqlite:PATH` or `postgres://…`.
    #[arg(long, value_name = "URL")]
    from: String,

    /// Where it goes; made if it is not there.
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
        // Opening makes what is not there, and an empty source would be copied with success.
        anyhow::ensure!(file.is_file(), "there is no database {} to copy from", file.display());
    }
    let from = open(&args.from).await.context("cannot open the database of `--from`")?;
    let to = open(&args.to).await.context("cannot open the database of `--to`")?;
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
    out.note(&format!("{} runs were copied; the others were there", grouped(copied_runs)));
    if source == target {
        return Ok(Exit::Quiet);
    }
    out.warning(
        "the two are not the same: if the source is in use, stop its server and run this again, which copies only \
         what has changed",
    );
    Ok(Exit::Missed)
}

/// What there is on both sides.
fn table(source: &RowCounts, target: &RowCounts) -> String {
    let mut text = format!("{:<16}{:>14}{:>14}\n", "", "from", "to");
    for ((name, from), (_, to)) in source.named().into_iter().zip(target.named()) {
        let (style, word) = if from == to { (GREEN, "same") } else { (RED, "differ") };
        let (from, to) = (grouped(from), grouped(to));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<16}{from:>14}{to:>14}  {style}{word}{style:#}");
    }
    text
}
