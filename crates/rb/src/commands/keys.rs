//! `rb keys`: makes, lists and revokes the keys of a server.

use anyhow::{Result, bail};
use rb_server::keys::{Kind, make};
use rb_server::{iso, now_ms};
use rb_store::{Change, KeyRow, Store};

use crate::cli::{KeysArgs, KeysCommand};
use crate::exit::Exit;
use crate::out::{BOLD, DIM, Out, RED, harmless};
use crate::settings::Settings;

pub(crate) fn run(args: &KeysArgs, out: &mut Out) -> Result<Exit> {
    let settings = Settings::load(&args.data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = settings.open().await?;
        match &args.command {
            KeysCommand::Create { name, org, project, test } => {
                let kind = if *test { Kind::Test } else { Kind::Live };
                create(&*store, kind, name, org, project.as_deref().unwrap_or_default(), out).await
            }
            KeysCommand::List { json } => list(&*store, *json, out).await,
            KeysCommand::Revoke { key } => revoke(&*store, key, out).await,
        }
    })
}

async fn create(
    store: &dyn Store,
    kind: Kind,
    name: &str,
    org: &str,
    project: &str,
    out: &mut Out,
) -> Result<Exit> {
    let (secret, row) = make(kind, org, project, name)?;
    let shown = harmless(&secret).into_owned();
    store.apply(vec![Change::PutKey(Box::new(row))]).await?;
    out.plain_result(&format!("{shown}\n"))?;
    out.note("keep it: it is shown this once and only its hash is stored");
    Ok(Exit::Quiet)
}

async fn list(store: &dyn Store, json: bool, out: &mut Out) -> Result<Exit> {
    let keys = store.keys().await?;
    if json {
        for key in &keys {
            out.plain_result(&format!("{}\n", as_json(key)))?;
        }
        return Ok(Exit::Quiet);
    }
    if keys.is_empty() {
        out.note("there are no keys; `rb keys create` makes one");
    }
    for key in &keys {
        let project = if key.project.is_empty() { "all projects" } else { &key.project };
        let revoked = match key.revoked_ms {
            Some(at) => format!("  {RED}revoked {}{RED:#}", iso(at)),
            None => String::new(),
        };
        out.result(&format!(
            "{BOLD}{}{BOLD:#}  {}  {} / {}  {}  {DIM}{}{DIM:#}{revoked}\n",
            harmless(&key.key_id),
            harmless(&key.shown),
            harmless(&key.org),
            harmless(project),
            harmless(&key.name),
            iso(key.created_ms),
        ))?;
    }
    Ok(Exit::Quiet)
}

fn as_json(key: &KeyRow) -> serde_json::Value {
    serde_json::json!({
        "key_id": key.key_id,
        "name": key.name,
        "shown": key.shown,
        "org_id": key.org,
        "project_id": key.project,
        "created_at": iso(key.created_ms),
        "revoked_at": key.revoked_ms.map(iso),
    })
}

/// Takes the id, the name or the beginning of a key, if only one fits.
async fn revoke(store: &dyn Store, wanted: &str, out: &mut Out) -> Result<Exit> {
    let keys = store.keys().await?;
    let fits = |key: &&KeyRow| {
        let beginning = key.shown.trim_end_matches('…');
        let is_the_key = !beginning.is_empty() && wanted.starts_with(beginning);
        key.key_id == wanted || key.name == wanted || is_the_key
    };
    let fitting: Vec<&KeyRow> = keys.iter().filter(fits).collect();
    let [key] = fitting.as_slice() else {
        let wanted = harmless(wanted);
        let count = fitting.len();
        if count == 0 {
            bail!("no key fits; `rb keys list` shows them with their ids");
        }
        bail!("{count} keys fit `{wanted}`; name one by its id, see `rb keys list`");
    };
    if key.revoked_ms.is_some() {
        out.note(&format!("{} was revoked already", key.key_id));
        return Ok(Exit::Quiet);
    }
    let change = Change::RevokeKey { key_id: key.key_id.clone(), at_ms: now_ms() };
    store.apply(vec![change]).await?;
    out.note(&format!("{} is revoked; a running server refuses it from now on", key.key_id));
    Ok(Exit::Quiet)
}
