//! `rb run`: a command with a gateway between it and its provider, for as long as it runs.

/// The child: environment, signals, end.
mod child;
/// What is told at the end.
mod summary;
/// Where the child's calls went before.
mod upstream;

use std::fs::OpenOptions;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rb_server::{App, RunsHeard, Shared, ask, now_ms};
use rb_store::{Scope, Store};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use self::child::Addresses;
use self::summary::{Look, Ran, summary};
use crate::cli::RunArgs;
use crate::exit::Exit;
use crate::out::{Out, harmless};
use crate::settings::Settings;

/// The log of the gateway, in the data folder.
const LOG: &str = "run.log";
/// A longer log is begun anew.
const LOG_BYTES_MAX: u64 = 16 << 20;
/// How often the runs of the child are noted.
const NOTED_EVERY: Duration = Duration::from_millis(500);
/// Steps of one run that are told of.
const STEPS_MAX: u32 = 100_000;

pub(crate) fn run(args: &RunArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        match &args.url {
            Some(url) => beside(args, url.trim_end_matches('/'), out).await,
            None => within(args, out).await,
        }
    })
}

/// With a gateway of its own.
async fn within(args: &RunArgs, out: &mut Out) -> Result<Exit> {
    let mut settings = Settings::load(&args.data)?;
    let store = settings.open().await?;
    log(&settings)?;
    let variable = |name: &str| std::env::var(name).ok();
    let (mut gateway, version) = upstream::behind(settings.raw.gateway.clone(), variable);
    gateway.is_keyless = true;
    settings.raw.gateway = gateway;
    "127.0.0.1:0".clone_into(&mut settings.raw.listen);
    let app = App::new(settings.raw.clone().check()?, Arc::clone(&store)).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("no port of this machine can be listened on")?;
    let url = format!("http://{}", listener.local_addr()?);
    let heard = app.runs_heard();
    let (end, ended) = oneshot::channel::<()>();
    let server =
        tokio::spawn(rb_server::serve(Shared::clone(&app), listener, async { drop(ended.await) }));
    let addresses = Addresses {
        anthropic: format!("{url}/anthropic"),
        openai: format!("{url}/openai{version}"),
        key: None,
    };
    let begun_ms = now_ms();
    let (exit, heard) = watched(args, &addresses, heard, out).await?;
    drop(end);
    server.await.context("the gateway ended early")??;
    let runs = of_store(&*store, heard, begun_ms).await?;
    tell(out, args, &runs, &Look::Later);
    Ok(exit)
}

/// With a server that is there already.
async fn beside(args: &RunArgs, url: &str, out: &mut Out) -> Result<Exit> {
    let key = args.key.clone().or_else(|| std::env::var("REASONBLOCKS_API_KEY").ok());
    let key = key.filter(|key| !key.is_empty());
    ask::get(url, "/v1/monitor/me", key.as_deref()).await.with_context(|| {
        format!(
            "{} cannot be used; without `--url` a gateway is started for the command",
            harmless(url)
        )
    })?;
    let addresses = Addresses {
        anthropic: format!("{url}/anthropic"),
        openai: format!("{url}/openai/v1"),
        key: key.clone(),
    };
    let begun_ms = now_ms();
    let exit = ended(args, &addresses, out).await?;
    let list =
        ask::get(url, &format!("/v1/monitor/runs?since={begun_ms}&limit=100"), key.as_deref())
            .await?;
    let mut runs = Vec::new();
    for row in list.as_array().map(Vec::as_slice).unwrap_or_default() {
        if row["framework"] != "gateway" {
            continue;
        }
        let path = format!("/v1/monitor/runs/{}", row["run_id"].as_str().unwrap_or_default());
        runs.push(Ran::of_json(&ask::get(url, &path, key.as_deref()).await?));
    }
    runs.reverse();
    tell(out, args, &runs, &Look::There(url));
    Ok(exit)
}

fn tell(out: &mut Out, args: &RunArgs, runs: &[Ran], look: &Look<'_>) {
    out.aside(&summary(runs, look));
    let has_key = std::env::var_os("OPENAI_API_KEY").is_some_and(|key| !key.is_empty());
    let is_codex = args.command.first().is_some_and(|program| child::is_codex(program));
    if runs.is_empty() && is_codex && !has_key {
        out.note("Codex calls through the gateway with `OPENAI_API_KEY`, which is not set; a ChatGPT login does not");
    }
}

/// Runs the child and notes the runs that are heard of meanwhile.
async fn watched(
    args: &RunArgs,
    addresses: &Addresses,
    mut heard: RunsHeard,
    out: &mut Out,
) -> Result<(Exit, RunsHeard)> {
    let mut tick = tokio::time::interval(NOTED_EVERY);
    let mut child = std::pin::pin!(ended(args, addresses, out));
    loop {
        tokio::select! {
            exit = &mut child => return Ok((exit?, heard)),
            _ = tick.tick() => { heard.catch_up(); }
        }
    }
}

/// Runs the child to its end.
async fn ended(args: &RunArgs, addresses: &Addresses, out: &mut Out) -> Result<Exit> {
    let Some((program, given)) = args.command.split_first() else {
        anyhow::bail!("there is no command: write `rb run -- <command>`");
    };
    let mut command = Command::new(program);
    command.args(addresses.arguments(program, given));
    let headers = std::env::var("ANTHROPIC_CUSTOM_HEADERS").ok();
    command.envs(addresses.environment(headers.as_deref()));
    match child::to_its_end(command).await {
        Ok(status) => Ok(Exit::Child(child::exit_code(status))),
        Err(error) => {
            out.error(&format!("{}: {error:#}", program.display()));
            let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            Ok(Exit::Child(if kind == Some(std::io::ErrorKind::NotFound) { 127 } else { 126 }))
        }
    }
}

/// What the store has of the runs that were heard of.
async fn of_store(store: &dyn Store, mut heard: RunsHeard, begun_ms: i64) -> Result<Vec<Ran>> {
    let mut runs = Vec::new();
    for key in heard.catch_up() {
        let Some(row) = store.run(&Scope::org(&key.org), &key.run_id).await? else { continue };
        let mut steps = store.steps(key, 0, STEPS_MAX).await?;
        steps.retain(|step| step.at_ms >= begun_ms); // a session that was gone on with has older ones
        runs.push((row.started_ms, Ran::of_rows(&row, &steps)));
    }
    runs.sort_by_key(|(started_ms, _)| *started_ms);
    Ok(runs.into_iter().map(|(_, ran)| ran).collect())
}

/// Logs and panics go to a file: the terminal is the child's.
fn log(settings: &Settings) -> Result<()> {
    let path = settings.data_dir.join(LOG);
    let is_long = std::fs::metadata(&path).is_ok_and(|file| file.len() > LOG_BYTES_MAX);
    let mut options = OpenOptions::new();
    options.create(true).write(true);
    let options = if is_long { options.truncate(true) } else { options.append(true) };
    std::fs::create_dir_all(&settings.data_dir)
        .with_context(|| format!("cannot make {}", settings.data_dir.display()))?;
    let file =
        options.open(&path).with_context(|| format!("cannot write the log {}", path.display()))?;
    let filter = tracing_subscriber::EnvFilter::try_from_env("RB_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(Mutex::new(file));
    let _ = logs.try_init(); // somebody else may have set the logs up already; then theirs stay
    std::panic::set_hook(Box::new(
        |panic| tracing::error!(%panic, "a fault of ours; the call goes on without us"),
    ));
    Ok(())
}
