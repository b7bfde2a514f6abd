//! Edits of the pattern library.
//!
//! A key of an organisation edits the E1 patterns of that organisation. E2 and E3 patterns apply to all organisations
//! and are edited with an operator's key only.

use std::sync::Arc;

use rb_engine::guidance::Tier;
use rb_store::{Change, PatternRow, Store};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::LibraryError;
use crate::auth::Caller;
use crate::clock::now_ms;
use crate::limits::{MAX_NAME_CHARS, MAX_TEXT_CHARS, Truncations, is_valid_id};
use crate::retrieval::{PatternRetriever, pattern_fields};

/// Maximum size of the fields of a pattern, as JSON.
const MAX_FIELDS_BYTES: usize = 64_000;
/// Fields that identify a pattern and cannot be edited.
const RESERVED_FIELDS: [&str; 3] = ["pattern_id", "tier", "customer_id"];
const NOT_FOUND: LibraryError = LibraryError::NotFound("there is no such pattern");

/// Editor of the pattern library.
pub struct PatternLibrary {
    store: Arc<dyn Store>,
    retriever: Arc<PatternRetriever>,
}

/// Pattern to add.
pub struct NewPattern {
    pub tier: Tier,
    /// Generated if `None`.
    pub pattern_id: Option<String>,
    pub fields: Map<String, Value>,
    pub attributes: PatternAttributes,
    /// Ignored for keys of an organisation.
    pub org: Option<String>,
}

/// Pattern of a caller.
#[derive(Clone, Copy)]
pub struct PatternId<'a> {
    pub tier: Tier,
    pub id: &'a str,
    /// Ignored for keys of an organisation.
    pub org: Option<&'a str>,
}

/// Attributes of a pattern; missing ones stay unchanged, and an empty text removes one.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct PatternAttributes {
    /// Situations the pattern applies to, one per line; derived from the fields by default.
    pub context: Option<String>,
    pub failure_type: Option<String>,
    /// Substring of the model names the pattern applies to.
    pub model_family: Option<String>,
    pub source_trace_id: Option<String>,
    /// Minimum similarity, in addition to the gate of the tier.
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub gate_threshold: Option<f64>,
}

impl PatternAttributes {
    fn apply_to(self, row: &mut PatternRow) -> Result<(), LibraryError> {
        if self.gate_threshold.is_some_and(|gate| !(0.0..=1.0).contains(&gate)) {
            return Err(LibraryError::invalid(
                "gate_threshold",
                "a similarity from 0 to 1 is wanted",
            ));
        }
        let mut cuts = Truncations::default();
        let mut replace = |current: &mut Option<String>, new: Option<String>| {
            if let Some(text) = new {
                *current = (!text.is_empty()).then(|| cuts.text("", text, MAX_NAME_CHARS));
            }
        };
        replace(&mut row.failure_type, self.failure_type);
        replace(&mut row.model_family, self.model_family);
        replace(&mut row.source_trace_id, self.source_trace_id);
        row.gate_threshold = self.gate_threshold.or(row.gate_threshold);
        if let Some(context) = self.context {
            row.context = cuts.text("context", context, MAX_TEXT_CHARS);
        }
        Ok(())
    }
}

impl PatternLibrary {
    pub fn new(store: Arc<dyn Store>, retriever: Arc<PatternRetriever>) -> Self {
        Self { store, retriever }
    }

    /// Adds a pattern.
    pub async fn add(&self, caller: &Caller, new: NewPattern) -> Result<PatternRow, LibraryError> {
        let NewPattern { tier, pattern_id, mut fields, attributes, org } = new;
        let org = owner(caller, tier, org.as_deref())?;
        let pattern_id = pattern_id
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| uuid::Uuid::now_v7().simple().to_string());
        if !is_valid_id(&pattern_id) {
            let wanted = "an id has 1 to 256 characters and no control characters";
            return Err(LibraryError::invalid("pattern_id", wanted));
        }
        check_fields(tier, &fields)?;
        if self.store.pattern(&org, tier.name(), &pattern_id).await?.is_some() {
            return Err(LibraryError::Conflict(format!(
                "there is a pattern `{pattern_id}` already; change it, or choose another id"
            )));
        }
        fields.retain(|name, _| !RESERVED_FIELDS.contains(&name.as_str()));
        let at_ms = now_ms();
        let mut row = PatternRow {
            org,
            tier: tier.name().to_owned(),
            pattern_id,
            fields,
            created_ms: at_ms,
            updated_ms: at_ms,
            ..PatternRow::default()
        };
        attributes.apply_to(&mut row)?;
        self.put(row).await
    }

    /// Changes a pattern. Fields that are not in `fields` stay unchanged.
    pub async fn change(
        &self,
        caller: &Caller,
        pattern: PatternId<'_>,
        fields: Map<String, Value>,
        attributes: PatternAttributes,
    ) -> Result<PatternRow, LibraryError> {
        let PatternId { tier, id, org } = pattern;
        let org = owner(caller, tier, org)?;
        let mut row = self.store.pattern(&org, tier.name(), id).await?.ok_or(NOT_FOUND)?;
        for (name, value) in fields {
            if !RESERVED_FIELDS.contains(&name.as_str()) {
                row.fields.insert(name, value);
            }
        }
        check_fields(tier, &row.fields)?;
        attributes.apply_to(&mut row)?;
        row.updated_ms = now_ms();
        self.put(row).await
    }

    /// Deletes a pattern.
    pub async fn delete(
        &self,
        caller: &Caller,
        pattern: PatternId<'_>,
    ) -> Result<(), LibraryError> {
        let PatternId { tier, id, org } = pattern;
        let org = owner(caller, tier, org)?;
        let (tier, pattern_id) = (tier.name().to_owned(), id.to_owned());
        let deleted =
            self.store.apply(vec![Change::DeletePattern { org, tier, pattern_id }]).await?;
        self.retriever.invalidate();
        if deleted.iter().sum::<u64>() == 0 { Err(NOT_FOUND) } else { Ok(()) }
    }

    async fn put(&self, row: PatternRow) -> Result<PatternRow, LibraryError> {
        self.store.apply(vec![Change::PutPattern(Box::new(row.clone()))]).await?;
        self.retriever.invalidate();
        Ok(row)
    }
}

/// Returns the organisation that owns the caller's patterns of a tier; empty for all organisations.
fn owner(caller: &Caller, tier: Tier, org: Option<&str>) -> Result<String, LibraryError> {
    match tier {
        Tier::E1 => Ok(caller.org_and_project(org, None).0),
        Tier::E2 | Tier::E3 if caller.is_operator() => Ok(String::new()),
        Tier::E2 | Tier::E3 => Err(LibraryError::Forbidden(
            "E2 and E3 patterns apply to all organisations; they are changed with an operator's key",
        )),
    }
}

fn check_fields(tier: Tier, fields: &Map<String, Value>) -> Result<(), LibraryError> {
    if let Some(names) = pattern_fields::missing_field(tier, fields) {
        let message = format!("a pattern of this tier needs the text `{}`", names.join("` or `"));
        return Err(LibraryError::invalid("fields", message));
    }
    let bytes = serde_json::to_vec(fields).map_or(0, |json| json.len());
    if bytes > MAX_FIELDS_BYTES {
        let message =
            format!("{bytes} bytes are too many: a pattern has at most {MAX_FIELDS_BYTES}");
        return Err(LibraryError::invalid("fields", message));
    }
    Ok(())
}
