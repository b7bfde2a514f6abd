//! Upstream of the gateway: a base URL that is already set in the environment stays the destination of the calls, so
//! that credentials reach the same server as before.

use rb_gateway::GatewayConfig;
use rb_wire::providers::{PROVIDERS, Provider};

/// Applies base URLs of the environment to the gateway, and returns each provider with the path of the base URL for its
/// clients.
pub(super) fn from_environment(
    mut gateway: GatewayConfig,
    variable: impl Fn(&str) -> Option<String>,
) -> (GatewayConfig, Vec<(&'static Provider, String)>) {
    let paths = PROVIDERS.iter().map(|provider| {
        let is_default = gateway.base_urls.get(provider.id) == Some(provider.default_base_url);
        let set = provider
            .base_url_env
            .iter()
            .find_map(|name| variable(name).filter(|url| !url.trim().is_empty()));
        let mut path = provider.client_path();
        if let Some(url) = set.filter(|url| is_default && !is_local_gateway(url)) {
            let (base_url, suffix) = provider.split_base_url(&url);
            gateway.base_urls.set(provider.id, base_url);
            path = format!("{}{suffix}", provider.path_prefix);
        }
        (provider, path)
    });
    let paths = paths.collect();
    (gateway, paths)
}

/// Returns whether the URL is a gateway on this machine, such as `rb serve`. Two gateways would steer twice.
fn is_local_gateway(url: &str) -> bool {
    let Some((_, rest)) = url.trim().split_once("://") else { return false };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        host.strip_prefix(name).is_some_and(|port| port.is_empty() || port.starts_with(':'))
    });
    let path = format!("/{}", path.trim_end_matches('/'));
    is_local
        && PROVIDERS
            .iter()
            .any(|provider| path == provider.path_prefix || path == provider.client_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base URLs and paths of Anthropic and OpenAI.
    fn found(gateway: GatewayConfig, name: &str, url: &str) -> [String; 4] {
        let variable = |wanted: &str| (wanted == name).then(|| url.to_owned());
        let (gateway, paths) = from_environment(gateway, variable);
        let base_url = |id| gateway.base_urls.get(id).unwrap().to_owned();
        let path = |id| paths.iter().find(|(provider, _)| provider.id == id).unwrap().1.clone();
        [base_url("anthropic"), path("anthropic"), base_url("openai"), path("openai")]
    }

    #[test]
    fn calls_keep_their_destination() {
        let (anthropic, openai) = ("https://api.anthropic.com", "https://api.openai.com");
        for (name, url, expected) in [
            ("X", "", [anthropic, openai, "/v1"]),
            (
                "ANTHROPIC_BASE_URL",
                "https://proxy/claude/",
                ["https://proxy/claude", openai, "/v1"],
            ),
            ("ANTHROPIC_API_BASE", "https://proxy/v1", ["https://proxy", openai, "/v1"]),
            (
                "OPENAI_BASE_URL",
                "http://localhost:8000/v1",
                [anthropic, "http://localhost:8000", "/v1"],
            ),
            ("OPENAI_API_BASE", "https://host/api/v2", [anthropic, "https://host/api/v2", ""]),
            ("OPENAI_BASE_URL", " ", [anthropic, openai, "/v1"]),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9000/anthropic", [anthropic, openai, "/v1"]),
            ("OPENAI_BASE_URL", "http://localhost:9000/openai/v1", [anthropic, openai, "/v1"]),
        ] {
            let [anthropic, openai, suffix] = expected;
            let openai_path = format!("/openai{suffix}");
            assert_eq!(
                found(GatewayConfig::default(), name, url),
                [anthropic, "/anthropic", openai, &openai_path],
                "{name} {url}"
            );
        }
    }

    #[test]
    fn configured_upstreams_override_the_environment() {
        let mut gateway = GatewayConfig::default();
        gateway.base_urls.set("anthropic", "http://mine");
        let found = found(gateway, "ANTHROPIC_BASE_URL", "http://other/v1");
        assert_eq!(found[0], "http://mine");
    }
}
