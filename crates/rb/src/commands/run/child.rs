//! The child process: environment, forwarded signals, exit code.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, Result};
use rb_wire::providers::Provider;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Provider name in the Codex configuration.
const CODEX_PROVIDER: &str = "reasonblocks";

/// Gateway addresses for the child.
#[derive(Debug)]
pub(super) struct Addresses {
    /// Base URL of each provider.
    pub(super) base_urls: Vec<(&'static Provider, String)>,
    /// API key if the gateway requires one.
    pub(super) key: Option<String>,
}

impl Addresses {
    /// Returns the variables to set for the child.
    pub(super) fn environment(
        &self,
        existing_headers: Option<&str>,
    ) -> Vec<(&'static str, String)> {
        let variables = |(provider, url): &(&'static Provider, String)| {
            let url = url.clone();
            provider.base_url_env.iter().map(move |name| (*name, url.clone()))
        };
        let mut set: Vec<(&'static str, String)> =
            self.base_urls.iter().flat_map(variables).collect();
        if let Some(key) = &self.key {
            let header = format!("x-reasonblocks-key: {key}");
            let headers = match existing_headers {
                None | Some("") => header,
                Some(existing) => format!("{existing}\n{header}"),
            };
            set.push(("ANTHROPIC_CUSTOM_HEADERS", headers));
            set.push((KEY_VARIABLE, key.clone()));
        }
        set
    }

    fn base_url(&self, id: &str) -> &str {
        let found = self.base_urls.iter().find(|(provider, _)| provider.id == id);
        found.map_or("", |(_, url)| url)
    }

    /// Returns the arguments of the child. Codex reads no variable, so its provider entry is passed as `-c` settings.
    pub(super) fn arguments(&self, program: &OsStr, given: &[OsString]) -> Vec<OsString> {
        if !is_codex(program) {
            return given.to_vec();
        }
        let entry =
            |name: &str, value: &str| format!("model_providers.{CODEX_PROVIDER}.{name}={value}");
        let mut settings = vec![
            format!("model_provider=\"{CODEX_PROVIDER}\""),
            entry("name", "\"ReasonBlocks\""),
            entry("base_url", &format!("\"{}\"", self.base_url("openai"))),
            entry("wire_api", "\"responses\""),
            entry("env_key", "\"OPENAI_API_KEY\""),
            entry("supports_websockets", "false"),
        ];
        if self.key.is_some() {
            settings.push(entry(
                "env_http_headers",
                &format!("{{ \"x-reasonblocks-key\" = \"{KEY_VARIABLE}\" }}"),
            ));
        }
        let settings =
            settings.into_iter().flat_map(|setting| [OsString::from("-c"), setting.into()]);
        settings.chain(given.iter().cloned()).collect()
    }
}

/// Variable from which Codex reads the key of the gateway.
const KEY_VARIABLE: &str = "REASONBLOCKS_API_KEY";

/// Returns whether the command is Codex, by its file name.
pub(super) fn is_codex(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "codex")
}

/// Runs a command to its end and forwards signals to it.
pub(super) async fn run(mut command: Command) -> Result<ExitStatus> {
    let mut signals = signals()?; // before the child starts, so that none is lost
    let mut child = command.spawn().context("cannot start the command")?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut exit = tokio::task::spawn_blocking(move || child.wait());
    loop {
        tokio::select! {
            status = &mut exit => return Ok(status??),
            Some(signal) = signals.recv() => {
                if let Some(pid) = pid {
                    let _ = kill_process(pid, signal); // fails if the child has just exited
                }
            }
        }
    }
}

/// Returns the signals to forward. A terminal sends its signals to the child directly, so they are not repeated.
fn signals() -> Result<mpsc::Receiver<Signal>> {
    let has_terminal = std::io::stdin().is_terminal();
    let (sender, receiver) = mpsc::channel(16);
    let all = [
        (SignalKind::interrupt(), Signal::INT, !has_terminal),
        (SignalKind::quit(), Signal::QUIT, !has_terminal),
        (SignalKind::terminate(), Signal::TERM, true),
        (SignalKind::hangup(), Signal::HUP, true),
        (SignalKind::user_defined1(), Signal::USR1, true),
        (SignalKind::user_defined2(), Signal::USR2, true),
    ];
    for (kind, forwarded, is_forwarded) in all {
        // Signals that are not forwarded are caught as well, because the summary follows the exit of the child.
        let mut incoming = signal(kind).context("cannot install a signal handler")?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while incoming.recv().await.is_some() {
                if is_forwarded && sender.send(forwarded).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(receiver)
}

/// Returns the exit code as a shell reports it: 128 plus the number of a fatal signal.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Returns the outcome to record. Exit code 0 is `completed`, not `success`: agents exit with 0 when they give up.
pub(super) fn outcome(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "completed".to_owned(),
        (Some(code), _) => format!("failure: exit code {code}"),
        (None, Some(signal)) => format!("failure: signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rb_wire::providers::PROVIDERS;

    use super::*;

    fn addresses(key: Option<&str>) -> Addresses {
        Addresses {
            base_urls: PROVIDERS
                .iter()
                .map(|provider| (provider, format!("http://h{}", provider.client_path())))
                .collect(),
            key: key.map(str::to_owned),
        }
    }

    #[test]
    fn only_codex_gets_settings() {
        let given = ["exec".into(), "go on".into()];
        for (program, count) in
            [("python3", 2), ("/opt/codex/run", 2), ("codex", 14), ("/usr/bin/codex", 14)]
        {
            let arguments = addresses(None).arguments(OsStr::new(program), &given);
            assert_eq!(arguments.len(), count, "{program}");
            assert_eq!(arguments[count - 2..], given, "{program}");
        }
        let keyed = addresses(Some("k")).arguments(OsStr::new("codex"), &given);
        assert!(
            keyed.iter().all(|argument| !argument.to_string_lossy().contains("\"k\"")),
            "the process list must not contain the key"
        );
    }

    #[test]
    fn existing_headers_are_kept() {
        let find = |set: Vec<(&str, String)>| {
            set.into_iter()
                .find(|(name, _)| *name == "ANTHROPIC_CUSTOM_HEADERS")
                .map(|(_, value)| value)
        };
        assert_eq!(find(addresses(None).environment(Some("a: b"))), None);
        let keyed = addresses(Some("k"));
        assert_eq!(find(keyed.environment(Some("a: b"))).unwrap(), "a: b\nx-reasonblocks-key: k");
        assert_eq!(find(keyed.environment(None)).unwrap(), "x-reasonblocks-key: k");
    }

    #[test]
    fn exit_statuses_have_a_code_and_an_outcome() {
        for (raw, code, expected) in [
            (0, 0, "completed"),
            (7 << 8, 7, "failure: exit code 7"),
            (15, 143, "failure: signal 15"),
        ] {
            let status = ExitStatus::from_raw(raw);
            assert_eq!((exit_code(status), outcome(status).as_str()), (code, expected));
        }
    }
}
