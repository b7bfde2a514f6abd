//! Weight profiles: built-in and custom ones, with a preview on stored runs.

use axum::Router;
use axum::routing::{get, post};
use std::collections::BTreeMap;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use maud::{Markup, html};
use rb_engine::config::weights::{Profile, Weights};
use rb_engine::monitors::ALL;
use rb_store::ProfileRow;

use super::profile_preview;
use crate::DashboardState;
use crate::form::{Form, field};
use crate::layout;
use crate::layout::to;
use crate::navigation::{self, Page};
use crate::visitor::Visitor;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::library::{NewProfile, ProfileChange, ProfileId};
use rb_view::bar;
use rb_view::text::{EscapedText, editable, name};

pub(crate) const PAGE: Page = Page { name: "Profiles", path: HERE, operator_only: false, routes };

fn routes() -> Router<DashboardState> {
    Router::new()
        .route(HERE, get(page).post(save))
        .route("/ui/profiles/preview", post(preview))
        .route("/ui/profiles/delete", post(delete))
}

const HERE: &str = "/ui/profiles";
/// Prefix of form fields, before the monitor id.
const WEIGHT: &str = "weight.";

/// Contents of the form.
#[derive(Default)]
struct Draft {
    /// Id of the profile to change; empty for a new one.
    id: String,
    org: String,
    project: String,
    name: String,
    description: String,
    weights: BTreeMap<String, f64>,
}

impl Draft {
    fn of_row(row: &ProfileRow) -> Self {
        Self {
            id: row.profile_id.clone(),
            org: row.org.clone(),
            project: row.project.clone(),
            name: row.profile_id.clone(),
            description: row.description.clone(),
            weights: row.weights.clone(),
        }
    }

    fn of_form(form: &Form) -> ApiResult<Self> {
        let mut weights = BTreeMap::new();
        for (monitor, weight) in form.under(WEIGHT) {
            if weight.is_empty() {
                continue;
            }
            let number: f64 = weight.parse().map_err(|_| {
                let said = format!(
                    "the weight of `{monitor}` is `{weight}`: a number from 0 to 1 is wanted"
                );
                ApiError::BadRequest(said)
            })?;
            weights.insert(monitor.to_owned(), number);
        }
        let text = |field: &str| form.get(field).to_owned();
        Ok(Self {
            id: text("id"),
            org: text("org"),
            project: text("project"),
            name: text("name"),
            description: text("description"),
            weights,
        })
    }

    fn weights(&self) -> Weights {
        let own = self.weights.iter().map(|(name, weight)| (name.as_str(), *weight));
        Weights::default().with(own).0
    }
}

async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    draw(&dashboard, &visitor, &query.unwrap_or_default()).await.unwrap_or_else(layout::problem)
}

async fn draw(dashboard: &DashboardState, visitor: &Visitor, query: &str) -> ApiResult<Response> {
    let own = dashboard.runtime.store.profiles(&visitor.caller.scope(None, None)).await?;
    let asked = |name: &str| field(query, name).unwrap_or_default();
    if asked("new") == "1" {
        return Ok(editing(visitor, &Draft::default(), &html! {}));
    }
    if let Some(id) = field(query, "id") {
        let (org, project) = (asked("org"), asked("project"));
        let is_it =
            |row: &&ProfileRow| row.profile_id == id && row.org == org && row.project == project;
        let row = own.iter().find(is_it).ok_or(ApiError::NotFound("there is no such profile"))?;
        return Ok(editing(visitor, &Draft::of_row(row), &html! {}));
    }
    let body = html! {
        div.title-row { h1 { "Profiles" } a.button href={ (HERE) "?new=1" } { "Add a profile" } }
        p.lead { "How much each monitor counts in the composite. A run chooses a profile by its name (" code { "task_profile" } ")." }
        section {
            h2 { "Your own" }
            @if own.is_empty() { p.note { "There is none yet." } }
            div.grid { @for row in &own {
                div.card {
                    h3 { a href=(address(row)) { (name(&row.profile_id)) } }
                    p.soft { (name(&row.org)) @if !row.project.is_empty() { " · " (name(&row.project)) } }
                    @if !row.description.is_empty() { p { (EscapedText(&row.description, 400)) } }
                    (table(&Draft::of_row(row).weights()))
                }
            } }
        }
        section {
            h2 { "Built in" }
            div.grid { @for profile in Profile::ALL {
                div.card { h3 { (profile.name()) } (table(&Weights::of(profile))) }
            } }
        }
    };
    Ok(navigation::page(visitor, HERE, "Profiles", &body))
}

fn address(row: &ProfileRow) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("id", &row.profile_id).append_pair("org", &row.org);
    query.append_pair("project", &row.project);
    format!("{HERE}?{}", query.finish())
}

fn table(weights: &Weights) -> Markup {
    html! { table.compact { tbody {
        @for (spec, weight) in ALL.iter().zip(weights.iter()) {
            tr { th scope="row" { (spec.id) } td.right { (bar(weight, "fill-warm", &format!("{weight:.2}"))) } }
        }
    } } }
}

/// Renders the form with the preview below it.
fn editing(visitor: &Visitor, draft: &Draft, preview: &Markup) -> Response {
    let is_new = draft.id.is_empty();
    let title = if is_new { "New profile" } else { draft.id.as_str() };
    let standard = Weights::default();
    let body = html! {
        nav.trail aria-label="Where this is" { a href=(HERE) { "Profiles" } }
        h1 { (EscapedText(title, 100)) }
        form.stack.wide method="post" action=(HERE) {
            (visitor.token())
            @for (field, value) in [("id", &draft.id), ("org", &draft.org), ("project", &draft.project)] {
                input type="hidden" name=(field) value=(value);
            }
            @if is_new { label { "Name" input name="name" value=(draft.name) maxlength="64" required; } }
            @else { input type="hidden" name="name" value=(draft.name); }
            label { "What it is for" input name="description" value=(editable(&draft.description)) maxlength="4000"; }
            fieldset { legend { "Weights, from 0 (does not count) to 1" }
                div.weights { @for spec in ALL {
                    @let usual = standard.get(spec.id).unwrap_or_default();
                    @let own = draft.weights.get(spec.id).map(|weight| format!("{weight}")).unwrap_or_default();
                    label { span { (spec.id) } input type="number" name={ (WEIGHT) (spec.id) } min="0" max="1" step="0.01" value=(own) placeholder=(format!("{usual:.2}")); }
                } }
                p.soft { "What is left empty has the weight of " code { "coding" } ", which is shown." }
            }
            div.row { button formaction={ (HERE) "/preview" } formnovalidate { "Try on stored runs" } button.main { "Save" } a href=(HERE) { "Cancel" } }
        }
        (preview)
        @if !is_new {
            details.danger { summary { "Delete this profile" }
                form method="post" action={ (HERE) "/delete" } {
                    (visitor.token())
                    @for (field, value) in [("id", &draft.id), ("org", &draft.org), ("project", &draft.project)] {
                        input type="hidden" name=(field) value=(value);
                    }
                    p.soft { "Runs that name it are judged with the default weights from then on." }
                    button { "Delete it" }
                }
            }
        }
    };
    navigation::page(visitor, HERE, title, &body)
}

/// Renders the form with a preview of its weights on stored runs, without saving them.
async fn preview(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    form: Form,
) -> Response {
    let drawn = async {
        visitor.check(&form)?;
        let draft = Draft::of_form(&form)?;
        let seen = profile_preview::draw(&dashboard, &visitor, &draft.weights()).await?;
        Ok(editing(&visitor, &draft, &seen))
    };
    drawn.await.unwrap_or_else(layout::problem)
}

/// Adds a profile, or changes the one with the id in the form.
async fn save(State(dashboard): State<DashboardState>, visitor: Visitor, form: Form) -> Response {
    match put(&dashboard, &visitor, &form).await {
        Ok(()) => to(HERE),
        Err(error) => layout::problem(error),
    }
}

async fn put(dashboard: &DashboardState, visitor: &Visitor, form: &Form) -> ApiResult<()> {
    visitor.check(form)?;
    let Draft { id, org, project, name, description, weights } = Draft::of_form(form)?;
    let library = &dashboard.runtime.profile_library;
    if id.is_empty() {
        let profile = ProfileId { id: &name, org: None, project: None };
        let new = NewProfile { description, weights, ..NewProfile::default() };
        library.create(&visitor.caller, profile, new).await?;
        return Ok(());
    }
    let profile = ProfileId { id: &id, org: Some(&org), project: Some(&project) };
    // Emptied fields reset their weight.
    let weights = ALL.iter().map(|spec| (spec.id.to_owned(), weights.get(spec.id).copied()));
    let change = ProfileChange {
        description: Some(description),
        weights: weights.collect(),
        ..ProfileChange::default()
    };
    library.change(&visitor.caller, profile, change).await?;
    Ok(())
}

async fn delete(State(dashboard): State<DashboardState>, visitor: Visitor, form: Form) -> Response {
    let deleted = async {
        visitor.check(&form)?;
        let (org, project) = (Some(form.get("org")), Some(form.get("project")));
        let profile = ProfileId { id: form.get("id"), org, project };
        Ok(dashboard.runtime.profile_library.delete(&visitor.caller, profile).await?)
    };
    match deleted.await {
        Ok(()) => to(HERE),
        Err(error) => layout::problem(error),
    }
}
