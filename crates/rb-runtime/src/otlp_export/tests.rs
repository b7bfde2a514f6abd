//! Checks of the collector settings.

use std::collections::BTreeMap;

use super::*;

#[test]
fn settings_are_checked() {
    let check = |endpoint: &str, protocol: &str, header: &str| {
        let raw = ExportRaw {
            endpoint: endpoint.to_owned(),
            protocol: protocol.to_owned(),
            headers: BTreeMap::from([(header.to_owned(), "v".to_owned())]),
            ..ExportRaw::default()
        };
        raw.check().map(|config| config.map(|config| config.url.to_string())).map_err(|it| it.0)
    };
    for (endpoint, protocol, header, expected) in [
        ("", "grpc", "a", Ok(None)),
        ("http://c:4318", "", "a", Ok(Some("http://c:4318/v1/logs"))),
        ("http://c:4318/", "http/json", "a", Ok(Some("http://c:4318/v1/logs"))),
        ("c:4318", "", "a", Err("endpoint")),
        ("http://c:4317", "grpc", "a", Err("protocol")),
        ("http://c:4318", "", "a b", Err("headers")),
    ] {
        let expected = expected.map(|url| url.map(str::to_owned));
        assert_eq!(check(endpoint, protocol, header), expected, "{endpoint} {protocol} {header}");
    }
    assert!(ExportRaw::parse_headers("nothing").is_err());
}
