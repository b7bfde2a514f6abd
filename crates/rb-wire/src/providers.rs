//! Model providers: one row each. Gateway routes, configuration, `rb run`, doctor, quickstart and documentation are
//! generated from this table.

use std::borrow::Cow;

use crate::dialects::{Anthropic, Dialect, Gemini, OpenAiChat, OpenAiResponses};

/// One row of the table.
#[derive(Debug)]
pub struct Provider {
    /// Stable identifier, also the key of the base URL in the configuration.
    pub id: &'static str,
    /// Clients of the provider, for documentation.
    pub clients: &'static str,
    /// Scheme and host of the provider.
    pub default_base_url: &'static str,
    /// Variables from which clients read the base URL; the first is the documented one.
    pub base_url_env: &'static [&'static str],
    /// Variable with the base URL for the gateway's own calls.
    pub upstream_env: &'static str,
    /// Prefix of the provider's paths at the gateway.
    pub path_prefix: &'static str,
    /// Path that clients expect at the end of their base URL.
    pub base_url_suffix: &'static str,
    /// Dialects that the provider speaks.
    pub dialects: &'static [&'static dyn Dialect],
    /// Version prefix that clients of this provider may leave out.
    pub optional_version_prefix: Option<VersionPrefix>,
}

/// Version prefix of paths that may be left out.
#[derive(Debug)]
pub struct VersionPrefix {
    prefix: &'static str,
    /// First segments of the paths that belong to the version.
    resources: &'static [&'static str],
}

/// Every provider.
pub static PROVIDERS: [Provider; 3] = [
    Provider {
        id: "anthropic",
        clients: "Claude Code and the Anthropic SDKs",
        default_base_url: "https://api.anthropic.com",
        base_url_env: &["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"],
        upstream_env: "RB_UPSTREAM_ANTHROPIC",
        path_prefix: "/anthropic",
        base_url_suffix: "",
        dialects: &[&Anthropic, &OpenAiChat],
        // Clients disagree whether the base URL ends in the version.
        optional_version_prefix: Some(VersionPrefix {
            prefix: "/v1",
            resources: &["messages", "models", "files"],
        }),
    },
    Provider {
        id: "openai",
        clients: "Codex, the OpenAI SDKs and compatible clients",
        default_base_url: "https://api.openai.com",
        base_url_env: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        upstream_env: "RB_UPSTREAM_OPENAI",
        path_prefix: "/openai",
        base_url_suffix: "/v1",
        dialects: &[&OpenAiChat, &OpenAiResponses],
        optional_version_prefix: None,
    },
    Provider {
        id: "gemini",
        clients: "Gemini CLI and the Google Gen AI SDKs",
        default_base_url: "https://generativelanguage.googleapis.com",
        base_url_env: &["GOOGLE_GEMINI_BASE_URL"],
        upstream_env: "RB_UPSTREAM_GEMINI",
        path_prefix: "/gemini",
        base_url_suffix: "",
        dialects: &[&Gemini, &OpenAiChat],
        optional_version_prefix: None,
    },
];

/// Returns the provider with this identifier.
pub fn by_id(id: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.id == id)
}

impl Provider {
    /// Returns the path of the base URL for clients of the gateway.
    pub fn client_path(&self) -> String {
        format!("{}{}", self.path_prefix, self.base_url_suffix)
    }

    /// Returns a path as the provider expects it, with the version prefix.
    pub fn upstream_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        match &self.optional_version_prefix {
            Some(version) if version.resources.contains(&first) => {
                Cow::Owned(format!("{}{path}", version.prefix))
            }
            Some(_) | None => Cow::Borrowed(path),
        }
    }

    /// Splits a base URL that a client uses into the base URL of the provider and the suffix that clients still append
    /// to the gateway's.
    pub fn split_base_url<'u>(&self, url: &'u str) -> (&'u str, &'static str) {
        let url = url.trim().trim_end_matches('/');
        let version = self.optional_version_prefix.as_ref().map_or("", |version| version.prefix);
        let ending = if self.base_url_suffix.is_empty() { version } else { self.base_url_suffix };
        match url.strip_suffix(ending) {
            Some(base) => (base, self.base_url_suffix),
            // Another suffix is part of the provider's base URL.
            None => (url, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::DIALECTS;

    #[test]
    fn every_row_is_complete() {
        for (at, provider) in PROVIDERS.iter().enumerate() {
            let id = provider.id;
            assert!(std::ptr::eq(by_id(id).expect("a row"), provider), "{id} twice");
            assert_eq!(provider.path_prefix, format!("/{id}"));
            assert!(provider.default_base_url.starts_with("https://"), "{id}");
            assert!(!provider.dialects.is_empty() && !provider.base_url_env.is_empty(), "{id}");
            let others = &PROVIDERS[at + 1..];
            assert!(others.iter().all(|other| other.upstream_env != provider.upstream_env), "{id}");
        }
        for dialect in DIALECTS {
            let speaks =
                |provider: &Provider| provider.dialects.iter().any(|it| it.id() == dialect.id());
            assert!(PROVIDERS.iter().any(speaks), "no provider speaks {}", dialect.id());
        }
    }

    #[test]
    fn every_row_is_in_the_documentation() {
        let page = include_str!("../../../docs/gateway.md");
        let any_other = include_str!("../../../docs/agents/any-other.md");
        for Provider { id, path_prefix, default_base_url, upstream_env, base_url_env, .. } in
            &PROVIDERS
        {
            let address =
                format!("\n| `{path_prefix}/…` | `{default_base_url}`, or `{upstream_env}` |");
            assert!(page.contains(&address), "{address}");
            let setting = format!("\n| `{id}` | `{default_base_url}` | `{upstream_env}` |\n");
            assert!(page.contains(&setting), "{setting}");
            for variable in *base_url_env {
                assert!(any_other.contains(&format!("`{variable}`")), "{variable}");
            }
        }
    }

    #[test]
    fn the_version_is_optional_where_clients_omit_it() {
        let cases = [
            ("anthropic", "/messages", "/v1/messages"),
            ("anthropic", "/messages/count_tokens", "/v1/messages/count_tokens"),
            ("anthropic", "/v1/messages", "/v1/messages"),
            ("anthropic", "/api/hello", "/api/hello"),
            ("openai", "/chat/completions", "/chat/completions"),
            ("gemini", "/v1beta/models", "/v1beta/models"),
        ];
        for (id, path, expected) in cases {
            assert_eq!(by_id(id).expect("a row").upstream_path(path), expected, "{id} {path}");
        }
    }

    #[test]
    fn base_urls_of_clients_become_base_urls_of_providers() {
        let cases = [
            ("anthropic", "https://proxy/claude/", ("https://proxy/claude", "")),
            ("anthropic", "https://proxy/v1", ("https://proxy", "")),
            ("openai", "http://localhost:8000/v1", ("http://localhost:8000", "/v1")),
            ("openai", "https://host/api/v2", ("https://host/api/v2", "")),
            ("gemini", " https://host/ ", ("https://host", "")),
        ];
        for (id, url, expected) in cases {
            assert_eq!(by_id(id).expect("a row").split_base_url(url), expected, "{id} {url}");
        }
    }
}
