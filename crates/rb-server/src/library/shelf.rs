//! The patterns in memory, and their directions. Changes are laid on as they come; nothing is read twice.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rb_embed::{Calibration, DIMS, DimensionMismatch, Index, Owner, Vector};
use rb_engine::guidance::Tier;
use rb_store::{PatternChange, PatternRow};

use super::{Match, Wanted, fields, is_for};

/// A pattern's situations beyond these are not compared.
const SITUATIONS_MAX: usize = 16;

/// By which a pattern is known, in the order of lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    tier: &'static str,
    pattern_id: Arc<str>,
    org: Arc<str>,
}

impl Name {
    /// `None` for a tier of a later version.
    fn new(tier: &str, pattern_id: &str, org: &str) -> Option<Self> {
        let tier = Tier::from_name(tier)?.name();
        Some(Self { tier, pattern_id: pattern_id.into(), org: org.into() })
    }
}

/// A pattern: what it is found by, and its fields as text until somebody wants them. A million fit into memory so.
#[derive(Debug)]
pub(super) struct Book {
    name: Name,
    tier: Tier,
    failure_type: Option<Box<str>>,
    model_family: Option<Box<str>>,
    source_trace_id: Option<Box<str>>,
    gate_threshold: Option<f64>,
    context: Box<str>,
    fields: Box<str>,
}

impl Book {
    fn new(row: &PatternRow) -> Option<Self> {
        let boxed = |text: &Option<String>| text.as_deref().map(Into::into);
        Some(Self {
            name: Name::new(&row.tier, &row.pattern_id, &row.org)?,
            tier: Tier::from_name(&row.tier)?,
            failure_type: boxed(&row.failure_type),
            model_family: boxed(&row.model_family),
            source_trace_id: boxed(&row.source_trace_id),
            gate_threshold: row.gate_threshold,
            context: row.context.trim().into(),
            fields: serde_json::to_string(&row.fields).unwrap_or_default().into(),
        })
    }

    /// As it was stored, without its times and uses.
    fn row(&self) -> PatternRow {
        let owned = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        PatternRow {
            org: self.name.org.to_string(),
            tier: self.name.tier.to_owned(),
            pattern_id: self.name.pattern_id.to_string(),
            failure_type: owned(&self.failure_type),
            model_family: owned(&self.model_family),
            source_trace_id: owned(&self.source_trace_id),
            gate_threshold: self.gate_threshold,
            context: self.context.to_string(),
            fields: serde_json::from_str(&self.fields).unwrap_or_default(),
            ..PatternRow::default()
        }
    }

    /// What is compared, one situation a line: a run may come into it in several ways.
    pub(super) fn situations(&self) -> Vec<String> {
        let described = if self.context.is_empty() && self.tier != Tier::E3 {
            fields::context(self.tier, &self.row().fields)
        } else {
            self.context.to_string()
        };
        let lines = described.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.take(SITUATIONS_MAX).map(str::to_owned).collect()
    }

    /// Whether it is about a kind of failure; one that names none is about all.
    fn is_about(&self, failure_type: Option<&str>) -> bool {
        match (self.failure_type.as_deref(), failure_type) {
            (Some(own), Some(asked)) => own == asked,
            (None, _) | (_, None) => true,
        }
    }
}

/// One situation of a pattern. Equal ones come in the order of names, so that all nodes find the same.
#[derive(Debug, Clone)]
struct Line {
    book: Arc<Book>,
    at: usize,
}

impl Ord for Line {
    fn cmp(&self, other: &Self) -> Ordering {
        self.book.name.cmp(&other.book.name).then(self.at.cmp(&other.at))
    }
}

impl PartialOrd for Line {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Line {}

/// The directions of all situations by one embedder.
struct Directions {
    e1: Index<String, Line>,
    e2: Index<String, Line>,
    calibration: Calibration,
}

impl Directions {
    fn new(dims: usize, calibration: Calibration) -> Self {
        Self { e1: Index::new(dims), e2: Index::new(dims), calibration }
    }

    fn insert(&mut self, book: &Arc<Book>, vectors: &[Vector]) -> Result<(), DimensionMismatch> {
        for (at, vector) in vectors.iter().enumerate() {
            let line = Line { book: Arc::clone(book), at };
            match book.tier {
                Tier::E1 => {
                    self.e1.insert(Owner::Org(book.name.org.to_string()), line, vector)?;
                }
                Tier::E2 => self.e2.insert(Owner::Shared, line, vector)?,
                Tier::E3 => {}
            }
        }
        Ok(())
    }

    fn remove(&mut self, book: &Arc<Book>) {
        for at in 0..SITUATIONS_MAX {
            let line = Line { book: Arc::clone(book), at };
            let was_there = match book.tier {
                Tier::E1 => self.e1.remove(&Owner::Org(book.name.org.to_string()), &line),
                Tier::E2 => self.e2.remove(&Owner::Shared, &line),
                Tier::E3 => false,
            };
            if !was_there {
                return;
            }
        }
    }
}

/// A change, with all that takes time done.
pub(super) enum Prepared {
    Put(Arc<Book>, Vec<Vector>),
    Gone(Name),
}

impl Prepared {
    /// `None` for a pattern that this version knows nothing of.
    pub(super) fn new(change: &PatternChange) -> Option<Self> {
        match change {
            PatternChange::Put(row) => {
                let book = Book::new(row)?;
                let vectors = book.situations().iter().map(|text| rb_embed::embed(text)).collect();
                Some(Self::Put(Arc::new(book), vectors))
            }
            PatternChange::Gone { org, tier, pattern_id } => {
                Name::new(tier, pattern_id, org).map(Self::Gone)
            }
        }
    }
}

/// All patterns.
pub(super) struct Shelf {
    /// The last change that was laid on.
    pub(super) version: u64,
    books: BTreeMap<Name, Arc<Book>>,
    packed: Directions,
    better: Option<Directions>,
    /// Set where there is a better embedder.
    better_calibration: Option<Calibration>,
    /// Patterns whose better directions are still to come.
    awaiting: BTreeSet<Name>,
}

/// The directions of what is asked for, and whose they are.
pub(super) struct Asked {
    vectors: Vec<Vector>,
    is_better: bool,
}

impl Asked {
    pub(super) fn nothing() -> Self {
        Self { vectors: Vec::new(), is_better: false }
    }

    pub(super) fn packed(texts: &[String]) -> Self {
        Self { vectors: texts.iter().map(|text| rb_embed::embed(text)).collect(), is_better: false }
    }

    pub(super) fn better(vectors: Vec<Vector>) -> Self {
        Self { vectors, is_better: true }
    }
}

/// What a run's context says: all of it, and its newest thought alone, in which a new situation stands undiluted.
pub(super) fn situations(context: &str) -> Vec<String> {
    let whole = context.trim();
    let newest = whole.lines().next_back().unwrap_or_default().trim();
    let mut texts = vec![whole.to_owned()];
    if newest != whole && !newest.is_empty() {
        texts.push(newest.to_owned());
    }
    texts
}

impl Shelf {
    pub(super) fn new(better_calibration: Option<Calibration>) -> Self {
        Self {
            version: 0,
            books: BTreeMap::new(),
            packed: Directions::new(DIMS, Calibration::STATIC_MODEL),
            better: None,
            better_calibration,
            awaiting: BTreeSet::new(),
        }
    }

    pub(super) fn lay_on(&mut self, change: Prepared) {
        match change {
            Prepared::Put(book, vectors) => {
                self.remove(&book.name);
                // The vectors in the binary have one number of dimensions.
                let _ = self.packed.insert(&book, &vectors);
                if self.better_calibration.is_some() && book.tier != Tier::E3 {
                    self.awaiting.insert(book.name.clone());
                }
                self.books.insert(book.name.clone(), book);
            }
            Prepared::Gone(name) => self.remove(&name),
        }
    }

    fn remove(&mut self, name: &Name) {
        let Some(book) = self.books.remove(name) else { return };
        self.packed.remove(&book);
        if let Some(better) = &mut self.better {
            better.remove(&book);
        }
        self.awaiting.remove(name);
    }

    /// Some of the patterns whose better directions are still to come.
    pub(super) fn awaiting(&self, count_max: usize) -> Vec<Arc<Book>> {
        let some = self.awaiting.iter().take(count_max);
        some.filter_map(|name| self.books.get(name)).map(Arc::clone).collect()
    }

    /// Adds the better directions of a pattern, unless it has changed meanwhile.
    pub(super) fn add_better(
        &mut self,
        book: &Arc<Book>,
        vectors: &[Vector],
    ) -> Result<(), DimensionMismatch> {
        let is_held = self.books.get(&book.name).is_some_and(|held| Arc::ptr_eq(held, book));
        let Some(calibration) = self.better_calibration.filter(|_| is_held) else { return Ok(()) };
        if let Some(first) = vectors.first() {
            let better =
                self.better.get_or_insert_with(|| Directions::new(first.dims(), calibration));
            better.insert(book, vectors)?;
        }
        self.awaiting.remove(&book.name);
        Ok(())
    }

    /// Whether all patterns have their better directions.
    pub(super) fn has_better(&self) -> bool {
        self.better.is_some() && self.awaiting.is_empty()
    }

    /// The patterns of a tier that are similar enough, best first, each once.
    pub(super) fn nearest(
        &self,
        tier: Tier,
        asked: &Asked,
        wanted: &Wanted<'_>,
        gate: f64,
    ) -> Vec<Match> {
        let directions = if asked.is_better { self.better.as_ref() } else { Some(&self.packed) };
        let Some(Directions { e1, e2, calibration }) = directions else { return Vec::new() };
        let index = match tier {
            Tier::E1 => e1,
            Tier::E2 => e2,
            Tier::E3 => return Vec::new(),
        };
        let similarity = |cosine: f32| f64::from(calibration.similarity(cosine));
        let will_do = |Line { book, .. }: &Line, cosine: f32| {
            similarity(cosine) >= book.gate_threshold.unwrap_or(0.0).max(gate)
                && book.is_about(wanted.failure_type)
                && is_for(book.model_family.as_deref(), wanted.model)
        };
        #[expect(clippy::cast_possible_truncation, reason = "a gate needs two digits")]
        let cosine_min = calibration.cosine_at(gate as f32);
        // So many lines belong to enough patterns, even if each has all its lines among them.
        let count_max = wanted.top_k.saturating_mul(SITUATIONS_MAX);
        let nearby = rb_embed::SearchParams { max_hits: count_max, min_cosine: cosine_min };
        let hits = asked.vectors.iter().filter_map(|vector| {
            index.nearest_where(wanted.org.to_owned(), vector, nearby, will_do).ok()
        });
        let mut hits: Vec<(f32, &Line)> = hits.flatten().map(|hit| (hit.cosine, hit.id)).collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let mut found: Vec<(f32, &Arc<Book>)> = Vec::new();
        for (cosine, Line { book, .. }) in hits {
            if found.len() < wanted.top_k && !found.iter().any(|(_, it)| Arc::ptr_eq(it, book)) {
                found.push((cosine, book));
            }
        }
        let matched = |(cosine, book): (f32, &Arc<Book>)| Match {
            row: book.row(),
            tier: book.tier,
            similarity: similarity(cosine),
        };
        found.into_iter().map(matched).collect()
    }

    /// The standing rules.
    pub(super) fn rules(&self, wanted: &Wanted<'_>) -> Vec<Match> {
        let first = Name { tier: Tier::E3.name(), pattern_id: "".into(), org: "".into() };
        let rules = self.books.range(first..).map(|(_, book)| book);
        rules
            .filter(|book| is_for(book.model_family.as_deref(), wanted.model))
            .take(wanted.top_k)
            .map(|book| Match { row: book.row(), tier: book.tier, similarity: 1.0 })
            .collect()
    }
}
