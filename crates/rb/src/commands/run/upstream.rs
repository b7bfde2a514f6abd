//! Upstream of the gateway: a base URL that is already set in the environment stays the destination of the calls, so
//! that credentials reach the same server as before.

use rb_gateway::GatewayConfig;

/// Applies base URLs of the environment to the gateway, and returns the path suffix of the OpenAI address.
pub(super) fn from_environment(
    mut gateway: GatewayConfig,
    variable: impl Fn(&str) -> Option<String>,
) -> (GatewayConfig, &'static str) {
    let base_url = |names: [&str; 2]| {
        let set =
            names.into_iter().find_map(|name| variable(name).filter(|url| !url.trim().is_empty()));
        set.map(|url| url.trim().trim_end_matches('/').to_owned())
            .filter(|url| !is_local_gateway(url))
    };
    let defaults = GatewayConfig::default();
    if gateway.anthropic == defaults.anthropic
        && let Some(url) = base_url(["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"])
    {
        url.strip_suffix("/v1").unwrap_or(&url).clone_into(&mut gateway.anthropic);
    }
    let mut suffix = "/v1";
    if gateway.openai == defaults.openai
        && let Some(url) = base_url(["OPENAI_BASE_URL", "OPENAI_API_BASE"])
    {
        if let Some(host) = url.strip_suffix("/v1") {
            host.clone_into(&mut gateway.openai);
        } else {
            gateway.openai = url;
            suffix = "";
        }
    }
    (gateway, suffix)
}

/// Returns whether the URL is a gateway on this machine, such as `rb serve`. Two gateways would steer twice.
fn is_local_gateway(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return false };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        host.strip_prefix(name).is_some_and(|port| port.is_empty() || port.starts_with(':'))
    });
    is_local && matches!(path, "anthropic" | "openai" | "openai/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_keep_their_destination() {
        let (anthropic, openai) = ("https://api.anthropic.com", "https://api.openai.com");
        for (name, url, expected) in [
            ("X", "", (anthropic, openai, "/v1")),
            (
                "ANTHROPIC_BASE_URL",
                "https://proxy/claude/",
                ("https://proxy/claude", openai, "/v1"),
            ),
            (
                "OPENAI_BASE_URL",
                "http://localhost:8000/v1",
                (anthropic, "http://localhost:8000", "/v1"),
            ),
            ("OPENAI_API_BASE", "https://host/api/v2", (anthropic, "https://host/api/v2", "")),
            ("OPENAI_BASE_URL", " ", (anthropic, openai, "/v1")),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9000/anthropic", (anthropic, openai, "/v1")),
            ("OPENAI_BASE_URL", "http://localhost:9000/openai/v1", (anthropic, openai, "/v1")),
        ] {
            let variable = |wanted: &str| (wanted == name).then(|| url.to_owned());
            let (gateway, suffix) = from_environment(GatewayConfig::default(), variable);
            let found = (gateway.anthropic.as_str(), gateway.openai.as_str(), suffix);
            assert_eq!(found, expected, "{name} {url}");
        }
    }

    #[test]
    fn configured_upstreams_override_the_environment() {
        let gateway =
            GatewayConfig { anthropic: "http://mine".to_owned(), ..GatewayConfig::default() };
        let (gateway, _) = from_environment(gateway, |_| Some("http://other/v1".to_owned()));
        let found = (gateway.anthropic.as_str(), gateway.openai.as_str());
        assert_eq!(found, ("http://mine", "http://other"));
    }
}
