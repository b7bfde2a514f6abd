//! Where findings go, in the words of OpenTelemetry's environment variables.

use std::collections::BTreeMap;
use std::fmt;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use rb_wire::otlp::Encoding;
use serde::Deserialize;

/// As the file and the environment say it. Off without an address.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExportRaw {
    /// The collector; `/v1/logs` is added.
    pub endpoint: String,
    /// The whole address for events, where it is another one.
    pub logs_endpoint: String,
    /// Headers to send, such as a key.
    pub headers: BTreeMap<String, String>,
    /// `http/protobuf` or `http/json`.
    pub protocol: String,
    /// What to call this server.
    pub service_name: String,
}

impl fmt::Debug for ExportRaw {
    /// The headers stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExportRaw({}, {})", self.endpoint, self.logs_endpoint)
    }
}

/// Where to, checked.
#[derive(Clone)]
pub struct ExportConfig {
    pub(super) url: Uri,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) encoding: Encoding,
    pub(super) source: Vec<(String, String)>,
}

impl fmt::Debug for ExportConfig {
    /// The headers stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExportConfig({})", self.url)
    }
}

/// A setting that cannot work: its name, its value, and what is wanted.
type Wrong = (&'static str, String, &'static str);

impl ExportRaw {
    /// Headers as the environment has them: `name=value` with commas between, values percent-encoded.
    pub(crate) fn read_headers(text: &str) -> Result<BTreeMap<String, String>, &'static str> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let read = pairs.map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            Some((name.trim().to_owned(), value.into_owned()))
        });
        let read: Option<BTreeMap<String, String>> = read.collect();
        read.ok_or("`name=value` is wanted, with commas between several")
    }

    /// Checks that it can work; `None` where nothing is to be sent.
    pub(crate) fn check(self) -> Result<Option<ExportConfig>, Wrong> {
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
