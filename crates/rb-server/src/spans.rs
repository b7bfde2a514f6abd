//! Spans of traces that may still go on: a trace comes in pieces, and its runs are read from all of them together.
//!
//! Bounded in bytes and age. A trace that was let go and goes on is continued behind the steps that are stored.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rb_store::RunKey;
use rb_wire::otlp::{self, SpanText};

/// Of one trace; what comes beyond is refused.
const TRACE_BYTES_MAX: usize = 32 << 20;
/// Of all traces; those that were silent for longest are let go.
const ALL_BYTES_MAX: usize = 256 << 20;
/// A trace that is silent for so long is let go.
const IDLE_MAX: Duration = Duration::from_hours(1);
/// What an entry takes beside its text.
const SPAN_BYTES: usize = 128;

/// The spans of one trace.
#[derive(Debug, Default)]
pub(crate) struct Held {
    spans: BTreeMap<String, String>,
    bytes: usize,
    /// How many steps of a run were stored before the first of these spans.
    pub(crate) bases: BTreeMap<String, u32>,
    /// The runs that were made of it so far.
    pub(crate) runs: BTreeSet<RunKey>,
}

impl Held {
    /// Takes spans, each once, as it came last; answers how many found no room.
    pub(crate) fn add(&mut self, spans: Vec<SpanText>) -> usize {
        let mut refused = 0;
        for SpanText { span_id, json, .. } in spans {
            let before = self.spans.get(&span_id).map_or(0, |known| known.len() + SPAN_BYTES);
            let bytes = self.bytes - before + json.len() + SPAN_BYTES;
            if bytes > TRACE_BYTES_MAX {
                refused += 1;
                continue;
            }
            self.bytes = bytes;
            self.spans.insert(span_id, json);
        }
        refused
    }

    /// Everything as one document.
    pub(crate) fn document(&self) -> String {
        otlp::document(self.spans.values().map(String::as_str))
    }
}

/// The traces in memory, each with the time it was last heard of.
#[derive(Default)]
pub(crate) struct Traces(Mutex<HashMap<(RunKey, String), (Instant, Held)>>);

impl Traces {
    /// Takes a trace of a project out; nothing is an empty one. Whoever has the trace's turn puts it back.
    pub(crate) fn take(&self, trace: &RunKey, project: &str) -> Held {
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = traces.remove(&(trace.clone(), project.to_owned()));
        held.map(|(_, held)| held).unwrap_or_default()
    }

    pub(crate) fn put(&self, trace: &RunKey, project: &str, held: Held) {
        let now = Instant::now();
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        traces.retain(|_, (used, _)| now.duration_since(*used) < IDLE_MAX);
        traces.insert((trace.clone(), project.to_owned()), (now, held));
        let mut bytes: usize = traces.values().map(|(_, held)| held.bytes).sum();
        while bytes > ALL_BYTES_MAX {
            let oldest = traces.iter().min_by_key(|(_, (used, _))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            bytes -= traces.remove(&key).map_or(0, |(_, held)| held.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: usize, bytes: usize) -> SpanText {
        let json = format!("\"{}\"", "x".repeat(bytes));
        SpanText { trace_id: "t".to_owned(), span_id: format!("{id:016x}"), json }
    }

    #[test]
    fn a_trace_has_a_limit_and_a_span_counts_once() {
        let mut held = Held::default();
        assert_eq!(held.add(vec![span(1, 20 << 20), span(1, 20 << 20), span(1, 10)]), 0);
        assert_eq!(held.add(vec![span(2, 33 << 20), span(3, 10)]), 1);
        assert_eq!(held.spans.len(), 2);
        assert_eq!(held.bytes, 2 * (12 + SPAN_BYTES));
    }

    #[test]
    fn the_traces_silent_for_longest_are_let_go() {
        let traces = Traces::default();
        let key = |at: usize| RunKey { org: "o".to_owned(), run_id: at.to_string() };
        for at in 0..10 {
            let mut held = Held::default();
            held.add(vec![span(at, 30 << 20)]);
            traces.put(&key(at), "p", held);
        }
        assert_eq!(traces.take(&key(0), "p").spans.len(), 0);
        assert_eq!(traces.take(&key(9), "other").spans.len(), 0);
        assert_eq!(traces.take(&key(9), "p").spans.len(), 1);
    }
}
