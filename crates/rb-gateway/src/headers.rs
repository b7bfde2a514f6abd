//! Headers between client and provider: end-to-end headers pass, hop-by-hop headers and the gateway's own do not.

use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Prefix of the gateway's own headers, which are never forwarded.
const OWN_PREFIX: &str = "x-reasonblocks-";

/// Header of the gateway's key, since `Authorization` is the provider's.
pub const KEY: &str = "x-reasonblocks-key";
/// Header that selects the mode of a request.
pub(crate) const MODE: &str = "x-reasonblocks-mode";

const HOP_BY_HOP: [HeaderName; 5] = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
const HOP_BY_HOP_NAMED: [&str; 3] = ["keep-alive", "proxy-authenticate", "proxy-authorization"];

/// Returns the headers to forward. Host and body length are set by the HTTP client.
pub(crate) fn to_upstream(headers: &HeaderMap) -> HeaderMap {
    let mut passed = end_to_end(headers);
    for name in [HOST, CONTENT_LENGTH, EXPECT] {
        passed.remove(name);
    }
    let ours: Vec<HeaderName> =
        passed.keys().filter(|name| name.as_str().starts_with(OWN_PREFIX)).cloned().collect();
    for name in ours {
        passed.remove(name);
    }
    passed
}

/// Returns the headers of the provider's response to forward.
pub(crate) fn to_client(headers: &HeaderMap) -> HeaderMap {
    end_to_end(headers)
}

fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    // `Connection` lists further hop-by-hop headers.
    let listed = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    for name in listed.flat_map(|value| value.split(',')) {
        passed.remove(name.trim());
    }
    for name in HOP_BY_HOP {
        passed.remove(name);
    }
    for name in HOP_BY_HOP_NAMED {
        passed.remove(name);
    }
    passed
}

/// Restricts the accepted encodings to those that the response parser decodes.
pub(crate) fn keep_readable_encodings(headers: &mut HeaderMap) {
    let Some(given) = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()) else {
        return;
    };
    let readable = |item: &&str| {
        let name = item.split(';').next().unwrap_or_default().trim();
        ["gzip", "deflate", "identity"].contains(&name)
    };
    let kept: Vec<&str> = given.split(',').map(str::trim).filter(readable).collect();
    let kept = if kept.is_empty() { "identity".to_owned() } else { kept.join(", ") };
    if kept != given
        && let Ok(kept) = HeaderValue::from_str(&kept)
    {
        headers.insert(ACCEPT_ENCODING, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn headers_of_the_connection_and_ours_stay_here() {
        let given = headers(&[
            ("host", "localhost"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "5"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
            ("authorization", "Bearer theirs"),
            ("x-api-key", "theirs"),
            ("anthropic-beta", "a,b"),
            ("x-reasonblocks-key", "ours"),
            ("x-reasonblocks-run-id", "r"),
        ]);
        let passed = to_upstream(&given);
        let mut names: Vec<&str> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["anthropic-beta", "authorization", "x-api-key"]);
    }

    #[test]
    fn encodings_that_cannot_be_read_are_not_asked_for() {
        let cases = [
            ("gzip, deflate, br, zstd", "gzip, deflate"),
            ("br;q=1.0, gzip;q=0.8", "gzip;q=0.8"),
            ("br", "identity"),
            ("gzip", "gzip"),
        ];
        for (given, kept) in cases {
            let mut map = headers(&[("accept-encoding", given)]);
            keep_readable_encodings(&mut map);
            assert_eq!(map["accept-encoding"], kept);
        }
        let mut none = HeaderMap::new();
        keep_readable_encodings(&mut none);
        assert!(none.is_empty());
    }
}
