//! `rb keys`: creates, lists and revokes API keys.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use rb_runtime::auth::{KeyKind, create_key};
use rb_runtime::clock::{format_rfc3339, now_ms};
use rb_store::{Change, KeyRow, Store};

use crate::exit::Exit;
use crate::settings::{DataArgs, Settings};
use crate::ui::{BOLD, DIM, Out, RED, fitted};

/// Creates, lists and revokes API keys of a server.
///
/// A key belongs to an organisation, optionally to one of its projects, and gives access to nothing else. Only its hash
/// is stored.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(flatten)]
    data: DataArgs,

    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Creates a key and prints it. It cannot be shown again.
    Create {
        /// Purpose of the key.
        #[arg(long, value_name = "TEXT", default_value = "")]
        name: String,
        /// Organisation of the key.
        #[arg(long, value_name = "ID", default_value = rb_runtime::auth::DEFAULT_ORG)]
        org: String,
        /// Project that the key is limited to; default: all projects of the organisation.
        #[arg(long, value_name = "ID")]
        project: Option<String>,
        /// Use the prefix `rb_test_` instead of `rb_live_`.
        #[arg(long)]
        test: bool,
    },
    /// Lists keys by id, without their secrets.
    List {
        /// Write one JSON object per key and line.
        #[arg(long)]
        json: bool,
    },
    /// Revokes a key.
    Revoke {
        /// Id or name of the key, or the key itself.
        key: String,
    },
}

pub(crate) fn run(args: &KeysArgs, out: &mut Out) -> Result<Exit> {
    let settings = Settings::load(&args.data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = settings.open().await?;
        match &args.command {
            KeysCommand::Create { name, org, project, test } => {
                let kind = if *test { KeyKind::Test } else { KeyKind::Live };
                let project = project.as_deref().unwrap_or_default();
                let (secret, row) = create_key(kind, org, project, name)?;
                store.apply(vec![Change::PutKey(Box::new(row))]).await?;
                out.plain_result(&format!("{secret}\n"))?;
                out.note("store the key now: only its hash is kept and it cannot be shown again");
            }
            KeysCommand::List { json } => list(&store.keys().await?, *json, out)?,
            KeysCommand::Revoke { key } => revoke(&*store, key, out).await?,
        }
        Ok(Exit::Quiet)
    })
}

fn list(keys: &[KeyRow], json: bool, out: &mut Out) -> Result<()> {
    if json {
        for key in keys {
            out.plain_result(&format!("{}\n", as_json(key)))?;
        }
        return Ok(());
    }
    if keys.is_empty() {
        out.note("there are no keys; `rb keys create` creates one");
        return Ok(());
    }
    let row = |cells: [&str; 5]| {
        let [id, key, owner, name, created] = cells;
        let columns = [(id, 14), (key, 16), (owner, 28), (name, 20), (created, 24)];
        columns.map(|(text, width)| fitted(text, width)).join("  ")
    };
    let header = row(["id", "key", "organisation / project", "name", "created"]);
    out.result(&format!("{DIM}{}{DIM:#}\n", header.trim_end()))?;
    for key in keys {
        let project = if key.project.is_empty() { "all projects" } else { &key.project };
        let owner = format!("{} / {project}", key.org);
        let line =
            row([&key.key_id, &key.shown, &owner, &key.name, &format_rfc3339(key.created_ms)]);
        let revoked = match key.revoked_ms {
            Some(at) => format!("  {RED}revoked {}{RED:#}", format_rfc3339(at)),
            None => String::new(),
        };
        out.result(&format!("{BOLD}{}{BOLD:#}{revoked}\n", line.trim_end()))?;
    }
    Ok(())
}

fn as_json(key: &KeyRow) -> serde_json::Value {
    serde_json::json!({
        "key_id": key.key_id,
        "name": key.name,
        "shown": key.shown,
        "org_id": key.org,
        "project_id": key.project,
        "created_at": format_rfc3339(key.created_ms),
        "revoked_at": key.revoked_ms.map(format_rfc3339),
    })
}

/// Revokes the only key with this id, name or secret.
async fn revoke(store: &dyn Store, wanted: &str, out: &mut Out) -> Result<()> {
    let keys = store.keys().await?;
    let matches = |key: &&KeyRow| {
        let prefix = key.shown.trim_end_matches('…');
        let is_secret = !prefix.is_empty() && wanted.starts_with(prefix);
        key.key_id == wanted || key.name == wanted || is_secret
    };
    let key = match keys.iter().filter(matches).collect::<Vec<_>>().as_slice() {
        [key] => *key,
        [] => bail!("no matching key; `rb keys list` lists the keys with their ids"),
        keys => bail!("{} keys match; use the id, see `rb keys list`", keys.len()),
    };
    if key.revoked_ms.is_some() {
        out.note(&format!("{} is already revoked", key.key_id));
        return Ok(());
    }
    let change = Change::RevokeKey { key_id: key.key_id.clone(), at_ms: now_ms() };
    store.apply(vec![change]).await?;
    out.note(&format!("revoked {}; running servers reject it from now on", key.key_id));
    Ok(())
}
