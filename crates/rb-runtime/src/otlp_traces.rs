//! Buffer of open OTLP traces: a trace arrives in pieces, and its runs are built from all of its spans.
//!
//! Bounded in bytes and age. An evicted trace that continues is appended to its stored steps.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rb_store::RunKey;
use rb_wire::otlp::{self, SpanText};

/// Maximum bytes of one trace; further spans are rejected.
const MAX_TRACE_BYTES: usize = 32 << 20;
/// Maximum bytes of all traces; the least recently used are evicted.
const MAX_TOTAL_BYTES: usize = 256 << 20;
const TRACE_TTL: Duration = Duration::from_hours(1);
/// Bytes of an entry besides its text.
const SPAN_OVERHEAD_BYTES: usize = 128;

/// Spans of one trace.
#[derive(Debug, Default)]
pub struct OpenTrace {
    spans: BTreeMap<String, String>,
    bytes: usize,
    /// Number of steps stored before the first buffered span, by run.
    pub stored_before: BTreeMap<String, u32>,
    /// Runs built from the trace so far.
    pub runs: BTreeSet<RunKey>,
}

impl OpenTrace {
    /// Adds spans, replacing those with the same id. Returns the number of rejected spans.
    pub fn add(&mut self, spans: Vec<SpanText>) -> usize {
        let mut refused = 0;
        for SpanText { span_id, json, .. } in spans {
            let before =
                self.spans.get(&span_id).map_or(0, |known| known.len() + SPAN_OVERHEAD_BYTES);
            let bytes = self.bytes - before + json.len() + SPAN_OVERHEAD_BYTES;
            if bytes > MAX_TRACE_BYTES {
                refused += 1;
                continue;
            }
            self.bytes = bytes;
            self.spans.insert(span_id, json);
        }
        refused
    }

    /// All spans as one document.
    pub fn document(&self) -> String {
        otlp::document(self.spans.values().map(String::as_str))
    }
}

/// Open traces by key and project, with the time of their last use.
#[derive(Default)]
pub struct TraceBuffer(Mutex<HashMap<(RunKey, String), (Instant, OpenTrace)>>);

impl TraceBuffer {
    /// Removes a trace; an unknown one is empty. The holder of the trace's lock puts it back.
    pub fn take(&self, trace: &RunKey, project: &str) -> OpenTrace {
        let mut traces = self.0.lock();
        let open = traces.remove(&(trace.clone(), project.to_owned()));
        open.map(|(_, open)| open).unwrap_or_default()
    }

    pub fn put(&self, trace: &RunKey, project: &str, open: OpenTrace) {
        let now = Instant::now();
        let mut traces = self.0.lock();
        traces.retain(|_, (used, _)| now.duration_since(*used) < TRACE_TTL);
        traces.insert((trace.clone(), project.to_owned()), (now, open));
        let mut bytes: usize = traces.values().map(|(_, open)| open.bytes).sum();
        while bytes > MAX_TOTAL_BYTES {
            let oldest = traces.iter().min_by_key(|(_, (used, _))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            bytes -= traces.remove(&key).map_or(0, |(_, open)| open.bytes);
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
    fn a_trace_is_bounded_and_a_span_counts_once() {
        let mut open = OpenTrace::default();
        assert_eq!(open.add(vec![span(1, 20 << 20), span(1, 20 << 20), span(1, 10)]), 0);
        assert_eq!(open.add(vec![span(2, 33 << 20), span(3, 10)]), 1);
        assert_eq!(open.spans.len(), 2);
        assert_eq!(open.bytes, 2 * (12 + SPAN_OVERHEAD_BYTES));
    }

    #[test]
    fn the_least_recently_used_traces_are_evicted() {
        let traces = TraceBuffer::default();
        let key = |at: usize| RunKey { org: "o".to_owned(), run_id: at.to_string() };
        for at in 0..10 {
            let mut open = OpenTrace::default();
            open.add(vec![span(at, 30 << 20)]);
            traces.put(&key(at), "p", open);
        }
        assert_eq!(traces.take(&key(0), "p").spans.len(), 0);
        assert_eq!(traces.take(&key(9), "other").spans.len(), 0);
        assert_eq!(traces.take(&key(9), "p").spans.len(), 1);
    }
}
