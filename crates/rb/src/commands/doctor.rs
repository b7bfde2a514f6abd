//! `rb doctor`: looks at a set-up and says what is wrong with it.

use anyhow::Result;
use rb_server::doctor::{self, Finding, Health};

use crate::cli::DoctorArgs;
use crate::exit::Exit;
use crate::out::{DIM, GREEN, Out, RED, YELLOW, harmless};
use crate::settings::Settings;

pub(crate) fn run(args: &DoctorArgs, out: &mut Out) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let findings = runtime.block_on(look(args));
    for finding in &findings {
        out.result(&line(finding))?;
    }
    out.finish()?;
    let is_bad = findings.iter().any(|finding| finding.health == Health::Bad);
    Ok(if is_bad { Exit::Missed } else { Exit::Quiet })
}

async fn look(args: &DoctorArgs) -> Vec<Finding> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut findings = Vec::new();
    let mut url = args.url.clone().or_else(|| variable("REASONBLOCKS_BASE_URL"));
    match Settings::load(&args.data) {
        Ok(settings) => {
            findings.extend(here(&settings).await);
            url = url.or_else(|| Some(format!("http://{}", settings.raw.listen)));
        }
        Err(error) => {
            findings.push(Finding::bad(format!("the settings cannot be read: {error:#}"), ""));
        }
    }
    findings.extend(doctor::environment(variable));
    let url = url.unwrap_or_else(|| "http://127.0.0.1:9000".to_owned());
    let key = args.key.clone().or_else(|| variable("REASONBLOCKS_API_KEY"));
    findings.extend(doctor::server(&url, key.as_deref()).await);
    findings
}

/// What can be seen without a server: the settings and the data of this machine.
async fn here(settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    match settings.raw.clone().check() {
        Ok(_) => findings.push(match &settings.file {
            Some(file) => Finding::good(format!("the settings in {} can work", file.display())),
            None => Finding::good("there is no settings file; the defaults hold"),
        }),
        Err(error) => findings.push(Finding::bad(error.to_string(), "correct it and look again")),
    }
    if !settings.raw.database_url.is_empty() || settings.database_file().exists() {
        findings.push(match settings.open().await {
            Ok(_) => Finding::good(format!("the database {} opens", settings.place())),
            Err(error) if settings.raw.database_url.is_empty() => {
                Finding::bad(format!("{error:#}"), "restore a backup, or move the file away")
            }
            Err(error) => Finding::bad(
                format!("{error:#}"),
                "check `database_url`, and that the database can be reached from here",
            ),
        });
    } else {
        let what = format!("there is no data in {} yet", settings.data_dir.display());
        findings.push(Finding::remark(what, "`rb serve` makes it at its first start"));
    }
    findings
}

fn line(finding: &Finding) -> String {
    let (style, sign) = match finding.health {
        Health::Good => (GREEN, "ok   "),
        Health::Remark => (YELLOW, "note "),
        Health::Bad => (RED, "wrong"),
    };
    let what = format!("{style}{sign}{style:#} {}\n", harmless(&finding.what));
    if finding.advice.is_empty() {
        return what;
    }
    format!("{what}      {DIM}{}{DIM:#}\n", harmless(&finding.advice))
}
