//! Where the calls of a child went before we came: a base URL that was set already is what the gateway forwards to, so
//! that credentials go where they always went.

use rb_server::gateway::GatewayConfig;

/// The gateway's settings with the addresses that the environment names, and the path behind `/openai` for the child.
pub(super) fn behind(
    mut gateway: GatewayConfig,
    variable: impl Fn(&str) -> Option<String>,
) -> (GatewayConfig, &'static str) {
    let found = |names: [&str; 2]| {
        let set =
            names.into_iter().find_map(|name| variable(name).filter(|url| !url.trim().is_empty()));
        set.map(|url| url.trim().trim_end_matches('/').to_owned()).filter(|url| !is_a_gateway(url))
    };
    let defaults = GatewayConfig::default();
    if gateway.anthropic == defaults.anthropic
        && let Some(url) = found(["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"])
    {
        url.strip_suffix("/v1").unwrap_or(&url).clone_into(&mut gateway.anthropic);
    }
    let mut version = "/v1";
    if gateway.openai == defaults.openai
        && let Some(url) = found(["OPENAI_BASE_URL", "OPENAI_API_BASE"])
    {
        if let Some(host) = url.strip_suffix("/v1") {
            host.clone_into(&mut gateway.openai);
        } else {
            gateway.openai = url;
            version = "";
        }
    }
    (gateway, version)
}

/// An address of a gateway on this machine, such as one that `rb serve` told about. Steering twice helps nobody.
fn is_a_gateway(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return false };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_here = ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        host.strip_prefix(name).is_some_and(|port| port.is_empty() || port.starts_with(':'))
    });
    is_here && matches!(path, "anthropic" | "openai" | "openai/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(set: &[(&str, &str)], anthropic: &str, openai: &str, version: &str) {
        let find =
            |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, url)| (*url).to_owned());
        let (gateway, found) = behind(GatewayConfig::default(), find);
        assert_eq!(
            (gateway.anthropic.as_str(), gateway.openai.as_str(), found),
            (anthropic, openai, version),
            "{set:?}"
        );
    }

    #[test]
    fn calls_go_where_they_went_before() {
        let (anthropic, openai) = ("https://api.anthropic.com", "https://api.openai.com");
        check(&[], anthropic, openai, "/v1");
        check(
            &[("ANTHROPIC_BASE_URL", "https://proxy/claude/")],
            "https://proxy/claude",
            openai,
            "/v1",
        );
        check(
            &[("OPENAI_BASE_URL", "http://localhost:8000/v1")],
            anthropic,
            "http://localhost:8000",
            "/v1",
        );
        check(&[("OPENAI_API_BASE", "https://host/api/v2")], anthropic, "https://host/api/v2", "");
        check(&[("OPENAI_BASE_URL", " ")], anthropic, openai, "/v1");
        check(
            &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:9000/anthropic")],
            anthropic,
            openai,
            "/v1",
        );
        check(&[("OPENAI_BASE_URL", "http://localhost:9000/openai/v1")], anthropic, openai, "/v1");
    }

    #[test]
    fn the_operators_word_wins() {
        let gateway =
            GatewayConfig { anthropic: "http://mine".to_owned(), ..GatewayConfig::default() };
        let (gateway, _) = behind(gateway, |_| Some("http://other/v1".to_owned()));
        assert_eq!(
            (gateway.anthropic.as_str(), gateway.openai.as_str()),
            ("http://mine", "http://other")
        );
    }
}
