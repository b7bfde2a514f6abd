//! Weights under a name: those that come with the engine, and those that were made here.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use rb_engine::monitors::ALL;
use rb_engine::weights::{Profile, Weights};

use super::layout;
use super::visitor::Visitor;
use crate::app::Shared;
use crate::view::bar;
use crate::view::text::{Shown, name};

pub(super) async fn page(State(app): State<Shared>, visitor: Visitor) -> Response {
    let own = match app.store.profiles(&visitor.caller.scope(None, None)).await {
        Ok(own) => own,
        Err(error) => return layout::problem(error.into()),
    };
    let body = html! {
        h1 { "Profiles" }
        p.lead { "How much each monitor counts in the composite. A run chooses a profile by its name." }
        @for row in &own {
            details.card open {
                summary { b { (name(&row.profile_id)) } " " span.soft { (name(&row.org)) } }
                p { (Shown(&row.description, 1_000)) }
                (table(row.weights.iter().map(|(monitor, weight)| (monitor.as_str(), *weight))))
            }
        }
        section {
            h2 { "Built in" }
            @for profile in Profile::ALL {
                @let weights = Weights::of(profile);
                details.card {
                    summary { b { (profile.name()) } }
                    (table(ALL.iter().map(|spec| (spec.id, weights.get(spec.id).unwrap_or_default()))))
                }
            }
        }
    };
    layout::page(&visitor, "/ui/profiles", "Profiles", &body)
}

fn table<'a>(weights: impl Iterator<Item = (&'a str, f64)>) -> Markup {
    html! { table { tbody {
        @for (monitor, weight) in weights {
            tr { td { (name(monitor)) } td { (bar(weight, "fill-hot", &format!("{weight:.2}"))) } }
        }
    } } }
}
