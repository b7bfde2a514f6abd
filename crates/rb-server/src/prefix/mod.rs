//! Traces that grow: `evaluate` gets the whole run at every step, and pays for the new steps only.
//!
//! A request is recognised as bytes, before anything is parsed. Its blocks are hashed in a chain; where the chain, and
//! the bytes after its last block, are those of an earlier request up to the end of that request's last step, parsing
//! begins there. The state of the monitors after a chain of steps is kept under a hash of those steps, of whose they are
//! and how they are judged, so nothing is ever shared between organisations. A request that is repeated word for word
//! is answered from memory.
//!
//! Every reply holds the mark of the steps it is about. A client that sends it back brings only the steps after it.
//!
//! All of it is bounded in number, bytes and age, and losing any of it costs time only.

/// The bytes of a request into steps and settings.
mod trace;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rb_engine::run::{Assessment, MonitorSet};
use rb_engine::step::Step;
use twox_hash::XxHash3_128;

pub(crate) use trace::{Settings, StepIn, Steps, Trace};

/// Bytes hashed at once.
const BLOCK_BYTES: usize = 4_096;
/// Shorter traces are parsed whole: that is as fast.
const TRAIL_BYTES_MIN: usize = BLOCK_BYTES;
/// Trails that share their blocks; more are forgotten.
const TRAILS_PER_BLOCK: usize = 8;
/// Trails kept; a hundred bytes each and the settings.
const TRAILS_MAX: usize = 16_384;
/// What the kept states may take together.
const STATES_BYTES_MAX: usize = 128 * 1024 * 1024;
/// What the kept replies may take together.
const REPLIES_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A reply is repeated for so long: weights and patterns may have changed after it.
const REPLY_FOR: Duration = Duration::from_secs(5);
/// What a state takes beside its heap.
const STATE_BYTES: usize = 2_048;
/// Thoughts kept to describe the situation, and how much of each.
const THOUGHTS: usize = 5;
const THOUGHT_BYTES_MAX: usize = 8_000;

/// The hash of some steps or some bytes, and whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Mark(u128);

impl Mark {
    /// Where nobody ever was.
    const NOWHERE: Self = Self(0);

    /// As clients get it, and send it back.
    pub(crate) fn shown(self) -> String {
        format!("{:032x}", self.0)
    }

    fn read(shown: &str) -> Option<Self> {
        u128::from_str_radix(shown, 16).ok().map(Self)
    }

    fn of(seed: u64, bytes: &[u8]) -> Self {
        Self(XxHash3_128::oneshot_with_seed(seed, bytes))
    }

    /// This mark, and then those bytes.
    fn then(self, seed: u64, bytes: &[u8]) -> Self {
        let mut both = [0; 32];
        both[..16].copy_from_slice(&self.0.to_le_bytes());
        both[16..].copy_from_slice(&Self::of(seed, bytes).0.to_le_bytes());
        Self::of(seed, &both)
    }
}

/// The monitors after some steps.
pub(crate) struct Watched {
    pub(crate) panel: MonitorSet,
    pub(crate) latest: Arc<Assessment>,
    pub(crate) count: u32,
    thoughts: VecDeque<String>,
}

impl Watched {
    pub(crate) fn new(panel: MonitorSet) -> Self {
        Self { panel, latest: Arc::default(), count: 0, thoughts: VecDeque::new() }
    }

    pub(crate) fn observe(&mut self, step: &Step<'_>) {
        let assessment = self.panel.observe(step);
        if assessment.difficulty.is_some() {
            if self.thoughts.len() == THOUGHTS {
                self.thoughts.pop_front();
            }
            let from = step.thought.len().saturating_sub(THOUGHT_BYTES_MAX);
            let from = step.thought.ceil_char_boundary(from);
            self.thoughts.push_back(step.thought[from..].to_owned());
        }
        self.latest = Arc::new(assessment);
        self.count = self.count.saturating_add(1);
    }

    /// The newest thoughts, oldest first.
    pub(crate) fn situation(&self) -> String {
        self.thoughts.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    fn bytes(&self) -> usize {
        let thoughts: usize = self.thoughts.iter().map(String::capacity).sum();
        STATE_BYTES + self.panel.heap_bytes() + thoughts
    }
}

/// Where an earlier request had its last step.
#[derive(Clone)]
struct Trail {
    /// The byte after the step.
    end: usize,
    /// Of the bytes between the last whole block and the end.
    rest: Mark,
    steps: Mark,
    count: u32,
    /// What stood before the steps.
    head: Arc<Settings>,
}

/// What is remembered of earlier requests.
pub(crate) struct Prefixes {
    /// Differs from start to start, so that nobody can prepare requests whose hashes meet.
    seed: u64,
    memory: Mutex<Memory>,
    states_max: usize,
}

#[derive(Default)]
struct Memory {
    trails: HashMap<Mark, Vec<Trail>>,
    trail_count: usize,
    states: HashMap<Mark, (u64, usize, Watched)>,
    /// States by when they were kept.
    ages: BTreeMap<u64, Mark>,
    states_bytes: usize,
    clock: u64,
    replies: HashMap<Mark, (Instant, Bytes)>,
    replies_bytes: usize,
}

/// The marks of a request's bytes: one before every block, and one of all.
pub(crate) struct Blocks {
    before: Vec<Mark>,
    pub(crate) whole: Mark,
}

impl Prefixes {
    pub(crate) fn new(states_max: usize) -> Self {
        let mut seed = [0; 8];
        // Without chance from the system the clock must do: the seed protects from accidents then, not from malice.
        if getrandom::fill(&mut seed).is_err() {
            seed = crate::clock::now_ms().to_le_bytes();
        }
        Self { seed: u64::from_le_bytes(seed), memory: Mutex::default(), states_max }
    }

    /// The marks of a body as one owner sent it.
    pub(crate) fn blocks(&self, owner: &str, body: &[u8]) -> Blocks {
        let mut mark = Mark::of(self.seed, owner.as_bytes());
        let mut before = Vec::with_capacity(body.len() / BLOCK_BYTES + 1);
        let (blocks, rest) = body.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            before.push(mark);
            mark = mark.then(self.seed, block);
        }
        before.push(mark);
        Blocks { before, whole: mark.then(self.seed, rest) }
    }

    /// The reply to this very request, if it was given a moment ago.
    pub(crate) fn reply(&self, blocks: &Blocks) -> Option<Bytes> {
        let memory = self.lock();
        let (at, reply) = memory.replies.get(&blocks.whole)?;
        (at.elapsed() < REPLY_FOR).then(|| reply.clone())
    }

    pub(crate) fn keep_reply(&self, blocks: &Blocks, reply: Bytes) {
        let mut memory = self.lock();
        if memory.replies_bytes + reply.len() > REPLIES_BYTES_MAX {
            memory.replies.clear();
            memory.replies_bytes = 0;
        }
        memory.replies_bytes += reply.len();
        if let Some((_, old)) = memory.replies.insert(blocks.whole, (Instant::now(), reply)) {
            memory.replies_bytes -= old.len();
        }
    }

    /// Where an earlier request that begins this body ended: the longest there is.
    fn trail(&self, blocks: &Blocks, body: &[u8]) -> Option<Trail> {
        let memory = self.lock();
        for (at, before) in blocks.before.iter().enumerate().skip(1).rev() {
            let Some(trails) = memory.trails.get(before) else { continue };
            let start = at * BLOCK_BYTES;
            let begins = |trail: &&Trail| {
                body.get(start..trail.end)
                    .is_some_and(|rest| Mark::of(self.seed, rest) == trail.rest)
            };
            if let Some(trail) = trails.iter().filter(begins).max_by_key(|trail| trail.end) {
                return Some(trail.clone());
            }
        }
        None
    }

    fn keep_trail(&self, blocks: &Blocks, body: &[u8], trail: Trail) {
        let at = trail.end / BLOCK_BYTES;
        let (Some(before), Some(_)) = (blocks.before.get(at), body.get(..trail.end)) else {
            return;
        };
        let mut memory = self.lock();
        if memory.trail_count >= TRAILS_MAX {
            memory.trails.clear();
            memory.trail_count = 0;
        }
        let trails = memory.trails.entry(*before).or_default();
        if trails.iter().any(|known| known.end == trail.end && known.rest == trail.rest) {
            return;
        }
        let is_full = trails.len() >= TRAILS_PER_BLOCK;
        if is_full {
            trails.remove(0);
        }
        trails.push(trail);
        memory.trail_count += usize::from(!is_full);
    }

    /// Takes the state after some steps out of memory: it goes on, and is kept again under more steps.
    pub(crate) fn take_state(&self, key: Mark) -> Option<Watched> {
        let mut memory = self.lock();
        let (age, bytes, watched) = memory.states.remove(&key)?;
        memory.ages.remove(&age);
        memory.states_bytes -= bytes;
        Some(watched)
    }

    pub(crate) fn keep_state(&self, key: Mark, watched: Watched) {
        let bytes = watched.bytes();
        let mut memory = self.lock();
        memory.clock += 1;
        let age = memory.clock;
        if let Some((age, bytes, _)) = memory.states.insert(key, (age, bytes, watched)) {
            memory.ages.remove(&age);
            memory.states_bytes -= bytes;
        }
        memory.ages.insert(age, key);
        memory.states_bytes += bytes;
        while memory.states.len() > self.states_max || memory.states_bytes > STATES_BYTES_MAX {
            let Some((_, oldest)) = memory.ages.pop_first() else { break };
            if let Some((_, bytes, _)) = memory.states.remove(&oldest) {
                memory.states_bytes -= bytes;
            }
        }
    }

    /// The key of a state: whose steps, how judged, and which.
    pub(crate) fn state_key(&self, judged_by: &[u8], steps: Mark) -> Mark {
        steps.then(self.seed, judged_by)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
