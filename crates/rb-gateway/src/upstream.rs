//! Upstreams, selected by the first segments of the path.

use std::borrow::Cow;
use std::sync::LazyLock;

use axum::http::Uri;
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use rb_wire::dialects::{self, DIALECTS, Dialect};
use rb_wire::providers::Provider;
use serde::Deserialize;

use crate::ConfigError;
use crate::base_urls::BaseUrls;

/// Upstream in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawUpstream {
    /// Path segment after `/up/`.
    pub name: String,
    /// Dialect of the upstream; derived from the path of each request if empty.
    #[serde(default)]
    pub dialect: String,
    /// Base URL, with the common path prefix of its routes.
    pub base_url: String,
}

/// Advice for a dialect that does not exist.
static UNKNOWN_DIALECT: LazyLock<String> = LazyLock::new(|| {
    let ids = DIALECTS.map(|dialect| format!("`{}`", dialect.id()));
    format!("the dialect is one of {}", ids.join(", "))
});

/// Provider that requests are forwarded to.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    /// Row of the provider, for an upstream that is not of the configuration's list.
    provider: Option<&'static Provider>,
    dialect: Option<&'static dyn Dialect>,
    scheme: Scheme,
    authority: Authority,
    /// Without a trailing slash.
    path: String,
}

impl Upstream {
    /// Validates the base URL and the dialect.
    pub(crate) fn new(raw: &RawUpstream) -> Result<Self, ConfigError> {
        let wrong = |wanted| ConfigError {
            name: "upstreams",
            value: format!("{} = {}", raw.name, raw.base_url),
            wanted,
        };
        let uri: Uri = raw
            .base_url
            .parse()
            .map_err(|_| wrong("an address such as `https://host/v1` is wanted"))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(wrong("an address with `http://` or `https://` is wanted"));
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong("only `http` and `https` can be called"));
        }
        let dialect = match raw.dialect.as_str() {
            "" => None,
            id => Some(dialects::by_id(id).ok_or_else(|| wrong(UNKNOWN_DIALECT.as_str()))?),
        };
        let path = parts.path_and_query.map(|path| path.path().to_owned()).unwrap_or_default();
        let path = path.trim_end_matches('/').to_owned();
        Ok(Self { name: raw.name.clone(), provider: None, dialect, scheme, authority, path })
    }

    /// Returns a path as the provider expects it.
    pub(crate) fn path_of<'p>(&self, path: &'p str) -> Cow<'p, str> {
        self.provider.map_or(Cow::Borrowed(path), |provider| provider.upstream_path(path))
    }

    /// Returns the dialect of a request to that path, if the upstream speaks one there.
    pub(crate) fn dialect_of(&self, path: &str) -> Option<&'static dyn Dialect> {
        let found = dialects::by_path(path)?;
        let is_found = |dialect: &&dyn Dialect| dialect.id() == found.id();
        let speaks = match (&self.dialect, self.provider) {
            (Some(fixed), _) => is_found(fixed),
            (None, Some(provider)) => provider.dialects.iter().any(is_found),
            (None, None) => true,
        };
        speaks.then_some(found)
    }

    /// Returns the URI of a path at the provider; `None` if the path is invalid.
    pub(crate) fn uri(&self, path: &str, query: Option<&str>) -> Option<Uri> {
        let path = match query {
            Some(query) => format!("{}{path}?{query}", self.path),
            None => format!("{}{path}", self.path),
        };
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path.parse::<PathAndQuery>().ok()?)
            .build()
            .ok()
    }
}

/// All upstreams.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upstreams(Vec<Upstream>);

impl Upstreams {
    /// Checks the base URLs of all providers and of the configuration's list.
    pub(crate) fn new(base_urls: &BaseUrls, further: &[RawUpstream]) -> Result<Self, ConfigError> {
        let providers = base_urls.iter().map(|(provider, base_url)| {
            let raw = RawUpstream {
                name: provider.id.to_owned(),
                dialect: String::new(),
                base_url: base_url.to_owned(),
            };
            Ok(Upstream { provider: Some(provider), ..Upstream::new(&raw)? })
        });
        providers.chain(further.iter().map(Upstream::new)).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Upstream> {
        self.0.iter().find(|upstream| upstream.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn further() -> Vec<RawUpstream> {
        vec![RawUpstream {
            name: "local".to_owned(),
            dialect: "openai-chat".to_owned(),
            base_url: "http://127.0.0.1:8000/v1/".to_owned(),
        }]
    }

    #[test]
    fn a_path_is_laid_on_the_base() {
        let all = Upstreams::new(&BaseUrls::default(), &further()).unwrap();
        let cases = [
            (
                "anthropic",
                "/v1/messages",
                Some("beta=true"),
                "https://api.anthropic.com/v1/messages?beta=true",
            ),
            ("openai", "/v1/responses/r%2F1", None, "https://api.openai.com/v1/responses/r%2F1"),
            ("local", "/chat/completions", None, "http://127.0.0.1:8000/v1/chat/completions"),
        ];
        for (name, path, query, uri) in cases {
            let upstream = all.find(name).unwrap();
            assert_eq!(upstream.uri(path, query).unwrap().to_string(), uri);
        }
        assert!(all.find("other").is_none());
    }

    #[test]
    fn only_what_can_be_read_has_a_dialect() {
        let all = Upstreams::new(&BaseUrls::default(), &further()).unwrap();
        let cases = [
            ("anthropic", "/v1/messages", Some("anthropic")),
            ("anthropic", "/v1/messages/count_tokens", None),
            ("anthropic", "/v1/models", None),
            ("openai", "/v1/chat/completions", Some("openai-chat")),
            ("openai", "/v1/responses", Some("openai-responses")),
            ("local", "/chat/completions", Some("openai-chat")),
            ("local", "/v1/messages", None),
            ("gemini", "/v1beta/models/gemini-3:generateContent", Some("gemini")),
            ("gemini", "/v1beta/openai/chat/completions", Some("openai-chat")),
            ("gemini", "/v1/messages", None),
        ];
        for (name, path, dialect) in cases {
            let found = all.find(name).unwrap().dialect_of(path).map(Dialect::id);
            assert_eq!(found, dialect, "{name} {path}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_called_is_refused() {
        for base_url in ["", "api.openai.com", "ftp://host", "http://"] {
            let mut base_urls = BaseUrls::default();
            base_urls.set("anthropic", base_url);
            assert!(Upstreams::new(&base_urls, &[]).is_err(), "{base_url}");
        }
    }
}
