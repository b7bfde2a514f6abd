//! Patterns by the million: shared by everybody, each with a situation in other words, and look-ups that come near them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rb_store::{Change, PatternRow, Store};
use serde_json::json;

/// Sentences that lie in meaning as an agent's do.
#[path = "../../../../crates/rb-embed/tests/it/synthetic_sentences.rs"]
mod sentences;

use self::sentences::Sentences;
use crate::bench::load::{self, Connection, Requests};
use crate::bench::process::Server;
use crate::out;

const AT_ONCE: usize = 500;
/// A node that has not read its library by then has a fault.
const FOUND_WITHIN: Duration = Duration::from_mins(20);
const TOLD_EVERY: Duration = Duration::from_secs(10);

pub(super) async fn put(store: &Arc<dyn Store>, numbers: Range<u64>) -> Result<()> {
    let (sentences, all) = (Sentences::new(), numbers.end);
    let mut told = Instant::now();
    let mut changes = Vec::with_capacity(AT_ONCE);
    for number in numbers {
        changes.push(Change::PutPattern(Box::new(pattern(&sentences, number))));
        if changes.len() == AT_ONCE || number + 1 == all {
            store.apply(std::mem::take(&mut changes)).await?;
            if told.elapsed() >= TOLD_EVERY {
                told = Instant::now();
                out::say(&format!("    {} of {all} patterns", number + 1));
            }
        }
    }
    Ok(())
}

fn pattern(sentences: &Sentences, number: u64) -> PatternRow {
    let fields = json!({
        "trajectory": sentences.sentence(number),
        "diagnosis": "The same call was made again although nothing had changed in between.",
        "intervention": "Look at what the last three answers have in common before the next call.",
        "avoid": "Another attempt with the same words.",
    });
    PatternRow {
        tier: "e2".to_owned(),
        pattern_id: name(number),
        context: sentences.sentence(number),
        fields: fields.as_object().cloned().unwrap_or_default(),
        ..PatternRow::default()
    }
}

fn name(number: u64) -> String {
    format!("pattern-{number:07}")
}

fn look_up(context: &str) -> Vec<u8> {
    let body = json!({"context": context, "tier": "e2", "level": "e2", "top_k": 2, "model": ""});
    load::post("/traces/retrieve", &body.to_string())
}

/// Asks in a pattern's own words until it is found.
pub(super) fn wait_for(server: &Server, number: u64) -> Result<()> {
    let request = look_up(&Sentences::new().sentence(number));
    let wanted = name(number);
    let mut connection = Connection::open(server.address)?;
    let begun = Instant::now();
    while begun.elapsed() < FOUND_WITHIN {
        let (status, body) = connection.call(&request)?;
        if status == 200 && String::from_utf8_lossy(&body).contains(&wanted) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    bail!("the node did not find pattern {number}")
}

/// Look-ups in other words, none twice.
pub(super) fn look_ups(size: u64) -> Requests {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let sentences = Sentences::new();
    Box::new(move || {
        let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(7_919) % size;
        Some(look_up(&sentences.rewording(number)))
    })
}
