//! In-memory index of all patterns and the vectors of their situations, updated incrementally.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rb_embed::{Calibration, DIMS, DimensionMismatch, Index, Owner, Vector};
use rb_engine::guidance::Tier;
use rb_store::{PatternChange, PatternRow};

use super::{Match, PatternQuery, applies_to_model, pattern_fields};

/// Maximum situations compared per pattern.
const MAX_SITUATIONS: usize = 16;

/// Key of a pattern, in the order of listings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PatternKey {
    tier: &'static str,
    pattern_id: Arc<str>,
    org: Arc<str>,
}

impl PatternKey {
    /// Returns `None` for a tier of a later version.
    fn new(tier: &str, pattern_id: &str, org: &str) -> Option<Self> {
        let tier = Tier::from_name(tier)?.name();
        Some(Self { tier, pattern_id: pattern_id.into(), org: org.into() })
    }
}

/// A pattern with its search fields; the other fields stay serialised, so that a million patterns fit into memory.
#[derive(Debug)]
pub(super) struct IndexedPattern {
    key: PatternKey,
    tier: Tier,
    failure_type: Option<Box<str>>,
    model_family: Option<Box<str>>,
    source_trace_id: Option<Box<str>>,
    gate_threshold: Option<f64>,
    context: Box<str>,
    fields: Box<str>,
}

impl IndexedPattern {
    fn new(row: &PatternRow) -> Option<Self> {
        let boxed = |text: &Option<String>| text.as_deref().map(Into::into);
        Some(Self {
            key: PatternKey::new(&row.tier, &row.pattern_id, &row.org)?,
            tier: Tier::from_name(&row.tier)?,
            failure_type: boxed(&row.failure_type),
            model_family: boxed(&row.model_family),
            source_trace_id: boxed(&row.source_trace_id),
            gate_threshold: row.gate_threshold,
            context: row.context.trim().into(),
            fields: serde_json::to_string(&row.fields).unwrap_or_default().into(),
        })
    }

    /// Row of the pattern without times and use counts.
    fn to_row(&self) -> PatternRow {
        let owned = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        PatternRow {
            org: self.key.org.to_string(),
            tier: self.key.tier.to_owned(),
            pattern_id: self.key.pattern_id.to_string(),
            failure_type: owned(&self.failure_type),
            model_family: owned(&self.model_family),
            source_trace_id: owned(&self.source_trace_id),
            gate_threshold: self.gate_threshold,
            context: self.context.to_string(),
            fields: serde_json::from_str(&self.fields).unwrap_or_default(),
            ..PatternRow::default()
        }
    }

    /// Situations to compare, one per line of the context.
    pub(super) fn situations(&self) -> Vec<String> {
        let described = if self.context.is_empty() && self.tier != Tier::E3 {
            pattern_fields::context(self.tier, &self.to_row().fields)
        } else {
            self.context.to_string()
        };
        let lines = described.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.take(MAX_SITUATIONS).map(str::to_owned).collect()
    }

    /// Returns `true` if the failure types match or either names none.
    fn matches_failure(&self, failure_type: Option<&str>) -> bool {
        match (self.failure_type.as_deref(), failure_type) {
            (Some(own), Some(asked)) => own == asked,
            (None, _) | (_, None) => true,
        }
    }
}

/// One situation of a pattern. Ordered by key, so that all nodes rank equal hits alike.
#[derive(Debug, Clone)]
struct Situation {
    pattern: Arc<IndexedPattern>,
    position: usize,
}

impl Ord for Situation {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pattern.key.cmp(&other.pattern.key).then(self.position.cmp(&other.position))
    }
}

impl PartialOrd for Situation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Situation {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Situation {}

/// Vectors of all situations by one embedder.
struct VectorSet {
    e1: Index<String, Situation>,
    e2: Index<String, Situation>,
    calibration: Calibration,
}

impl VectorSet {
    fn new(dims: usize, calibration: Calibration) -> Self {
        Self { e1: Index::new(dims), e2: Index::new(dims), calibration }
    }

    fn insert(
        &mut self,
        pattern: &Arc<IndexedPattern>,
        vectors: &[Vector],
    ) -> Result<(), DimensionMismatch> {
        for (position, vector) in vectors.iter().enumerate() {
            let situation = Situation { pattern: Arc::clone(pattern), position };
            match pattern.tier {
                Tier::E1 => {
                    self.e1.insert(Owner::Org(pattern.key.org.to_string()), situation, vector)?;
                }
                Tier::E2 => self.e2.insert(Owner::Shared, situation, vector)?,
                Tier::E3 => {}
            }
        }
        Ok(())
    }

    fn remove(&mut self, pattern: &Arc<IndexedPattern>) {
        for position in 0..MAX_SITUATIONS {
            let situation = Situation { pattern: Arc::clone(pattern), position };
            let was_present = match pattern.tier {
                Tier::E1 => self.e1.remove(&Owner::Org(pattern.key.org.to_string()), &situation),
                Tier::E2 => self.e2.remove(&Owner::Shared, &situation),
                Tier::E3 => false,
            };
            if !was_present {
                return;
            }
        }
    }
}

/// A change with its vectors computed, so that applying it is fast.
pub(super) enum PreparedChange {
    Put(Arc<IndexedPattern>, Vec<Vector>),
    Remove(PatternKey),
}

impl PreparedChange {
    /// Returns `None` for a tier of a later version.
    pub(super) fn new(change: &PatternChange) -> Option<Self> {
        match change {
            PatternChange::Put(row) => {
                let pattern = IndexedPattern::new(row)?;
                let vectors =
                    pattern.situations().iter().map(|text| rb_embed::embed(text)).collect();
                Some(Self::Put(Arc::new(pattern), vectors))
            }
            PatternChange::Gone { org, tier, pattern_id } => {
                PatternKey::new(tier, pattern_id, org).map(Self::Remove)
            }
        }
    }
}

/// Index of all patterns.
pub(super) struct PatternIndex {
    /// Version of the last applied change.
    pub(super) version: u64,
    patterns: BTreeMap<PatternKey, Arc<IndexedPattern>>,
    builtin: VectorSet,
    backend: Option<VectorSet>,
    /// Set if there is an embedding backend.
    backend_calibration: Option<Calibration>,
    /// Patterns without vectors of the backend.
    pending: BTreeSet<PatternKey>,
}

/// Vectors of a query, with the embedder they come from.
pub(super) struct QueryVectors {
    vectors: Vec<Vector>,
    is_backend: bool,
}

impl QueryVectors {
    pub(super) fn none() -> Self {
        Self { vectors: Vec::new(), is_backend: false }
    }

    pub(super) fn builtin(texts: &[String]) -> Self {
        Self {
            vectors: texts.iter().map(|text| rb_embed::embed(text)).collect(),
            is_backend: false,
        }
    }

    pub(super) fn backend(vectors: Vec<Vector>) -> Self {
        Self { vectors, is_backend: true }
    }
}

/// Texts to compare for a run's context: all of it, and its newest thought alone, which shows a new situation
/// undiluted.
pub(super) fn query_texts(context: &str) -> Vec<String> {
    let whole = context.trim();
    let newest = whole.lines().next_back().unwrap_or_default().trim();
    let mut texts = vec![whole.to_owned()];
    if newest != whole && !newest.is_empty() {
        texts.push(newest.to_owned());
    }
    texts
}

impl PatternIndex {
    pub(super) fn new(backend_calibration: Option<Calibration>) -> Self {
        Self {
            version: 0,
            patterns: BTreeMap::new(),
            builtin: VectorSet::new(DIMS, Calibration::STATIC_MODEL),
            backend: None,
            backend_calibration,
            pending: BTreeSet::new(),
        }
    }

    pub(super) fn apply(&mut self, change: PreparedChange) {
        match change {
            PreparedChange::Put(pattern, vectors) => {
                self.remove(&pattern.key);
                // Built-in vectors all have `DIMS` dimensions.
                let _ = self.builtin.insert(&pattern, &vectors);
                if self.backend_calibration.is_some() && pattern.tier != Tier::E3 {
                    self.pending.insert(pattern.key.clone());
                }
                self.patterns.insert(pattern.key.clone(), pattern);
            }
            PreparedChange::Remove(key) => self.remove(&key),
        }
    }

    fn remove(&mut self, key: &PatternKey) {
        let Some(pattern) = self.patterns.remove(key) else { return };
        self.builtin.remove(&pattern);
        if let Some(backend) = &mut self.backend {
            backend.remove(&pattern);
        }
        self.pending.remove(key);
    }

    /// Returns some patterns without vectors of the backend.
    pub(super) fn pending(&self, count_max: usize) -> Vec<Arc<IndexedPattern>> {
        let some = self.pending.iter().take(count_max);
        some.filter_map(|key| self.patterns.get(key)).map(Arc::clone).collect()
    }

    /// Adds the backend's vectors of a pattern, unless the pattern has changed meanwhile.
    pub(super) fn add_backend_vectors(
        &mut self,
        pattern: &Arc<IndexedPattern>,
        vectors: &[Vector],
    ) -> Result<(), DimensionMismatch> {
        let is_current =
            self.patterns.get(&pattern.key).is_some_and(|current| Arc::ptr_eq(current, pattern));
        let Some(calibration) = self.backend_calibration.filter(|_| is_current) else {
            return Ok(());
        };
        if let Some(first) = vectors.first() {
            let backend =
                self.backend.get_or_insert_with(|| VectorSet::new(first.dims(), calibration));
            backend.insert(pattern, vectors)?;
        }
        self.pending.remove(&pattern.key);
        Ok(())
    }

    /// Returns `true` once all patterns have vectors of the backend.
    pub(super) fn has_backend_vectors(&self) -> bool {
        self.backend.is_some() && self.pending.is_empty()
    }

    /// Patterns of a tier above the similarity gate, best first, each once.
    pub(super) fn nearest(
        &self,
        tier: Tier,
        vectors: &QueryVectors,
        query: &PatternQuery<'_>,
        gate: f64,
    ) -> Vec<Match> {
        let set = if vectors.is_backend { self.backend.as_ref() } else { Some(&self.builtin) };
        let Some(VectorSet { e1, e2, calibration }) = set else { return Vec::new() };
        let index = match tier {
            Tier::E1 => e1,
            Tier::E2 => e2,
            Tier::E3 => return Vec::new(),
        };
        let similarity = |cosine: f32| f64::from(calibration.similarity(cosine));
        let is_match = |Situation { pattern, .. }: &Situation, cosine: f32| {
            similarity(cosine) >= pattern.gate_threshold.unwrap_or(0.0).max(gate)
                && pattern.matches_failure(query.failure_type)
                && applies_to_model(pattern.model_family.as_deref(), query.model)
        };
        #[expect(clippy::cast_possible_truncation, reason = "a gate needs two digits")]
        let cosine_min = calibration.cosine_at(gate as f32);
        // Enough hits for `top_k` patterns even if each has all its situations among them.
        let count_max = query.top_k.saturating_mul(MAX_SITUATIONS);
        let nearby = rb_embed::SearchParams { max_hits: count_max, min_cosine: cosine_min };
        let hits = vectors.vectors.iter().filter_map(|vector| {
            index.nearest_where(query.org.to_owned(), vector, nearby, is_match).ok()
        });
        let mut hits: Vec<(f32, &Situation)> =
            hits.flatten().map(|hit| (hit.cosine, hit.id)).collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let mut found: Vec<(f32, &Arc<IndexedPattern>)> = Vec::new();
        for (cosine, Situation { pattern, .. }) in hits {
            let is_known = found.iter().any(|(_, known)| Arc::ptr_eq(known, pattern));
            if found.len() < query.top_k && !is_known {
                found.push((cosine, pattern));
            }
        }
        let matched = |(cosine, pattern): (f32, &Arc<IndexedPattern>)| Match {
            row: pattern.to_row(),
            tier: pattern.tier,
            similarity: similarity(cosine),
        };
        found.into_iter().map(matched).collect()
    }

    /// Standing rules, in the order of their keys.
    pub(super) fn rules(&self, query: &PatternQuery<'_>) -> Vec<Match> {
        let first = PatternKey { tier: Tier::E3.name(), pattern_id: "".into(), org: "".into() };
        let rules = self.patterns.range(first..).map(|(_, pattern)| pattern);
        rules
            .filter(|pattern| applies_to_model(pattern.model_family.as_deref(), query.model))
            .take(query.top_k)
            .map(|pattern| Match { row: pattern.to_row(), tier: pattern.tier, similarity: 1.0 })
            .collect()
    }
}
