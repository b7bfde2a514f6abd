//! OpenAPI document: title, areas, security, and the responses that are common to all routes.
//!
//! A route describes its own responses. Those of the middleware and the extractors are added here.

use utoipa::ToSchema as _;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    Components, Content, Header, Info, Object, OpenApi, Ref, RefOr, Response, ResponseBuilder,
    Type, schema,
};

use rb_http::error::{Faults, Problem};

/// Areas, in display order.
const AREAS: [(&str, &str); 10] = [
    ("steering", "Asked before each model call: scores, guidance, patterns."),
    ("telemetry", "Runs as they are reported: begin, steps, end."),
    ("runs", "Runs as they are read."),
    ("profiles", "How much each monitor counts, and who is calling."),
    ("experiments", "Steered runs against runs that were only watched."),
    ("findings", "What agents learned about a codebase, recalled by meaning."),
    ("library", "The stored patterns."),
    ("billing", "The usage meter."),
    ("keys", "Keys, for the operator."),
    ("server", "Is it up, what does it count, what can it do."),
];

const ABOUT: &str = "ReasonBlocks watches agents step by step and steers them. Every route stands under `/v1` and \
    without it. Fields that are not known are ignored; replies may get further fields. An error is \
    `{\"detail\": …}`; a 422 lists each fault with its place.";

/// Merges the documents of the routes with and without a key.
pub(crate) fn whole(mut open: OpenApi, mut closed: OpenApi) -> OpenApi {
    operations(&mut open).for_each(|(_, operation)| add_reading(operation));
    operations(&mut closed).for_each(|(_, operation)| {
        add_reading(operation);
        add_doorkeeping(operation);
    });
    open.merge(closed);
    operations(&mut open).for_each(|(name, operation)| operation.operation_id = Some(name));
    open.info = Info::new("ReasonBlocks", env!("CARGO_PKG_VERSION"));
    open.info.description = Some(ABOUT.to_owned());
    open.tags = Some(AREAS.iter().map(|(name, about)| tag(name, about)).collect());
    let components = open.components.get_or_insert_with(Components::new);
    let mut schemas = Vec::new();
    Problem::schemas(&mut schemas);
    Faults::schemas(&mut schemas);
    schemas.push((Problem::name().into_owned(), <Problem as utoipa::PartialSchema>::schema()));
    schemas.push((Faults::name().into_owned(), <Faults as utoipa::PartialSchema>::schema()));
    components.schemas.extend(schemas);
    add_keys(components);
    open
}

fn tag(name: &str, about: &str) -> utoipa::openapi::Tag {
    utoipa::openapi::tag::TagBuilder::new().name(name).description(Some(about)).build()
}

fn add_keys(components: &mut Components) {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A key of `rb keys create` or of `REASONBLOCKS_KEYS`."))
        .build();
    let token = ApiKeyValue::with_description(
        "token",
        "The same key in the query, for event streams of browsers.",
    );
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    components.add_security_scheme("token", SecurityScheme::ApiKey(ApiKey::Query(token)));
}

/// Iterates over all operations and assigns their ids from method and path.
fn operations(api: &mut OpenApi) -> impl Iterator<Item = (String, &mut Operation)> {
    api.paths.paths.iter_mut().flat_map(|(path, item)| {
        let words = path.trim_start_matches("/v1").replace(['/', '-', '.'], "_");
        let words = words.replace(['{', '}'], "");
        methods(item).into_iter().filter_map(move |(method, operation)| {
            Some((format!("{method}{words}"), operation.as_mut()?))
        })
    })
}

fn methods(item: &mut PathItem) -> [(&'static str, &mut Option<Operation>); 5] {
    [
        ("get", &mut item.get),
        ("post", &mut item.post),
        ("put", &mut item.put),
        ("patch", &mut item.patch),
        ("delete", &mut item.delete),
    ]
}

/// Adds the responses of the extractors.
fn add_reading(operation: &mut Operation) {
    let is_variable = |parameter: &RefOr<_>| matches!(parameter, RefOr::T(_));
    let parameters = operation.parameters.as_deref().unwrap_or_default();
    let has_parameters = parameters.iter().any(is_variable);
    let has_query = parameters.iter().any(|parameter| match parameter {
        RefOr::T(parameter) => parameter.parameter_in == ParameterIn::Query,
        RefOr::Ref(_) => true,
    });
    let has_body = operation.request_body.is_some();
    if has_body || has_parameters {
        add(operation, "400", problem("the body is not JSON, or the address cannot be decoded"));
    }
    if has_body {
        add(operation, "413", problem("the body is larger than `MAX_BODY_BYTES`"));
    }
    if has_body || has_query {
        add(operation, "422", described("a field is missing or wrong", Faults::name().as_ref()));
    }
}

/// Adds the responses of the middleware.
fn add_doorkeeping(operation: &mut Operation) {
    add(operation, "401", problem("no key, or one that is not known or was revoked"));
    let mut busy = problem("too many requests with this key");
    busy.headers.insert("Retry-After".to_owned(), RefOr::T(seconds()));
    add(operation, "429", busy);
    add(operation, "500", problem("a fault in the server; the log has it"));
    let mut away = problem("the database is away for the moment");
    away.headers.insert("Retry-After".to_owned(), RefOr::T(seconds()));
    add(operation, "503", away);
    let none = Vec::<String>::new;
    operation.security = Some(vec![
        SecurityRequirement::new("bearer", none()),
        SecurityRequirement::new("token", none()),
    ]);
}

/// Adds a response unless the route describes it itself.
fn add(operation: &mut Operation, status: &str, response: Response) {
    let responses = &mut operation.responses.responses;
    responses.entry(status.to_owned()).or_insert(RefOr::T(response));
}

fn problem(description: &str) -> Response {
    described(description, Problem::name().as_ref())
}

fn described(description: &str, schema: &str) -> Response {
    let content = Content::new(Some(Ref::from_schema_name(schema)));
    ResponseBuilder::new().description(description).content("application/json", content).build()
}

fn seconds() -> Header {
    let whole = Object::with_type(schema::SchemaType::new(Type::Integer));
    let mut header = Header::new(whole);
    header.description = Some("Seconds to wait.".to_owned());
    header
}
