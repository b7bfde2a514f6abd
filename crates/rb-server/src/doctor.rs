//! Checks of a setup, as seen by a client, with remedies.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request, StatusCode};
use rb_wire::providers::PROVIDERS;
use serde_json::{Value, json};

use rb_runtime::http_client::{self, HttpClient};

const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
const BODY_BYTES_MAX: usize = 1 << 20;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Good,
    /// It works, with a remark.
    Remark,
    Bad,
}

/// Finding of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub health: Health,
    pub what: String,
    /// Remedy; empty if there is nothing to do.
    pub advice: String,
}

impl Finding {
    pub fn good(what: impl Into<String>) -> Self {
        Self { health: Health::Good, what: what.into(), advice: String::new() }
    }

    pub fn remark(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { health: Health::Remark, what: what.into(), advice: advice.into() }
    }

    pub fn bad(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { health: Health::Bad, what: what.into(), advice: advice.into() }
    }
}

/// Checks a running server, as a client with this key.
pub async fn server(url: &str, key: Option<&str>) -> Vec<Finding> {
    let there = Server { client: http_client::new(), url: url.trim_end_matches('/'), key };
    let mut findings = vec![there.is_up().await];
    if findings[0].health == Health::Bad {
        return findings; // further checks would fail as well
    }
    findings.push(there.knows_us().await);
    if findings[1].health != Health::Bad {
        findings.push(there.evaluates().await);
        findings.push(there.has_a_library().await);
    }
    findings
}

/// Checks the environment variables of an agent.
pub fn environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(base) = variable("REASONBLOCKS_BASE_URL").filter(|base| !base.is_empty()) {
        let insecure = variable("REASONBLOCKS_ALLOW_INSECURE").unwrap_or_default().to_lowercase();
        let is_allowed = ["true", "1", "yes", "on"].contains(&insecure.as_str());
        findings.push(base_url(&base, is_allowed));
    }
    for provider in &PROVIDERS {
        let (name, path) = (provider.base_url_env[0], provider.client_path());
        let Some(base) = variable(name).filter(|base| !base.is_empty()) else { continue };
        let base = base.trim_end_matches('/');
        findings.push(if base.ends_with(&path) {
            Finding::good(format!("`{name}` goes through a gateway: {base}"))
        } else {
            let advice =
                format!("to be steered, set it to this server's address with `{path}` behind it");
            Finding::remark(format!("`{name}` is {base}, which is no gateway"), advice)
        });
    }
    findings
}

/// The newest SDK reads some addresses from its environment and silently ignores others.
fn base_url(base: &str, is_insecure_allowed: bool) -> Finding {
    let host =
        base.split_once("://").map(|(_, rest)| rest.split(['/', ':']).next().unwrap_or_default());
    let is_local =
        host.is_some_and(|host| ["localhost", "127.0.0.1", "[::1]", "[", "::1"].contains(&host));
    if base.starts_with("https://")
        || (base.starts_with("http://") && (is_local || is_insecure_allowed))
    {
        return Finding::good(format!("the SDKs use `REASONBLOCKS_BASE_URL`: {base}"));
    }
    Finding::bad(
        format!(
            "`REASONBLOCKS_BASE_URL` is {base}: the SDK 0.2.5 refuses it and sends everything to its vendor"
        ),
        "use `https`, an address on this machine, `base_url=` in the code, or set `REASONBLOCKS_ALLOW_INSECURE=true`",
    )
}

struct Server<'a> {
    client: HttpClient,
    url: &'a str,
    key: Option<&'a str>,
}

impl Server<'_> {
    async fn is_up(&self) -> Finding {
        match self.call(Method::GET, "/health", None).await {
            Ok((StatusCode::OK, body)) => {
                let (theirs, ours) =
                    (body["version"].as_str().unwrap_or("?"), env!("CARGO_PKG_VERSION"));
                if theirs == ours {
                    return Finding::good(format!("{} is up, version {theirs}", self.url));
                }
                let what = format!("{} is up, version {theirs}; this program is {ours}", self.url);
                Finding::remark(what, "use the same version on both sides")
            }
            Ok((StatusCode::SERVICE_UNAVAILABLE, _)) => Finding::bad(
                format!("{} is up, but its database is away", self.url),
                "look into its log; is the disk full or the data folder gone?",
            ),
            Ok((status, _)) => Finding::bad(
                format!("{} answers {status}: that is no ReasonBlocks server", self.url),
                "is the address right, and is nothing else on that port?",
            ),
            Err(cause) => {
                let advice =
                    "is `rb serve` running, and is the address right? `--url` names another";
                Finding::bad(format!("{} does not answer: {cause}", self.url), advice)
            }
        }
    }

    async fn knows_us(&self) -> Finding {
        match self.call(Method::GET, "/v1/monitor/me", None).await {
            Ok((StatusCode::OK, me)) => {
                let org = me["org_id"].as_str().unwrap_or("every organisation");
                match self.key {
                    Some(_) => Finding::good(format!("the key is known: it sees {org}")),
                    None => Finding::good("no key is needed from this machine"),
                }
            }
            Ok((StatusCode::UNAUTHORIZED, _)) if self.key.is_none() => Finding::bad(
                "a key is needed and none was given",
                "set `REASONBLOCKS_API_KEY` or use `--key`; `rb keys create` makes one",
            ),
            Ok((StatusCode::UNAUTHORIZED, _)) => Finding::bad(
                "the key is not known or was revoked",
                "`rb keys list` on the server shows which there are",
            ),
            Ok((status, _)) => {
                Finding::bad(format!("the question who we are was answered {status}"), "")
            }
            Err(cause) => {
                Finding::bad(format!("the question who we are was not answered: {cause}"), "")
            }
        }
    }

    async fn evaluates(&self) -> Finding {
        let step = json!({
            "thought": "I search for the setting again.", "action": "grep",
            "action_input": "{\"pattern\": \"timeout\"}", "observation": "no match",
        });
        let body = json!({ "steps": vec![step; 8], "task_profile": "coding" });
        let begun = Instant::now();
        match self.call(Method::POST, "/v1/monitors/evaluate", Some(&body)).await {
            Ok((StatusCode::OK, reply)) if reply["inject"] == true => {
                let ms = begun.elapsed().as_secs_f64() * 1e3;
                Finding::good(format!("a loop of eight steps is noticed, in {ms:.1} ms"))
            }
            Ok((StatusCode::OK, _)) => Finding::bad(
                "a loop of eight steps goes unnoticed",
                "are the weights of the profile `coding` changed?",
            ),
            Ok((StatusCode::TOO_MANY_REQUESTS, _)) => {
                Finding::remark("the key's allowance is used up", "raise `RATE_LIMIT_PER_SEC`")
            }
            Ok((status, _)) => {
                Finding::bad(format!("an evaluation was answered {status}"), "look into its log")
            }
            Err(cause) => Finding::bad(
                format!("an evaluation was not answered: {cause}"),
                "look into its log",
            ),
        }
    }

    async fn has_a_library(&self) -> Finding {
        match self.call(Method::GET, "/v1/library/patterns?limit=1000", None).await {
            Ok((StatusCode::OK, Value::Array(patterns))) if !patterns.is_empty() => {
                Finding::good(format!("the library has {} patterns", patterns.len()))
            }
            Ok((StatusCode::OK, _)) => Finding::remark(
                "the library is empty: monitors advise, patterns cannot",
                "add some with `POST /v1/library/patterns`",
            ),
            Ok((status, _)) => {
                Finding::bad(format!("the library was answered {status}"), "look into its log")
            }
            Err(cause) => {
                Finding::bad(format!("the library was not answered: {cause}"), "look into its log")
            }
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), String> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(key) = self.key {
            request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| "the address or the key cannot be written into a request".to_owned())?;
        let answer = async {
            let answer = self.client.request(request).await.map_err(|error| plain(&error))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), BODY_BYTES_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
        };
        match tokio::time::timeout(ANSWERS_WITHIN, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} seconds", ANSWERS_WITHIN.as_secs())),
        }
    }
}

/// Innermost cause of an error.
fn plain(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], expected: &[Health]) {
        let find = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let found: Vec<Health> = environment(find).iter().map(|finding| finding.health).collect();
        assert_eq!(found, expected, "{variables:?}");
    }

    #[test]
    fn the_sdks_pitfalls_are_seen() {
        use Health::{Bad, Good, Remark};
        check(&[], &[]);
        check(&[("REASONBLOCKS_BASE_URL", "http://localhost:9000")], &[Good]);
        check(&[("REASONBLOCKS_BASE_URL", "http://[::1]:9000")], &[Good]);
        check(&[("REASONBLOCKS_BASE_URL", "https://rb.example.org/v1")], &[Good]);
        check(&[("REASONBLOCKS_BASE_URL", "http://rb.internal:9000")], &[Bad]);
        let insecure = ("REASONBLOCKS_ALLOW_INSECURE", "True");
        check(&[("REASONBLOCKS_BASE_URL", "http://rb.internal:9000"), insecure], &[Good]);
        check(&[("REASONBLOCKS_BASE_URL", "rb.internal")], &[Bad]);
        check(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:9000/anthropic/")], &[Good]);
        check(&[("OPENAI_BASE_URL", "https://api.openai.com/v1")], &[Remark]);
    }
}
