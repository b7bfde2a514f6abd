//! API reference: renders an OpenAPI document as one page with an inline style sheet and no script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

/// Style sheet of the page, for its content security policy.
pub const STYLE: &str = include_str!("api_docs.css");

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Operation of the document.
struct Operation<'a> {
    method: &'static str,
    path: &'a str,
    fields: &'a Value,
}

impl Operation<'_> {
    fn id(&self) -> &str {
        text(self.fields, "operationId")
    }

    fn has_tag(&self, tag: &str) -> bool {
        list(self.fields, "tags").iter().any(|it| it.as_str() == Some(tag))
    }
}

/// Renders the whole page.
pub fn page(document: &Value) -> String {
    let (title, version) = (text(&document["info"], "title"), text(&document["info"], "version"));
    let operations = operations(document);
    let tags: Vec<_> = list(document, "tags")
        .iter()
        .map(|tag| (text(tag, "name"), text(tag, "description")))
        .filter(|(tag, _)| operations.iter().any(|operation| operation.has_tag(tag)))
        .collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) " API" }
                    p.soft { "Version " (version) " · " a href="openapi.json" { "openapi.json" } }
                    p { (with_code(text(&document["info"], "description"))) }
                }
                (contents(&tags, &operations))
                main {
                    @for (tag, about) in &tags {
                        section {
                            h2 id=(tag) { (tag) }
                            p.soft { (with_code(about)) }
                            @for operation in operations.iter().filter(|it| it.has_tag(tag)) { (article(operation)) }
                        }
                    }
                    (schemas(&document["components"]["schemas"]))
                }
            }
        }
    };
    page.into_string()
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| {
        METHODS.into_iter().filter_map(move |method| {
            let fields = item.get(method)?;
            Some(Operation { method, path, fields })
        })
    });
    operations.collect()
}

fn contents(tags: &[(&str, &str)], operations: &[Operation<'_>]) -> Markup {
    html! {
        nav aria-label="Routes" {
            @for (tag, _) in tags {
                h4 { (tag) }
                ul {
                    @for operation in operations.iter().filter(|it| it.has_tag(tag)) {
                        li { a href={ "#" (operation.id()) } { (method(operation)) " " code { (operation.path) } } }
                    }
                }
            }
        }
    }
}

fn method(operation: &Operation<'_>) -> Markup {
    html! { span class={ "method " (operation.method) } { (operation.method) } }
}

fn article(operation: &Operation<'_>) -> Markup {
    let fields = operation.fields;
    let parameters = list(fields, "parameters").iter().map(|parameter| {
        let is_required = parameter["required"].as_bool() == Some(true);
        [
            html! { code { (text(parameter, "name")) } },
            html! { (text(parameter, "in")) @if is_required { ", required" } },
            type_of(&parameter["schema"]),
            with_code(text(parameter, "description")),
        ]
    });
    let responses = fields["responses"].as_object().into_iter().flatten();
    let responses = responses.map(|(status, response)| {
        let contents = response["content"].as_object().into_iter().flatten();
        let types: Vec<_> = contents.map(|(_, content)| type_of(&content["schema"])).collect();
        [
            html! { code { (status) } },
            joined(&types, " or "),
            with_code(text(response, "description")),
        ]
    });
    html! {
        article id=(operation.id()) {
            h3 { (method(operation)) " " code.path { (operation.path) } }
            @for part in ["summary", "description"] {
                @if !text(fields, part).is_empty() { p { (with_code(text(fields, part))) } }
            }
            p.soft { @if fields.get("security").is_some() { "Requires a key." } @else { "Requires no key." } }
            (table("Parameters", ["name", "in", "type", ""], parameters))
            @for (_, content) in fields["requestBody"]["content"].as_object().into_iter().flatten() {
                h4 { "Body" }
                p { (type_of(&content["schema"])) }
            }
            (table("Responses", ["status", "type", ""], responses))
        }
    }
}

fn schemas(schemas: &Value) -> Markup {
    html! {
        section {
            h2 id="schemas" { "schemas" }
            @for (name, schema) in schemas.as_object().into_iter().flatten() {
                @let fields = fields_of(schema);
                article id={ "schema-" (name) } {
                    h3 { code { (name) } }
                    p { (with_code(text(schema, "description"))) }
                    @if fields.is_empty() { p { (type_of(schema)) } }
                    (table("Fields", ["name", "type", ""], fields.into_iter()))
                }
            }
        }
    }
}

/// Returns the fields of a schema and of the inline schemas in its `allOf`.
fn fields_of(schema: &Value) -> Vec<[Markup; 3]> {
    let mut fields = Vec::new();
    for part in list(schema, "allOf") {
        match part.get("$ref") {
            Some(_) => fields.push([html! { "…" }, type_of(part), html! { "and all its fields" }]),
            None => fields.extend(fields_of(part)),
        }
    }
    let required = list(schema, "required");
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|it| it.as_str() == Some(name));
        fields.push([
            html! { code { (name) } @if !is_required { " " span.soft { "optional" } } },
            type_of(field),
            with_code(text(field, "description")),
        ]);
    }
    fields
}

/// Describes a type, with links to schemas.
fn type_of(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|link| link.rsplit('/').next()) {
        return html! { a href={ "#schema-" (name) } { (name) } };
    }
    for (combination, separator) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(parts) = schema[combination].as_array() {
            return joined(&parts.iter().map(type_of).collect::<Vec<_>>(), separator);
        }
    }
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "anything".to_owned(),
    };
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    html! {
        (name)
        @if let Some(items) = schema.get("items") { " of " (type_of(items)) }
        @else if let Some(values) = values { " of " (type_of(values)) " by name" }
        (limits(schema.as_object()))
    }
}

fn limits(schema: Option<&Map<String, Value>>) -> Markup {
    const LABELS: [(&str, &str); 7] = [
        ("minimum", "from"),
        ("maximum", "to"),
        ("minLength", "at least, in characters:"),
        ("maxLength", "at most, in characters:"),
        ("maxItems", "at most:"),
        ("default", "default"),
        ("enum", "one of"),
    ];
    let limits = LABELS.iter().filter_map(|(key, label)| {
        let value = schema?.get(*key)?;
        // Every count has the minimum 0.
        let is_informative = *key != "minimum" || value.as_f64() != Some(0.0);
        is_informative.then(|| format!("{label} {value}"))
    });
    let limits = limits.collect::<Vec<_>>().join(", ");
    html! { @if !limits.is_empty() { " " span.soft { "(" (limits) ")" } } }
}

fn table<const N: usize>(
    title: &str,
    columns: [&str; N],
    rows: impl Iterator<Item = [Markup; N]>,
) -> Markup {
    let mut rows = rows.peekable();
    html! {
        @if rows.peek().is_some() {
            h4 { (title) }
            div.scroll {
                table {
                    thead { tr { @for column in columns { th scope="col" { (column) } } } }
                    tbody { @for row in rows { tr { @for cell in row { td { (cell) } } } } }
                }
            }
        }
    }
}

fn joined(parts: &[Markup], separator: &str) -> Markup {
    html! { @for (at, part) in parts.iter().enumerate() { @if at > 0 { (separator) } (part) } }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Renders text between back-ticks as code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_described_briefly() {
        let cases = [
            (json!({"type": "string"}), "string"),
            (json!({"type": ["string", "null"]}), "string or null"),
            (json!({"$ref": "#/components/schemas/Run"}), "<a href=\"#schema-Run\">Run</a>"),
            (json!({"type": "array", "items": {"type": "number"}}), "array of number"),
            (
                json!({"type": "object", "additionalProperties": {"type": "integer"}}),
                "object of integer by name",
            ),
            (json!({"oneOf": [{"type": "null"}, {"type": "string"}]}), "null or string"),
            (
                json!({"type": "integer", "minimum": 0, "maximum": 5}),
                "integer <span class=\"soft\">(to 5)</span>",
            ),
            (json!({}), "anything"),
        ];
        for (schema, described) in cases {
            assert_eq!(type_of(&schema).into_string(), described);
        }
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            with_code("a < b & `c > \"d\"`").into_string(),
            "a &lt; b &amp; <code>c &gt; &quot;d&quot;</code>"
        );
        let hostile = json!({
            "info": {"title": "<script>", "version": "1"},
            "tags": [{"name": "x"}],
            "paths": {"/<b>": {"get": {"tags": ["x"], "summary": "<i>", "operationId": "\"><u>"}}},
        });
        let page = page(&hostile);
        for markup in ["<script>", "/<b>", "<i>", "<u>"] {
            assert!(!page.contains(markup), "{markup}");
        }
    }
}
