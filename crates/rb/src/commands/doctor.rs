//! `rb doctor`: checks a set-up.

use anyhow::Result;
use clap::Args;
use rb_server::doctor::{self, Finding, Health};

use crate::exit::Exit;
use crate::settings::{API_KEY, BASE_URL, DataArgs, Settings, variable};
use crate::ui::{DIM, GREEN, Out, RED, YELLOW, escape_control};

/// Checks a set-up from a client's point of view.
///
/// Checks the settings and the data on this machine and the environment that an agent would see. Asks a running server
/// for the identity of the key, for a test alarm and for the size of its library. Exits with 1 if a check fails.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Server to check; default: `REASONBLOCKS_BASE_URL` or the address in the settings.
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// API key; default: `REASONBLOCKS_API_KEY`.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &DoctorArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let findings = runtime.block_on(check(args));
    for finding in &findings {
        out.result(&line(finding))?;
    }
    out.finish()?;
    let is_bad = findings.iter().any(|finding| finding.health == Health::Bad);
    Ok(if is_bad { Exit::Missed } else { Exit::Quiet })
}

async fn check(args: &DoctorArgs) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut url = args.url.clone().or_else(|| variable(BASE_URL));
    match Settings::load(&args.data) {
        Ok(settings) => {
            findings.extend(check_local(&settings).await);
            url = url.or_else(|| Some(format!("http://{}", settings.raw.listen)));
        }
        Err(error) => {
            findings.push(Finding::bad(format!("cannot read the settings: {error:#}"), ""));
        }
    }
    findings.extend(doctor::environment(variable));
    let url = url.unwrap_or_else(|| "http://127.0.0.1:9000".to_owned());
    let key = args.key.clone().or_else(|| variable(API_KEY));
    findings.extend(doctor::server(&url, key.as_deref()).await);
    findings
}

/// Checks the settings and the database, without a server.
async fn check_local(settings: &Settings) -> Vec<Finding> {
    let config = match settings.raw.clone().check() {
        Ok(_) => match &settings.file {
            Some(file) => Finding::good(format!("the settings in {} are valid", file.display())),
            None => Finding::good("no settings file; defaults apply"),
        },
        Err(error) => Finding::bad(error.to_string(), "correct the setting and try again"),
    };
    let database = if settings.has_database() {
        match settings.open().await {
            Ok(_) => Finding::good(format!("the database {} opens", settings.database_label())),
            Err(error) if settings.raw.database_url.is_empty() => {
                Finding::bad(format!("{error:#}"), "restore a backup, or move the file away")
            }
            Err(error) => Finding::bad(
                format!("{error:#}"),
                "check `database_url` and the network connection to the database",
            ),
        }
    } else {
        let what = format!("no data in {} yet", settings.data_dir.display());
        Finding::remark(what, "`rb serve` creates it at its first start")
    };
    vec![config, database]
}

fn line(finding: &Finding) -> String {
    let (style, sign) = match finding.health {
        Health::Good => (GREEN, "ok   "),
        Health::Remark => (YELLOW, "note "),
        Health::Bad => (RED, "wrong"),
    };
    let what = format!("{style}{sign}{style:#} {}\n", escape_control(&finding.what));
    if finding.advice.is_empty() {
        return what;
    }
    format!("{what}      {DIM}{}{DIM:#}\n", escape_control(&finding.advice))
}
