//! The second opinion is requested once per loop, when an alarm for reworded searches depends on it, and never
//! otherwise.

use std::sync::{Arc, Mutex, PoisonError};

use rb_engine::analysis::embedding::{Embedder, Vector};
use rb_engine::config::Engine;
use rb_engine::run::MonitorSet;
use rb_engine::step::{Input, Step};

/// An embedder with scripted second opinions that records the requests.
struct Scripted {
    says: fn(&str, &str) -> Option<bool>,
    asked: Mutex<Vec<String>>,
}

impl Embedder for Scripted {
    fn embed(&self, text: &str) -> Vector {
        Vector::of(rb_embed::embed(text).values())
    }

    fn second_opinion(&self, a: &str, b: &str) -> Option<bool> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(format!("{a} / {b}"));
        (self.says)(a, b)
    }
}

struct Watched {
    embedder: Arc<Scripted>,
    monitors: MonitorSet,
}

impl Watched {
    fn by(says: fn(&str, &str) -> Option<bool>) -> Self {
        let embedder = Arc::new(Scripted { says, asked: Mutex::default() });
        let rules = Engine::default().with_embedder(Arc::<Scripted>::clone(&embedder));
        Self { embedder, monitors: MonitorSet::new(&rules, "") }
    }

    fn step(&mut self, step: &Step<'_>) -> bool {
        let assessment = self.monitors.observe(step);
        assessment.fired().any(|reading| reading.monitor.id == "semantic_loop")
    }

    /// Runs searches without results and returns, for each, whether the loop fired.
    fn search(&mut self, queries: &[&str]) -> Vec<bool> {
        let step = |query: &&str| {
            let input = format!("{{\"query\": \"{query}\"}}");
            let step = Step::thought("").with_action("codebase_search", Input::Text(&input));
            self.step(&step.with_observation("No results found."))
        };
        queries.iter().map(step).collect()
    }

    fn asked(&self) -> Vec<String> {
        self.embedder.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

const REWORDED: [&str; 3] = ["session timeout", "session expiry", "session token expiration"];
const PAIRS: [&str; 2] =
    ["session timeout / session token expiration", "session expiry / session token expiration"];

#[test]
fn an_alarm_fires_unless_the_second_opinion_denies_it() {
    let check = |says: fn(&str, &str) -> Option<bool>, fires: bool, questions: usize| {
        let mut watched = Watched::by(says);
        assert_eq!(watched.search(&REWORDED), [false, false, fires]);
        assert_eq!(watched.asked()[..2], PAIRS);
        assert_eq!(watched.asked().len(), questions);
    };
    check(|_, _| Some(true), true, 2);
    check(|_, _| None, true, 2);
    check(|_, _| Some(false), false, 2);
    // One confirmed rewording is too few, unless the third asks for the same thing as that one.
    check(|a, _| Some(a != "session timeout"), false, 3);
    check(|a, b| Some((a, b) != ("session timeout", "session token expiration")), true, 3);
    check(|a, _| (a != "session timeout").then_some(true), true, 2);
}

#[test]
fn a_continued_loop_is_checked_once() {
    let mut watched = Watched::by(|_, _| Some(true));
    watched.search(&REWORDED);
    let more = ["expiration of session tokens", "session token timeout", "expired session token"];
    assert_eq!(watched.search(&more), [true, true, true]);
    assert_eq!(watched.asked(), PAIRS);
}

#[test]
fn a_user_message_or_a_denial_starts_a_new_loop() {
    let mut answered = Watched::by(|_, _| Some(true));
    assert_eq!(answered.search(&REWORDED), [false, false, true]);
    answered.step(&Step { user_input: "Try the docs, too.", ..Step::default() });
    assert_eq!(answered.search(&["expiry of sessions", "session timeout"]), [false, false]);
    assert_eq!(answered.asked().len(), PAIRS.len());
    assert_eq!(answered.search(&["session expiration timeout"]), [true]);
    assert_eq!(answered.asked().len(), 2 * PAIRS.len());

    // Rejected searches do not count again: the next loop needs two more.
    let mut denied = Watched::by(|a, _| Some(!PAIRS.iter().any(|pair| pair.starts_with(a))));
    assert_eq!(denied.search(&REWORDED), [false, false, false]);
    assert_eq!(denied.search(&["expiration of session tokens"]), [false]);
    assert_eq!(denied.asked(), PAIRS);
    assert_eq!(denied.search(&["session token timeout"]), [true]);
    assert_eq!(denied.asked().len(), 2 * PAIRS.len());
}

#[test]
fn ordinary_steps_request_no_second_opinion() {
    let mut watched = Watched::by(|_, _| Some(false));
    for at in 0..60 {
        let input = format!("{{\"query\": \"function number {at}\"}}");
        let answer = format!("src/part{at}.rs: fn number_{at}()");
        watched.step(
            &Step::thought("Looking for the next function.")
                .with_action("codebase_search", Input::Text(&input))
                .with_observation(&answer),
        );
        watched.step(
            &Step::thought("Reading it.")
                .with_action("read_file", Input::Text("{\"path\": \"src/lib.rs\"}"))
                .with_observation("pub mod parts;"),
        );
        watched.step(&Step::thought("That was the same file as before."));
    }
    assert!(watched.asked().is_empty(), "{:?}", watched.asked());
}
