//! Routes of the API description: required ones, and completeness.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use rb_server::openapi;

/// Routes of the contract, by method and path.
const ROUTES: [&str; 44] = [
    "delete /findings/{codebase_id}",
    "delete /findings/{codebase_id}/{finding_id}",
    "delete /keys/{key_id}",
    "delete /library/patterns/{tier}/{pattern_id}",
    "delete /monitor/profiles/{profile_id}",
    "get /billing/meter",
    "get /docs",
    "get /findings",
    "get /findings/{codebase_id}",
    "get /health",
    "get /keys",
    "get /library/patterns",
    "get /metrics",
    "get /monitor/experiments",
    "get /monitor/experiments/{experiment_id}/report",
    "get /monitor/health-summary",
    "get /monitor/me",
    "get /monitor/profiles",
    "get /monitor/profiles/{profile_id}",
    "get /monitor/runs",
    "get /monitor/runs/{run_id}",
    "get /monitor/scorers",
    "get /monitor/stream",
    "get /openapi.json",
    "patch /findings/{codebase_id}/{finding_id}",
    "patch /library/patterns/{tier}/{pattern_id}",
    "patch /monitor/profiles/{profile_id}",
    "post /findings/{codebase_id}",
    "post /findings/{codebase_id}/invalidate",
    "post /findings/{codebase_id}/search",
    "post /keys",
    "post /library/patterns",
    "post /monitor/import",
    "post /monitor/profiles",
    "post /monitor/runs",
    "post /monitor/runs/{run_id}/finish",
    "post /monitor/runs/{run_id}/steer",
    "post /monitor/runs/{run_id}/steps",
    "post /monitor/runs/{run_id}/walk",
    "post /monitors/evaluate",
    "post /otlp/v1/traces",
    "post /score",
    "post /traces",
    "post /traces/retrieve",
];

/// Returns every operation of the description: method, path without `/v1`, and definition.
pub(super) fn operations() -> Vec<(String, String, Value)> {
    let document = serde_json::to_value(openapi()).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/v1").expect("every path is described under /v1");
        for (method, operation) in item.as_object().unwrap() {
            all.push((method.clone(), path.to_owned(), operation.clone()));
        }
    }
    all
}

#[test]
fn every_route_of_the_contract_is_described() {
    let described: BTreeSet<_> =
        operations().into_iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let missing: Vec<_> = ROUTES.iter().filter(|route| !described.contains(**route)).collect();
    assert!(missing.is_empty(), "not described: {missing:?}");
}

#[test]
fn every_operation_says_what_it_is_and_what_it_may_answer() {
    let document = serde_json::to_value(openapi()).unwrap();
    let areas = super::field(&document["tags"], "name");
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations() {
        let said = format!("{method} {path}");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{said}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{said}");
        let tag = operation["tags"][0].as_str().unwrap();
        assert!(areas.iter().any(|area| area == tag), "{said}: `{tag}` is no area");
        let mut expected = Vec::new();
        if operation.get("security").is_some() {
            expected.extend(["401", "429", "500", "503"]);
        }
        if operation.get("requestBody").is_some() {
            expected.extend(["400", "413", "422"]);
        }
        for status in expected {
            assert!(operation["responses"].get(status).is_some(), "{said}: {status}");
        }
    }
    for scheme in ["bearer", "token"] {
        assert!(document["components"]["securitySchemes"].get(scheme).is_some(), "{scheme}");
    }
    assert_eq!(document["info"]["title"], "ReasonBlocks");
}

#[test]
fn every_shape_that_is_named_is_described() {
    fn names(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(link)) = fields.get("$ref") {
                    found.insert(link.replace("#/components/schemas/", ""));
                }
                fields.values().for_each(|value| names(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| names(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = serde_json::to_value(openapi()).unwrap();
    let mut named = BTreeSet::new();
    names(&document, &mut named);
    let missing: Vec<_> = named
        .iter()
        .filter(|name| document["components"]["schemas"].get(name.as_str()).is_none())
        .collect();
    assert!(!named.is_empty() && missing.is_empty(), "{missing:?}");
}

/// Only the macro `routes!` both mounts and describes.
#[test]
fn no_route_is_mounted_past_the_description() {
    fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../rb-api/src"), &mut found);
    assert!(found.len() > 20, "the sources are not where they were");
    let past = [".route", "_service(", "method_routing::", "routing::get", "routing::post"];
    let past = past.map(|call| if call == ".route" { format!("{call}(") } else { call.to_owned() });
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        for call in &past {
            assert!(!text.contains(call.as_str()), "`{call}` in {}", path.display());
        }
    }
}
