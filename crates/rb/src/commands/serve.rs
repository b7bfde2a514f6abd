//! `rb serve`: runs the server until it is stopped.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use rb_server::{App, Shared};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::settings::{DataArgs, Settings};
use crate::ui::{BOLD, DIM, Out, escape_control};

/// Runs the server: gateway, dashboard and HTTP API.
///
/// The gateway (`/anthropic`, `/openai`) forwards calls to the model provider, watches the agent and adds guidance. The
/// dashboard (`/`) shows runs, alarms and costs. The API (`/v1`) serves the SDKs and OpenTelemetry exporters.
///
/// Listens on 127.0.0.1:9000, the default of the SDKs, and stores everything in one directory. Without an API key, it
/// accepts every request from this machine and refuses to listen on other addresses.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on. Also `RB_LISTEN`.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    #[command(flatten)]
    data: DataArgs,

    /// Format of log lines on standard error; `RB_LOG` sets the level.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum LogFormat {
    /// Plain text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

const AFTER_HELP: &str = "\
Examples:
  rb serve
  rb serve --data-dir /var/lib/reasonblocks --log-format json
  REASONBLOCKS_KEYS=secret rb serve --listen 0.0.0.0:9000

All settings: docs/server.md";

pub(crate) fn run(args: &ServeArgs, out: &mut Out) -> Result<Exit> {
    let mut settings = Settings::load(&args.data)?;
    if let Some(listen) = &args.listen {
        settings.raw.listen.clone_from(listen);
    }
    init_logs(args.log_format, out.is_stderr_colored());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(serve(settings, out))?;
    Ok(Exit::Quiet)
}

async fn serve(settings: Settings, out: &mut Out) -> Result<()> {
    let config = settings.raw.clone().check()?;
    let is_new = !settings.has_database();
    let store = settings.open_with_backlog().await?;
    let listen = config.listen;
    let app = App::new(config, store).await?;
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("cannot listen on {listen}; is another `rb serve` running? Choose another address with `--listen`")
    })?;
    let address = listener.local_addr()?;
    out.result(&greeting(&app, &settings, address, is_new).await)?;
    out.finish()?;
    rb_server::serve(app, listener, stop_signal()).await?;
    tracing::info!("stopped; all acknowledged data is stored");
    Ok(())
}

/// Completes on SIGINT or SIGTERM.
pub(super) async fn stop_signal() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tracing::info!("stopping; waiting for open requests");
}

/// Formats the start message: addresses, data, keys and, at the first start, the next steps.
async fn greeting(app: &Shared, settings: &Settings, address: SocketAddr, is_new: bool) -> String {
    let url = format!("http://{}", client_address(address));
    let is_open = app.is_open().await;
    let version = env!("CARGO_PKG_VERSION");
    let data = match settings.raw.database_url.as_str() {
        "" => escape_control(&settings.data_dir.display().to_string()).into_owned(),
        _ => format!("in the database {}", escape_control(&settings.database_label())),
    };
    let new = if is_new { " (new)" } else { "" };
    let keys = if is_open {
        "none: every request from this machine is accepted; `rb keys create` creates a key"
    } else {
        "required: `Authorization: Bearer <key>`"
    };
    let mut text = format!(
        "{BOLD}ReasonBlocks {version}{BOLD:#} listens on {BOLD}{url}{BOLD:#}\n  \
         data     {data}{new}\n  keys     {keys}\n"
    );
    if let Some(file) = &settings.file {
        let _ = writeln!(text, "  file     {}", escape_control(&file.display().to_string()));
    }
    let public_url = settings.raw.public_url.trim_end_matches('/');
    let public_url = escape_control(if public_url.is_empty() { &url } else { public_url });
    match app.sign_in_path().await {
        Some(path) => {
            let path = escape_control(&path);
            let _ = writeln!(text, "  pages    {public_url}{path} (valid once, for 15 minutes)");
        }
        None => _ = writeln!(text, "  pages    {public_url}/"),
    }
    let _ = writeln!(text, "  gateway  {url}/anthropic and {url}/openai/v1");
    let _ = writeln!(text, "  API      {url}/docs");
    if is_new {
        text.push_str(&first_steps(&url, is_open));
    }
    text
}

/// Returns the address for a client on this machine; an unspecified address becomes the loopback address.
fn client_address(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

/// Formats commands to paste after the first start, with a placeholder where a key is required.
fn first_steps(url: &str, is_open: bool) -> String {
    let (run_key, header) =
        if is_open { ("", "") } else { (" --key <key>", " -H 'authorization: Bearer <key>'") };
    format!(
        "\nWatch and steer an agent through the gateway:\n\n\
         {DIM}    rb run --url {url}{run_key} -- claude{DIM:#}\n\n\
         Import recorded sessions:\n\n\
         {DIM}    rb import --url {url}{run_key} ~/.claude/projects/{DIM:#}\n\n\
         Evaluate a step with the API:\n\n\
         {DIM}    curl -s {url}/v1/monitors/evaluate{header} -H 'content-type: application/json' \\\n      \
         -d '{{\"steps\": [{{\"thought\": \"Look again.\", \"action\": \"ls\", \"observation\": \"a.rs\"}}]}}'{DIM:#}\n\n\
         Python and TypeScript SDKs: docs/python.md; set REASONBLOCKS_BASE_URL={url}\n"
    )
}

/// Writes logs to standard error; `RB_LOG` sets the level, for example `RB_LOG=debug`.
fn init_logs(format: LogFormat, is_colored: bool) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("RB_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_colored)
        .with_writer(std::io::stderr);
    // Fails only if a subscriber is already installed, which then stays.
    let _ = match format {
        LogFormat::Text => logs.with_target(false).try_init(),
        LogFormat::Json => logs.json().try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_reach_an_unspecified_address_at_the_loopback() {
        for (listen, client) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("0.0.0.0:9000", "127.0.0.1:9000"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.7:9000", "10.0.0.7:9000"),
        ] {
            assert_eq!(client_address(listen.parse().unwrap()), client.parse().unwrap());
        }
    }

    #[test]
    fn first_steps_contain_a_key_placeholder_if_a_key_is_required() {
        let open = first_steps("http://127.0.0.1:9000", true);
        assert!(!open.contains("<key>") && !open.contains("authorization"), "{open}");
        let keyed = first_steps("http://127.0.0.1:9000", false);
        assert!(keyed.contains("--key <key>"), "{keyed}");
        assert!(keyed.contains("-H 'authorization: Bearer <key>'"), "{keyed}");
    }
}
