//! `rb serve`: the server, from its settings to its last request.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context as _, Result};
use rb_server::{App, Shared};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{LogFormat, ServeArgs};
use crate::exit::Exit;
use crate::out::{BOLD, DIM, Out, harmless};
use crate::settings::Settings;

/// Runs until it is asked to stop.
pub(crate) fn run(args: &ServeArgs, out: &mut Out) -> Result<Exit> {
    let mut settings = Settings::load(&args.data)?;
    if let Some(listen) = &args.listen {
        settings.raw.listen.clone_from(listen);
    }
    log(args.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(settings, out))?;
    Ok(Exit::Quiet)
}

async fn serve(settings: Settings, out: &mut Out) -> Result<()> {
    let config = settings.raw.clone().check()?;
    let is_new = settings.raw.database_url.is_empty() && !settings.database_file().exists();
    let store = settings.open_to_serve().await?;
    let listen = config.listen;
    let app = App::new(config, store).await?;
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("cannot listen on {listen}; is another `rb serve` running? `--listen` takes another address")
    })?;
    let address = listener.local_addr()?;
    out.result(&greeting(&app, &settings, address, is_new).await)?;
    out.finish()?;
    rb_server::serve(app, listener, asked_to_stop()).await?;
    tracing::info!("stopped; everything that was answered is stored");
    Ok(())
}

/// Ready when the user or the system wants the server to end.
pub(super) async fn asked_to_stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tracing::info!("stopping: open requests may finish");
}

/// What to do next, on the screen of whoever started it.
async fn greeting(app: &Shared, settings: &Settings, address: SocketAddr, is_new: bool) -> String {
    let url = format!("http://{}", reached_at(address));
    let is_open = app.is_open().await;
    let version = env!("CARGO_PKG_VERSION");
    let kept = match settings.raw.database_url.as_str() {
        "" => harmless(&settings.data_dir.display().to_string()).into_owned(),
        _ => format!("in the database {}", harmless(&settings.place())),
    };
    let new = if is_new { " (new)" } else { "" };
    let keys = if is_open {
        "none: open to everyone on this machine; `rb keys create` closes it".to_owned()
    } else {
        "needed: `Authorization: Bearer <key>`".to_owned()
    };
    let mut text = format!(
        "{BOLD}ReasonBlocks {version}{BOLD:#} listens on {BOLD}{url}{BOLD:#}\n  \
         data   {kept}{new}\n  keys   {keys}\n"
    );
    // Writing to a string cannot fail.
    if let Some(file) = &settings.file {
        let _ = writeln!(text, "  file   {}", harmless(&file.display().to_string()));
    }
    let people = settings.raw.public_url.trim_end_matches('/');
    let people = if people.is_empty() { url.as_str() } else { people };
    match app.sign_in_path().await {
        Some(path) => {
            let link = format!("{people}{path}");
            let _ = writeln!(text, "  pages  {} (once, within 15 minutes)", harmless(&link));
        }
        None => _ = writeln!(text, "  pages  {}/", harmless(people)),
    }
    let _ = writeln!(text, "  API    {url}/docs");
    if is_new {
        text.push_str(&first_steps(&url, is_open));
    }
    text
}

/// Where somebody on this machine finds a server that listens here: one on all addresses is on the loopback, too.
fn reached_at(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

/// What to paste after the first start. Where a key is needed, it is said where to put it.
fn first_steps(url: &str, is_open: bool) -> String {
    let (key, header) = if is_open {
        ("rb_live_local", "")
    } else {
        ("<key>", " -H 'authorization: Bearer <key>'")
    };
    format!(
        "\nAn agent that uses the public SDK (`pip install reasonblocks`) needs one line more:\n\n\
         {DIM}    export REASONBLOCKS_BASE_URL={url}\n    \
         python -c 'import reasonblocks; print(reasonblocks.ReasonBlocks(api_key=\"{key}\"))'{DIM:#}\n\n\
         A step, posted by hand:\n\n\
         {DIM}    curl -s {url}/v1/monitors/evaluate{header} -H 'content-type: application/json' \\\n      \
         -d '{{\"steps\": [{{\"thought\": \"Look again.\", \"action\": \"ls\", \"observation\": \"a.rs\"}}]}}'{DIM:#}\n"
    )
}

/// Logs go to standard error; `RB_LOG` says how much, as in `RB_LOG=debug`.
fn log(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("RB_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Somebody else may have set the logs up already; then theirs stay.
    let _ = match format {
        LogFormat::Text => logs.with_target(false).try_init(),
        LogFormat::Json => logs.json().try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_reached_at_the_loopback() {
        for (listens, reached) in [
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("0.0.0.0:9000", "127.0.0.1:9000"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.7:9000", "10.0.0.7:9000"),
        ] {
            assert_eq!(reached_at(listens.parse().unwrap()), reached.parse().unwrap());
        }
    }

    #[test]
    fn what_is_to_be_pasted_holds_a_key_where_one_is_needed() {
        let open = first_steps("http://127.0.0.1:9000", true);
        assert!(open.contains("rb_live_local") && !open.contains("authorization"), "{open}");
        let keyed = first_steps("http://127.0.0.1:9000", false);
        assert!(keyed.contains("api_key=\"<key>\""), "{keyed}");
        assert!(keyed.contains("-H 'authorization: Bearer <key>'"), "{keyed}");
    }
}
