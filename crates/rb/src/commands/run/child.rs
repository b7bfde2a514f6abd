//! The child: what its environment says, how signals reach it, and how its end becomes ours.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The name under which Codex finds the gateway.
const CODEX_PROVIDER: &str = "reasonblocks";

/// Where a child finds the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) anthropic: String,
    pub(super) openai: String,
    /// The key of the gateway, where it asks for one.
    pub(super) key: Option<String>,
}

impl Addresses {
    /// What the child's environment gets; nobody else's.
    pub(super) fn environment(&self, headers_before: Option<&str>) -> Vec<(&'static str, String)> {
        let mut set = vec![
            ("ANTHROPIC_BASE_URL", self.anthropic.clone()),
            ("ANTHROPIC_API_BASE", self.anthropic.clone()),
            ("OPENAI_BASE_URL", self.openai.clone()),
            ("OPENAI_API_BASE", self.openai.clone()),
        ];
        if let Some(key) = &self.key {
            let mine = format!("x-reasonblocks-key: {key}");
            let headers = headers_before.filter(|before| !before.is_empty());
            let headers =
                headers.map_or_else(|| mine.clone(), |before| format!("{before}\n{mine}"));
            set.push(("ANTHROPIC_CUSTOM_HEADERS", headers));
            set.push((KEY_VARIABLE, key.clone()));
        }
        set
    }

    /// The arguments of the child: Codex heeds no variable, so its provider entry is laid on top of its own settings.
    pub(super) fn arguments(&self, program: &OsStr, given: &[OsString]) -> Vec<OsString> {
        if !is_codex(program) {
            return given.to_vec();
        }
        let entry =
            |name: &str, value: &str| format!("model_providers.{CODEX_PROVIDER}.{name}={value}");
        let mut settings = vec![
            format!("model_provider=\"{CODEX_PROVIDER}\""),
            entry("name", "\"ReasonBlocks\""),
            entry("base_url", &format!("\"{}\"", self.openai)),
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

/// Where Codex reads the gateway's key from.
const KEY_VARIABLE: &str = "REASONBLOCKS_API_KEY";

/// Whether the command is Codex, by its file name.
pub(super) fn is_codex(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "codex")
}

/// Runs a command to its end, passing signals on.
pub(super) async fn to_its_end(mut command: Command) -> Result<ExitStatus> {
    let mut signals = signals()?; // before the child is there, so that none is missed
    let mut child = command.spawn().context("the command cannot be started")?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    loop {
        tokio::select! {
            status = &mut ended => return Ok(status??),
            Some(signal) = signals.recv() => {
                if let Some(pid) = pid {
                    // The child may have ended in this moment; then there is nobody to tell.
                    let _ = kill_process(pid, signal);
                }
            }
        }
    }
}

/// The signals that are passed on. What a terminal sends reaches the child by itself, and must not reach it twice.
fn signals() -> Result<mpsc::Receiver<Signal>> {
    let has_terminal = std::io::stdin().is_terminal();
    let (told, heard) = mpsc::channel(16);
    let all = [
        (SignalKind::interrupt(), Signal::INT, !has_terminal),
        (SignalKind::quit(), Signal::QUIT, !has_terminal),
        (SignalKind::terminate(), Signal::TERM, true),
        (SignalKind::hangup(), Signal::HUP, true),
        (SignalKind::user_defined1(), Signal::USR1, true),
        (SignalKind::user_defined2(), Signal::USR2, true),
    ];
    for (kind, passed, is_passed) in all {
        // Even a signal that is not passed on is caught: the summary comes after the child's end.
        let mut coming = signal(kind).context("signals cannot be caught")?;
        let told = told.clone();
        tokio::spawn(async move {
            while coming.recv().await.is_some() {
                if is_passed && told.send(passed).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(heard)
}

/// The exit code that says how a child ended, as shells have it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(key: Option<&str>) -> Addresses {
        Addresses {
            anthropic: "http://h/anthropic".to_owned(),
            openai: "http://h/openai/v1".to_owned(),
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
            "no secret in a list of processes"
        );
    }

    #[test]
    fn headers_that_were_set_stay() {
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
    fn an_end_by_a_signal_has_a_code() {
        for (raw, code) in [(0, 0), (7 << 8, 7), (15, 143)] {
            assert_eq!(exit_code(ExitStatus::from_raw(raw)), code);
        }
    }
}
