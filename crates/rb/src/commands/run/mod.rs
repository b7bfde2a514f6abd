//! `rb run`: runs a command with a gateway between it and its model provider.

/// Child process.
mod child;
/// Summary after the child has exited.
mod summary;
/// Upstream of the gateway.
mod upstream;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use rb_runtime::clock::now_ms;
use rb_runtime::events::SeenRuns;
use rb_server::{App, Shared, api_client};
use rb_store::{Change, Scope, Store};
use rb_wire::providers::PROVIDERS;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use self::child::Addresses;
use self::summary::{Links, from_rows, summary};
use crate::api::RunDetail;
use crate::exit::Exit;
use crate::settings::{API_KEY, DataArgs, Settings, variable};
use crate::ui::{Out, escape_control};

const LOG_FILE: &str = "run.log";
/// Size above which the log is truncated at the next start.
const MAX_LOG_BYTES: u64 = 16 << 20;
/// Interval at which events of the gateway are read, before its queue overflows.
const EVENTS_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of steps per run in the summary.
const MAX_STEPS: u32 = 100_000;

/// Runs a command with the gateway between it and its model provider.
///
/// Starts a gateway on a free local port, passes its address only to the command, and stops with it. The command keeps
/// its terminal, its keys and its exit code. A summary follows on standard error, and the exit code is recorded as the
/// outcome of the runs. Logs go to `run.log` in the data directory.
#[derive(Debug, Args)]
#[command(after_long_help = after_help())]
pub(crate) struct RunArgs {
    /// Use this running server instead of starting a gateway. Its runs end by its idle timeout, not with the command.
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// API key of that server; default: `REASONBLOCKS_API_KEY`.
    #[arg(long, value_name = "KEY", requires = "url")]
    key: Option<String>,

    #[command(flatten)]
    data: DataArgs,

    /// Command and arguments, after `--`.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Returns the text below the options.
fn after_help() -> String {
    let variables = PROVIDERS.iter().flat_map(|provider| provider.base_url_env);
    let variables = variables.copied().collect::<Vec<_>>().join(", ");
    format!("Variables set for the command:\n  {variables}\n{AFTER_HELP}")
}

const AFTER_HELP: &str = "\
\x20 For `codex`, a provider entry is passed as `-c` settings.
  If one of them is already set, the gateway forwards to that address.

Outcome of the runs:
  completed             the command exited with 0
  failure: exit code N  it exited with another code
  failure: signal N     it was killed

Exit codes:
  that of the command, or 128 plus the number of the signal that killed it
  127  the command was not found
  126  the command could not be started

Examples:
  rb run -- claude
  rb run -- codex exec 'Why does the build fail?'
  RB_MODE=observe rb run -- python my_agent.py

Setup per agent: docs/agents/";

pub(crate) fn run(args: &RunArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(async {
        match &args.url {
            Some(url) => with_server(args, url.trim_end_matches('/'), out).await,
            None => with_own_gateway(args, out).await,
        }
    })
}

async fn with_own_gateway(args: &RunArgs, out: &mut Out) -> Result<Exit> {
    let mut settings = Settings::load(&args.data)?;
    let dashboard = format!("http://{}", settings.raw.listen);
    let store = settings.open().await?;
    init_logs(&settings)?;
    let (mut gateway, paths) = upstream::from_environment(settings.raw.gateway.clone(), variable);
    gateway.is_keyless = true;
    settings.raw.gateway = gateway;
    "127.0.0.1:0".clone_into(&mut settings.raw.listen);
    let app = App::new(settings.raw.clone().check()?, Arc::clone(&store)).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("cannot listen on a local port")?;
    let url = format!("http://{}", listener.local_addr()?);
    let mut events = app.seen_runs();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(rb_server::serve(Shared::clone(&app), listener, async {
        drop(stopped.await);
    }));
    let addresses = Addresses {
        base_urls: paths
            .into_iter()
            .map(|(provider, path)| (provider, format!("{url}{path}")))
            .collect(),
        key: None,
    };
    let started_ms = now_ms();
    let child = run_while_reading(args, &addresses, &mut events, out).await?;
    drop(stop);
    server.await.context("the gateway stopped early")??;
    let runs = finish(&*store, &mut events, started_ms, &child.outcome).await?;
    let show = match &args.data.data_dir {
        Some(dir) => format!("rb show --data-dir {}", escape_control(&dir.display().to_string())),
        None => "rb show".to_owned(),
    };
    print(out, args, &runs, &Links { dashboard: &dashboard, show: Some(&show) });
    Ok(child.exit)
}

async fn with_server(args: &RunArgs, url: &str, out: &mut Out) -> Result<Exit> {
    let key = args.key.clone().or_else(|| variable(API_KEY));
    api_client::get(url, "/v1/monitor/me", key.as_deref()).await.with_context(|| {
        format!("cannot use {}; without `--url`, `rb run` starts a gateway", escape_control(url))
    })?;
    let addresses = Addresses {
        base_urls: PROVIDERS
            .iter()
            .map(|provider| (provider, format!("{url}{}", provider.client_path())))
            .collect(),
        key: key.clone(),
    };
    let started_ms = now_ms();
    let child = run_child(args, &addresses, out).await?;
    let path = format!("/v1/monitor/runs?since={started_ms}&limit=100");
    let list = api_client::get(url, &path, key.as_deref()).await?;
    let mut runs: Vec<RunDetail> = Vec::new();
    for row in list.as_array().map(Vec::as_slice).unwrap_or_default() {
        if row["framework"] != "gateway" {
            continue;
        }
        let path = format!("/v1/monitor/runs/{}", row["run_id"].as_str().unwrap_or_default());
        runs.push(serde_json::from_value(api_client::get(url, &path, key.as_deref()).await?)?);
    }
    runs.reverse();
    print(out, args, &runs, &Links { dashboard: url, show: None });
    Ok(child.exit)
}

fn print(out: &mut Out, args: &RunArgs, runs: &[RunDetail], links: &Links<'_>) {
    out.write_stderr(&summary(runs, links));
    let has_key = variable("OPENAI_API_KEY").is_some();
    let is_codex = args.command.first().is_some_and(|program| child::is_codex(program));
    if runs.is_empty() && is_codex && !has_key {
        out.note("Codex uses the gateway only with `OPENAI_API_KEY`, which is not set; a ChatGPT login bypasses it");
    }
}

/// Exit code for the shell and outcome for the runs.
struct ChildResult {
    exit: Exit,
    outcome: String,
}

/// Runs the child and reads the events of the gateway at the same time.
async fn run_while_reading(
    args: &RunArgs,
    addresses: &Addresses,
    events: &mut SeenRuns,
    out: &mut Out,
) -> Result<ChildResult> {
    let mut tick = tokio::time::interval(EVENTS_INTERVAL);
    let mut child = std::pin::pin!(run_child(args, addresses, out));
    loop {
        tokio::select! {
            result = &mut child => return result,
            _ = tick.tick() => { events.refresh(); }
        }
    }
}

async fn run_child(args: &RunArgs, addresses: &Addresses, out: &mut Out) -> Result<ChildResult> {
    let Some((program, given)) = args.command.split_first() else {
        anyhow::bail!("no command given; use `rb run -- <command>`");
    };
    let mut command = Command::new(program);
    command.args(addresses.arguments(program, given));
    let headers = variable("ANTHROPIC_CUSTOM_HEADERS");
    command.envs(addresses.environment(headers.as_deref()));
    match child::run(command).await {
        Ok(status) => Ok(ChildResult {
            exit: Exit::Child(child::exit_code(status)),
            outcome: child::outcome(status),
        }),
        Err(error) => {
            out.error(&format!("{}: {error:#}", program.display()));
            let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            let code = if kind == Some(std::io::ErrorKind::NotFound) { 127 } else { 126 };
            Ok(ChildResult { exit: Exit::Child(code), outcome: "unknown".to_owned() })
        }
    }
}

/// Records the outcome of all runs that passed through the gateway and returns them in the order of their start.
async fn finish(
    store: &dyn Store,
    events: &mut SeenRuns,
    started_ms: i64,
    outcome: &str,
) -> Result<Vec<RunDetail>> {
    let mut runs = Vec::new();
    for key in events.refresh() {
        let Some(row) = store.run(&Scope::org(&key.org), &key.run_id).await? else { continue };
        let outcome = outcome.to_owned();
        let finish = Change::FinishRun { run: key.clone(), at_ms: now_ms(), outcome };
        store.apply(vec![finish]).await?;
        let mut steps = store.steps(key, 0, MAX_STEPS).await?;
        steps.retain(|step| step.at_ms >= started_ms); // a resumed session has older steps
        runs.push((row.started_ms, from_rows(row, steps)));
    }
    runs.sort_by_key(|(started_ms, _)| *started_ms);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

/// Writes logs and panics to a file, because the terminal belongs to the child.
fn init_logs(settings: &Settings) -> Result<()> {
    let path = settings.data_dir.join(LOG_FILE);
    let is_long = std::fs::metadata(&path).is_ok_and(|file| file.len() > MAX_LOG_BYTES);
    let mut options = OpenOptions::new();
    options.create(true).write(true);
    let options = if is_long { options.truncate(true) } else { options.append(true) };
    std::fs::create_dir_all(&settings.data_dir)
        .with_context(|| format!("cannot create {}", settings.data_dir.display()))?;
    let file =
        options.open(&path).with_context(|| format!("cannot write the log {}", path.display()))?;
    let filter = tracing_subscriber::EnvFilter::try_from_env("RB_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(Mutex::new(file));
    let _ = logs.try_init(); // fails only if a subscriber is already installed, which then stays
    std::panic::set_hook(Box::new(
        |panic| tracing::error!(%panic, "panic in the gateway; the request is forwarded unchanged"),
    ));
    Ok(())
}
