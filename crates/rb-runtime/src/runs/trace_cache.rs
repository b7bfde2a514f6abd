//! Cache of monitor states for clients that send a growing trace with every request.
//!
//! A state is keyed by the hash of its steps, of their owner and of the engine settings, so nothing is shared between
//! organisations. A reply returns the hash of its steps as a cursor; a client that sends it back sends only the steps
//! after it. Losing a state costs time only.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rb_engine::run::{Assessment, MonitorSet};
use rb_engine::step::Step;
use twox_hash::XxHash3_128;

use crate::clock::now_ms;

/// Maximum bytes of all cached states.
const MAX_STATE_BYTES: usize = 128 * 1024 * 1024;
/// Bytes of a state besides its heap.
const STATE_OVERHEAD_BYTES: usize = 2_048;
/// Thoughts kept as context for retrieval.
const MAX_THOUGHTS: usize = 5;
/// Maximum bytes of one of them.
const MAX_THOUGHT_BYTES: usize = 8_000;

/// Hash of an owner followed by a sequence of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceHash(u128);

impl TraceHash {
    /// Hash that no trace has, for a cursor that cannot be parsed.
    const UNKNOWN: Self = Self(0);

    /// Formats as the cursor of a reply.
    pub fn to_cursor(self) -> String {
        format!("{:032x}", self.0)
    }

    /// Parses a cursor.
    pub fn from_cursor(cursor: &str) -> Self {
        u128::from_str_radix(cursor, 16).map_or(Self::UNKNOWN, Self)
    }

    fn of(seed: u64, bytes: &[u8]) -> Self {
        Self(XxHash3_128::oneshot_with_seed(seed, bytes))
    }

    fn then(self, seed: u64, bytes: &[u8]) -> Self {
        let mut both = [0; 32];
        both[..16].copy_from_slice(&self.0.to_le_bytes());
        both[16..].copy_from_slice(&Self::of(seed, bytes).0.to_le_bytes());
        Self::of(seed, &both)
    }
}

/// Monitors after some steps of a trace.
pub struct MonitorState {
    pub monitors: MonitorSet,
    pub latest: Arc<Assessment>,
    pub step_count: u32,
    thoughts: VecDeque<String>,
}

impl MonitorState {
    pub fn new(monitors: MonitorSet) -> Self {
        Self { monitors, latest: Arc::default(), step_count: 0, thoughts: VecDeque::new() }
    }

    pub fn observe(&mut self, step: &Step<'_>) {
        let assessment = self.monitors.observe(step);
        if assessment.difficulty.is_some() {
            if self.thoughts.len() == MAX_THOUGHTS {
                self.thoughts.pop_front();
            }
            let from = step.thought.len().saturating_sub(MAX_THOUGHT_BYTES);
            let from = step.thought.ceil_char_boundary(from);
            self.thoughts.push_back(step.thought[from..].to_owned());
        }
        self.latest = Arc::new(assessment);
        self.step_count = self.step_count.saturating_add(1);
    }

    /// Newest thoughts, oldest first.
    pub fn context(&self) -> String {
        self.thoughts.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    fn bytes(&self) -> usize {
        let thoughts: usize = self.thoughts.iter().map(String::capacity).sum();
        STATE_OVERHEAD_BYTES + self.monitors.heap_bytes() + thoughts
    }
}

/// Monitor states by trace, bounded in number and bytes; the oldest are evicted first.
pub struct TraceCache {
    /// Random per process, so that clients cannot prepare hash collisions.
    seed: u64,
    states: Mutex<States>,
    max_states: usize,
}

#[derive(Default)]
struct States {
    by_trace: HashMap<TraceHash, (u64, usize, MonitorState)>,
    /// Traces by insertion.
    by_age: BTreeMap<u64, TraceHash>,
    bytes: usize,
    next_age: u64,
}

impl TraceCache {
    pub fn new(max_states: usize) -> Self {
        let mut seed = [0; 8];
        // The clock as a seed prevents accidental collisions only.
        if getrandom::fill(&mut seed).is_err() {
            seed = now_ms().to_le_bytes();
        }
        Self { seed: u64::from_le_bytes(seed), states: Mutex::default(), max_states }
    }

    /// Hash of an owner's empty trace.
    pub fn begin(&self, owner: &str) -> TraceHash {
        TraceHash::of(self.seed, owner.as_bytes())
    }

    /// Hash of a trace extended by the bytes of a step.
    pub fn extend(&self, trace: TraceHash, step: &[u8]) -> TraceHash {
        trace.then(self.seed, step)
    }

    /// Key of the state of a trace under some engine settings.
    pub fn state_key(&self, settings: &[u8], trace: TraceHash) -> TraceHash {
        trace.then(self.seed, settings)
    }

    /// Removes a state; the caller extends it and inserts it under its new key.
    pub fn take(&self, key: TraceHash) -> Option<MonitorState> {
        let mut states = self.states.lock();
        let (age, bytes, state) = states.by_trace.remove(&key)?;
        states.by_age.remove(&age);
        states.bytes -= bytes;
        Some(state)
    }

    pub fn insert(&self, key: TraceHash, state: MonitorState) {
        let bytes = state.bytes();
        let mut states = self.states.lock();
        states.next_age += 1;
        let age = states.next_age;
        if let Some((age, bytes, _)) = states.by_trace.insert(key, (age, bytes, state)) {
            states.by_age.remove(&age);
            states.bytes -= bytes;
        }
        states.by_age.insert(age, key);
        states.bytes += bytes;
        while states.by_trace.len() > self.max_states || states.bytes > MAX_STATE_BYTES {
            let Some((_, oldest)) = states.by_age.pop_first() else { break };
            if let Some((_, bytes, _)) = states.by_trace.remove(&oldest) {
                states.bytes -= bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rb_engine::config::weights::Weights;

    use super::*;
    use crate::retrieval::embedding;
    use crate::runs::assessment::{Suite, trace_engine};

    #[test]
    fn the_oldest_states_are_evicted() {
        let cache = TraceCache::new(3);
        let engine = trace_engine(&embedding::builtin(), Suite::Both, Weights::default());
        let keys: Vec<TraceHash> = (0..5_u8).map(|at| TraceHash::of(0, &[at])).collect();
        for key in &keys {
            cache.insert(*key, MonitorState::new(MonitorSet::new(&engine, "")));
        }
        assert!(keys[..2].iter().all(|key| cache.take(*key).is_none()));
        assert!(keys[2..].iter().all(|key| cache.take(*key).is_some()));
        assert_eq!(cache.states.lock().bytes, 0);
    }

    #[test]
    fn hashes_depend_on_owner_steps_and_settings() {
        let cache = TraceCache::new(1);
        let trace = cache.extend(cache.begin("o"), b"{}");
        assert_eq!(trace, cache.extend(cache.begin("o"), b"{}"));
        assert_ne!(trace, cache.extend(cache.begin("p"), b"{}"));
        assert_ne!(trace, cache.extend(trace, b"{}"));
        assert_ne!(cache.state_key(b"a", trace), cache.state_key(b"b", trace));
        assert_eq!(TraceHash::from_cursor(&trace.to_cursor()), trace);
        assert_eq!(TraceHash::from_cursor("none"), TraceHash::UNKNOWN);
    }
}
