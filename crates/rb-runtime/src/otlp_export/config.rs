//! Collector settings, named like OpenTelemetry's environment variables.

use std::collections::BTreeMap;
use std::fmt;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use rb_wire::otlp::Encoding;
use serde::Deserialize;

/// Unchecked settings. The export is off without an endpoint.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExportRaw {
    /// Base URL of the collector; `/v1/logs` is appended.
    pub endpoint: String,
    /// Full URL for events, overriding `endpoint`.
    pub logs_endpoint: String,
    /// Request headers, such as a key.
    pub headers: BTreeMap<String, String>,
    /// `http/protobuf` or `http/json`.
    pub protocol: String,
    /// Value of `service.name`.
    pub service_name: String,
}

impl fmt::Debug for ExportRaw {
    /// Omits the headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExportRaw({}, {})", self.endpoint, self.logs_endpoint)
    }
}

/// Checked settings.
#[derive(Clone)]
pub struct ExportConfig {
    pub(super) url: Uri,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) encoding: Encoding,
    pub(super) source: Vec<(String, String)>,
}

impl fmt::Debug for ExportConfig {
    /// Omits the headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExportConfig({})", self.url)
    }
}

/// Invalid setting: name, value and expectation.
type Invalid = (&'static str, String, &'static str);

impl ExportRaw {
    /// Parses `name=value` pairs separated by commas, values percent-encoded.
    pub fn parse_headers(text: &str) -> Result<BTreeMap<String, String>, &'static str> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let read = pairs.map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            Some((name.trim().to_owned(), value.into_owned()))
        });
        let read: Option<BTreeMap<String, String>> = read.collect();
        read.ok_or("`name=value` is wanted, with commas between several")
    }

    /// Checks the settings; `None` if the export is off.
    pub fn check(self) -> Result<Option<ExportConfig>, Invalid> {
        let (name, url) = match (self.logs_endpoint.as_str(), self.endpoint.as_str()) {
            ("", "") => return Ok(None),
            ("", base) => ("endpoint", format!("{}/v1/logs", base.trim_end_matches('/'))),
            (whole, _) => ("logs_endpoint", whole.to_owned()),
        };
        let is_http = |url: &Uri| {
            matches!(url.scheme_str(), Some("http" | "https")) && url.authority().is_some()
        };
        let parsed = url.parse().ok().filter(is_http);
        let parsed =
            parsed.ok_or((name, url, "an address that begins with `http://` or `https://`"))?;
        let encoding = match self.protocol.as_str() {
            "" | "http/protobuf" => Encoding::Protobuf,
            "http/json" => Encoding::Json,
            other => return Err(("protocol", other.to_owned(), "`http/protobuf` or `http/json`")),
        };
        let headers = self.headers.into_iter().map(|(name, value)| {
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name).ok()?, value))
        });
        let headers: Option<Vec<_>> = headers.collect();
        let headers = headers.ok_or((
            "headers",
            "…".to_owned(),
            "names and values that HTTP allows in headers",
        ))?;
        let named = if self.service_name.is_empty() { "reasonblocks" } else { &self.service_name };
        let source = vec![
            ("service.name".to_owned(), named.to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ];
        Ok(Some(ExportConfig { url: parsed, headers, encoding, source }))
    }
}
