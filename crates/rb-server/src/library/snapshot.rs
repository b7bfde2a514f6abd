//! The patterns at one time, and their directions.

use std::sync::{Arc, OnceLock};

use rb_embed::{Calibration, DIMS, Index, Owner, Vector};
use rb_engine::guidance::Tier;
use rb_store::PatternRow;

use super::{Match, Wanted, fields, is_for};

/// A pattern's situations beyond these are not compared.
const SITUATIONS_MAX: usize = 16;

/// Where a direction belongs: the row, and which of its situations.
type Place = (usize, usize);

/// All patterns.
#[derive(Default)]
pub(super) struct Snapshot {
    pub(super) version: Option<String>,
    rows: Vec<(Tier, Arc<PatternRow>)>,
    /// The situations of all rows, each with its place.
    situations: Vec<(Place, String)>,
    packed: Option<Directions>,
    better: OnceLock<Directions>,
    better_calibration: Option<Calibration>,
}

/// The directions of all situations by one embedder.
struct Directions {
    e1: Index<String, Place>,
    e2: Index<String, Place>,
    calibration: Calibration,
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

impl Snapshot {
    pub(super) fn new(
        version: Option<String>,
        rows: Vec<PatternRow>,
        better_calibration: Option<Calibration>,
    ) -> Self {
        let known = rows.into_iter().filter_map(|row| {
            let tier = Tier::from_name(&row.tier)?;
            Some((tier, Arc::new(row)))
        });
        let rows: Vec<(Tier, Arc<PatternRow>)> = known.collect();
        let mut situations = Vec::new();
        for (at, (tier, row)) in rows.iter().enumerate() {
            let own = row.context.trim();
            let context =
                if own.is_empty() { fields::context(*tier, &row.fields) } else { own.to_owned() };
            // One situation a line: a run may come into it in several ways.
            let lines = context.lines().map(str::trim).filter(|line| !line.is_empty());
            let lines = lines.take(SITUATIONS_MAX).enumerate();
            situations.extend(lines.map(|(line, text)| ((at, line), text.to_owned())));
        }
        let mut this = Self {
            version,
            rows,
            situations,
            packed: None,
            better: OnceLock::new(),
            better_calibration,
        };
        let vectors: Vec<Vector> =
            this.situations.iter().map(|(_, text)| rb_embed::embed(text)).collect();
        this.packed = this.directions(&vectors, DIMS, Calibration::PACKED);
        this
    }

    /// The situations, in the order `add_better` takes their vectors.
    pub(super) fn texts(&self) -> Vec<String> {
        self.situations.iter().map(|(_, text)| text.clone()).collect()
    }

    pub(super) fn add_better(&self, vectors: &[Vector]) {
        let dims = vectors.first().map(Vector::dims);
        if let (Some(dims), Some(calibration)) = (dims, self.better_calibration)
            && let Some(directions) = self.directions(vectors, dims, calibration)
        {
            let _ = self.better.set(directions); // it was there already: the same vectors
        }
    }

    pub(super) fn has_better(&self) -> bool {
        self.better.get().is_some()
    }

    /// `None` where the embedder changed its dimensions in the middle.
    fn directions(
        &self,
        vectors: &[Vector],
        dims: usize,
        calibration: Calibration,
    ) -> Option<Directions> {
        let mut directions = Directions { e1: Index::new(dims), e2: Index::new(dims), calibration };
        for ((place, _), vector) in self.situations.iter().zip(vectors) {
            let (tier, row) = &self.rows[place.0];
            match tier {
                Tier::E1 => {
                    directions.e1.insert(Owner::Org(row.org.clone()), *place, vector).ok()?;
                }
                Tier::E2 => directions.e2.insert(Owner::Shared, *place, vector).ok()?,
                Tier::E3 => {}
            }
        }
        Some(directions)
    }

    /// The patterns of a tier that are similar enough, best first, each once.
    pub(super) fn nearest(
        &self,
        tier: Tier,
        asked: &Asked,
        wanted: &Wanted<'_>,
        gate: f64,
    ) -> Vec<Match> {
        let directions = if asked.is_better { self.better.get() } else { self.packed.as_ref() };
        let Some(directions) = directions else { return Vec::new() };
        let index = match tier {
            Tier::E1 => &directions.e1,
            Tier::E2 => &directions.e2,
            Tier::E3 => return Vec::new(),
        };
        #[expect(clippy::cast_possible_truncation, reason = "a gate needs two digits")]
        let cosine_min = directions.calibration.cosine_at(gate as f32);
        let nearby = rb_embed::Wanted { count_max: index.len(), cosine_min };
        let mut found: Vec<Match> = Vec::new();
        let hits = asked
            .vectors
            .iter()
            .filter_map(|vector| index.nearest(wanted.org.to_owned(), vector, nearby).ok());
        let mut hits: Vec<(f32, usize)> =
            hits.flatten().map(|hit| (hit.cosine, hit.id.0)).collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (cosine, at) in hits {
            let (tier, row) = &self.rows[at];
            let similarity = f64::from(directions.calibration.similarity(cosine));
            let is_near = similarity >= row.gate_threshold.unwrap_or(0.0).max(gate);
            let is_new = !found.iter().any(|found| Arc::ptr_eq(&found.row, row));
            if is_near && is_new && is_about(row, wanted.failure_type) && is_for(row, wanted.model)
            {
                found.push(Match { row: Arc::clone(row), tier: *tier, similarity });
            }
            if found.len() >= wanted.top_k {
                break;
            }
        }
        found
    }

    /// The standing rules.
    pub(super) fn rules(&self, wanted: &Wanted<'_>) -> Vec<Match> {
        let rules = self.rows.iter().filter(|(tier, _)| *tier == Tier::E3);
        rules
            .filter(|(_, row)| is_for(row, wanted.model))
            .take(wanted.top_k)
            .map(|(tier, row)| Match { row: Arc::clone(row), tier: *tier, similarity: 1.0 })
            .collect()
    }
}

/// Whether a pattern is about a kind of failure; one that names none is about all.
fn is_about(row: &PatternRow, failure_type: Option<&str>) -> bool {
    match (row.failure_type.as_deref(), failure_type) {
        (Some(own), Some(asked)) => own == asked,
        (None, _) | (_, None) => true,
    }
}
