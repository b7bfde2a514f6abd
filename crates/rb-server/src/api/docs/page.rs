//! From the OpenAPI document to HTML: a list of routes by area, each route with its parts, then the shapes.

use std::fmt::Write as _;

use serde_json::{Map, Value};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// One operation of the document.
struct Route<'a> {
    method: &'static str,
    path: &'a str,
    operation: &'a Value,
}

impl Route<'_> {
    fn id(&self) -> &str {
        text(self.operation, "operationId")
    }

    fn is_in(&self, area: &str) -> bool {
        list(self.operation, "tags").iter().any(|tag| tag.as_str() == Some(area))
    }
}

/// The whole page.
pub(super) fn page(document: &Value, style: &str) -> String {
    let (title, version) = (text(&document["info"], "title"), text(&document["info"], "version"));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} API</title><style>{style}</style></head><body>\n\
         <header><h1>{title} API</h1><p class=\"soft\">Version {version} · \
         <a href=\"openapi.json\">openapi.json</a></p><p>{}</p></header>\n",
        prose(text(&document["info"], "description")),
        title = escaped(title),
        version = escaped(version),
    );
    let routes = routes(document);
    let areas: Vec<_> = list(document, "tags")
        .iter()
        .map(|tag| (text(tag, "name"), text(tag, "description")))
        .collect();
    contents(&mut out, &areas, &routes);
    out.push_str("<main>\n");
    for (area, about) in &areas {
        let mut within = routes.iter().filter(|route| route.is_in(area)).peekable();
        if within.peek().is_none() {
            continue;
        }
        push(
            &mut out,
            &format!(
                "<section><h2 id=\"{0}\">{0}</h2><p class=\"soft\">{1}</p>\n",
                escaped(area),
                prose(about)
            ),
        );
        within.for_each(|route| article(&mut out, route));
        out.push_str("</section>\n");
    }
    shapes(&mut out, &document["components"]["schemas"]);
    out.push_str("</main></body></html>\n");
    out
}

fn push(out: &mut String, part: &str) {
    out.push_str(part);
}

fn routes(document: &Value) -> Vec<Route<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let routes = paths.flat_map(|(path, item)| {
        METHODS.into_iter().filter_map(move |method| {
            let operation = item.get(method)?;
            Some(Route { method, path, operation })
        })
    });
    routes.collect()
}

fn contents(out: &mut String, areas: &[(&str, &str)], routes: &[Route<'_>]) {
    out.push_str("<nav aria-label=\"Routes\">");
    for (area, _) in areas {
        let within = routes.iter().filter(|route| route.is_in(area));
        let lines = within.map(|route| {
            format!(
                "<li><a href=\"#{}\"><span class=\"method {m}\">{m}</span> <code>{}</code></a></li>",
                escaped(route.id()),
                escaped(route.path),
                m = route.method,
            )
        });
        let lines: String = lines.collect();
        if !lines.is_empty() {
            let _ = write!(out, "<h4>{}</h4><ul>{lines}</ul>", escaped(area)); // a string takes it
        }
    }
    out.push_str("</nav>\n");
}

fn article(out: &mut String, route: &Route<'_>) {
    let operation = route.operation;
    let _ = write!(
        out,
        "<article id=\"{}\"><h3><span class=\"method {m}\">{m}</span> <code class=\"path\">{}</code></h3>",
        escaped(route.id()),
        escaped(route.path),
        m = route.method,
    );
    for part in ["summary", "description"] {
        let said = text(operation, part);
        if !said.is_empty() {
            let _ = write!(out, "<p>{}</p>", prose(said));
        }
    }
    let needs = if operation.get("security").is_some() { "Needs a key." } else { "Needs no key." };
    let _ = write!(out, "<p class=\"soft\">{needs}</p>");
    let parameters = list(operation, "parameters").iter().map(|parameter| {
        let is_required = parameter["required"].as_bool() == Some(true);
        let place = if is_required { ", required" } else { "" };
        [
            format!("<code>{}</code>", escaped(text(parameter, "name"))),
            format!("{}{place}", escaped(text(parameter, "in"))),
            kind(&parameter["schema"]),
            prose(text(parameter, "description")),
        ]
    });
    table(out, "Parameters", ["name", "in", "type", ""], parameters);
    let body = operation["requestBody"]["content"].as_object().into_iter().flatten();
    for (_, content) in body {
        let _ = write!(out, "<h4>Body</h4><p>{}</p>", kind(&content["schema"]));
    }
    let responses = operation["responses"].as_object().into_iter().flatten();
    let responses = responses.map(|(status, response)| {
        let contents = response["content"].as_object().into_iter().flatten();
        let kinds: Vec<_> = contents.map(|(_, content)| kind(&content["schema"])).collect();
        [
            format!("<code>{}</code>", escaped(status)),
            kinds.join(" or "),
            prose(text(response, "description")),
        ]
    });
    table(out, "Replies", ["status", "type", ""], responses);
    out.push_str("</article>\n");
}

fn shapes(out: &mut String, schemas: &Value) {
    out.push_str("<section><h2 id=\"shapes\">shapes</h2>\n");
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        let _ = write!(
            out,
            "<article id=\"schema-{0}\"><h3><code>{0}</code></h3><p>{1}</p>",
            escaped(name),
            prose(text(schema, "description")),
        );
        let mut fields = Vec::new();
        gather(schema, &mut fields);
        if fields.is_empty() {
            let _ = write!(out, "<p>{}</p>", kind(schema));
        }
        table(out, "Fields", ["name", "type", ""], fields.into_iter());
        out.push_str("</article>\n");
    }
    out.push_str("</section>\n");
}

/// The fields of a shape and of the shapes it is made of.
fn gather(schema: &Value, fields: &mut Vec<[String; 3]>) {
    for part in list(schema, "allOf") {
        match part.get("$ref") {
            Some(_) => fields.push(["…".to_owned(), kind(part), "and all its fields".to_owned()]),
            None => gather(part, fields),
        }
    }
    let required = list(schema, "required");
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|it| it.as_str() == Some(name));
        let mark = if is_required { "" } else { " <span class=\"soft\">optional</span>" };
        let code = format!("<code>{}</code>{mark}", escaped(name));
        fields.push([code, kind(field), prose(text(field, "description"))]);
    }
}

/// A type in a few words, with links to shapes.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|link| link.rsplit('/').next()) {
        return format!("<a href=\"#schema-{0}\">{0}</a>", escaped(name));
    }
    for (several, joint) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(parts) = schema[several].as_array() {
            return parts.iter().map(kind).collect::<Vec<_>>().join(joint);
        }
    }
    let named = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "anything".to_owned(),
    };
    let named = escaped(&named);
    let items = schema.get("items").map(|items| format!("{named} of {}", kind(items)));
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    let values = values.map(|values| format!("{named} of {} by name", kind(values)));
    items.or(values).unwrap_or(named) + &limits(schema.as_object())
}

fn limits(schema: Option<&Map<String, Value>>) -> String {
    const SAID: [(&str, &str); 7] = [
        ("minimum", "from"),
        ("maximum", "to"),
        ("minLength", "at least, in characters:"),
        ("maxLength", "at most, in characters:"),
        ("maxItems", "at most:"),
        ("default", "default"),
        ("enum", "one of"),
    ];
    let said = SAID.iter().filter_map(|(key, words)| {
        let value = schema?.get(*key)?;
        // Counts are not negative anyway.
        let is_news = *key != "minimum" || value.as_f64() != Some(0.0);
        is_news.then(|| format!("{words} {}", escaped(&value.to_string())))
    });
    let said = said.collect::<Vec<_>>().join(", ");
    if said.is_empty() { said } else { format!(" <span class=\"soft\">({said})</span>") }
}

fn table<const N: usize>(
    out: &mut String,
    title: &str,
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    let rows = rows.map(|cells| {
        let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
        format!("<tr>{cells}</tr>")
    });
    let rows = rows.collect::<Vec<_>>().concat();
    if rows.is_empty() {
        return;
    }
    let heads = heads.map(|head| format!("<th scope=\"col\">{head}</th>")).concat();
    let _ = write!(
        out,
        "<h4>{title}</h4><div class=\"scroll\"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    );
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Text with what stands between back-ticks as code.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(position, part)| {
        let part = escaped(part);
        if position % 2 == 1 { format!("<code>{part}</code>") } else { part }
    });
    parts.collect()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_told_in_a_few_words() {
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
        for (schema, told) in cases {
            assert_eq!(kind(&schema), told);
        }
    }

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(
            prose("a < b & `c > \"d\"`"),
            "a &lt; b &amp; <code>c &gt; &quot;d&quot;</code>"
        );
        let nasty = json!({
            "info": {"title": "<script>", "version": "1"},
            "tags": [{"name": "x"}],
            "paths": {"/<b>": {"get": {"tags": ["x"], "summary": "<i>", "operationId": "\"><u>"}}},
        });
        let page = page(&nasty, "");
        for markup in ["<script>", "/<b>", "<i>", "<u>"] {
            assert!(!page.contains(markup), "{markup}");
        }
    }
}
