//! A page that is whole in itself: its style inside, nothing loaded, nothing run.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::STYLE;
use super::text::Shown;
use crate::policy;

/// The file that `rb report` writes.
pub fn page(title: &str, body: &Markup) -> String {
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy::one_style(STYLE));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (Shown(title, 120)) " – ReasonBlocks" }
                style { (PreEscaped(STYLE)) } // our own file, and the policy names its hash
            }
            body {
                main { (body) }
                footer { "Drawn by ReasonBlocks" }
            }
        }
    };
    whole.into_string()
}
