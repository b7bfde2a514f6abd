//! ReasonBlocks format: one run per line.
//!
//! **Shape.** `{"run_id", "task", "agent", "model", "outcome", "labels": {…}, "steps": [{"thought", "action",
//! "action_input", "observation", "is_error"}, …]}`. Only `steps` is required; unknown keys are skipped. The other
//! fields of `Run` and `RunStep` use their Rust names as keys.
//!
//! **Steps** are read as in the Python reference: the tool is `action`, or the first of `tool_calls`; texts of
//! another type are empty; `is_error` (or `observation_is_error`) is true if it is truthy in Python. An
//! `action_input` that is not a string remains JSON. The last of several equal keys wins.
//!
//! **Truncation.** A truncated line yields its complete steps.
//!
//! **Repairs.** Invalid UTF-8 and lone surrogates become U+FFFD; `NaN` becomes null.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use self::step::StepSeed;
use super::lazy_json::Json;
use super::sniff::FilePreview;
use super::{Diagnostic, DiagnosticKind, Imported, Importer, Unit, json};
use crate::model::{RecordedUsage, Run, RunStep};

/// Reader of a step.
mod step;

pub(super) const IMPORTER: Importer = Importer {
    id: "runs",
    summary: "One run a line, as `rb` itself writes and reads them.",
    unit: Unit::Line,
    sniff,
    parse,
};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

fn sniff(preview: &FilePreview<'_>) -> bool {
    !preview.is_list() && preview.has(&["steps"])
}

fn parse(input: &[u8]) -> Imported<'_> {
    let mut found = Imported::default();
    for (line, number) in input.split(|byte| *byte == b'\n').zip(1_u64..) {
        let (run, kinds) = parse_line(line);
        found.0.extend(run);
        found.1.extend(kinds.into_iter().map(|kind| Diagnostic { line: number, kind }));
    }
    found
}

/// Reads one line. A blank line yields neither a run nor a diagnostic.
pub fn parse_line(line: &[u8]) -> (Option<Run<'_>>, Vec<DiagnosticKind>) {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return (None, Vec::new());
    }
    if let Ok(text) = std::str::from_utf8(line) {
        return parse_text(text);
    }
    let (run, mut kinds) = parse_text(&String::from_utf8_lossy(line)).into_owned();
    if !kinds.contains(&DiagnosticKind::NotUnicode) {
        kinds.push(DiagnosticKind::NotUnicode);
    }
    (run, kinds)
}

trait IntoOwned {
    fn into_owned(self) -> (Option<Run<'static>>, Vec<DiagnosticKind>);
}

impl IntoOwned for (Option<Run<'_>>, Vec<DiagnosticKind>) {
    fn into_owned(self) -> (Option<Run<'static>>, Vec<DiagnosticKind>) {
        (self.0.map(Run::into_owned), self.1)
    }
}

fn parse_text(line: &str) -> (Option<Run<'_>>, Vec<DiagnosticKind>) {
    let error = match read(line) {
        Ok(fields) => return fields.check(),
        Err(error) => error,
    };
    if let Some(repaired) = json::without_nan(line)
        && let Ok(fields) = read(&repaired)
    {
        let (run, mut kinds) = fields.check().into_owned();
        kinds.push(DiagnosticKind::NotANumber);
        return (run, kinds);
    }
    if let Some(closed) = error.is_eof().then(|| closed(line)).flatten()
        && let Ok(fields) = read(&closed)
    {
        let (run, mut kinds) = fields.check().into_owned();
        kinds.push(DiagnosticKind::CutOff);
        return (run, kinds);
    }
    let kind = match line.as_bytes().first() {
        Some(b'[' | b'"' | b'-' | b'0'..=b'9') => {
            DiagnosticKind::NotAnObject { found: json::kind(line) }
        }
        _ if matches!(line, "null" | "true" | "false") => {
            DiagnosticKind::NotAnObject { found: json::kind(line) }
        }
        _ => not_json(&error),
    };
    (None, vec![kind])
}

/// Closes a run that is truncated inside its steps, after the last complete step.
fn closed(line: &str) -> Option<String> {
    let steps = Json::new(line, false).get("steps").filter(|steps| steps.is_list())?;
    let whole = steps.items().take_while(|step| step.is_whole()).last();
    let end = whole.map_or(steps.raw().as_ptr().addr() + 1, |step| {
        step.raw().as_ptr().addr() + step.raw().len()
    });
    let end = end.checked_sub(line.as_ptr().addr())?;
    Some(format!("{}]}}", line.get(..end)?))
}

fn not_json(error: &serde_json::Error) -> DiagnosticKind {
    let message = error.to_string();
    // The parser reports line and column; the input is always a single line.
    let detail = message.rsplit_once(" at line ").map_or(message.as_str(), |(detail, _)| detail);
    DiagnosticKind::NotJson { detail: detail.to_owned(), column: error.column() }
}

fn read(line: &str) -> serde_json::Result<RunFields<'_>> {
    let mut deserializer = serde_json::Deserializer::from_str(line);
    let fields = deserializer.deserialize_map(RunVisitor)?;
    deserializer.end()?;
    Ok(fields)
}

/// Raw fields of a run.
#[derive(Default)]
struct RunFields<'a> {
    run_id: Option<&'a RawValue>,
    task: Option<&'a RawValue>,
    outcome: Option<&'a RawValue>,
    agent: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    labels: Option<&'a RawValue>,
    more: RunMore<'a>,
    steps: Steps<'a>,
}

/// Rare fields of a run.
#[derive(Default)]
struct RunMore<'a> {
    session_id: Option<&'a RawValue>,
    parent_id: Option<&'a RawValue>,
    dataset: Option<&'a RawValue>,
    started_ms: Option<&'a RawValue>,
    ended_ms: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    cost_usd: Option<&'a RawValue>,
}

#[derive(Default)]
enum Steps<'a> {
    #[default]
    Absent,
    NotAList(&'static str),
    List {
        steps: Vec<RunStep<'a>>,
        not_objects: usize,
        first_not_object: usize,
        repaired: bool,
    },
}

impl<'a> RunFields<'a> {
    fn check(self) -> (Option<Run<'a>>, Vec<DiagnosticKind>) {
        let mut kinds = Vec::new();
        let (steps, mut repaired) = match self.steps {
            Steps::Absent => return (None, vec![DiagnosticKind::NoSteps]),
            Steps::NotAList(found) => return (None, vec![DiagnosticKind::StepsNotAList { found }]),
            Steps::List { steps, not_objects, first_not_object, repaired } => {
                if not_objects > 0 {
                    let (first, count) = (first_not_object, not_objects);
                    kinds.push(DiagnosticKind::StepsNotObjects { first, count });
                }
                (steps, repaired)
            }
        };
        let mut text = |value: Option<&'a RawValue>| {
            json::text(value?, &mut repaired).filter(|text| !text.is_empty())
        };
        let (task, outcome) = (text(self.task), text(self.outcome));
        let (agent, model) = (text(self.agent), text(self.model));
        let more = self.more;
        let (session_id, parent_id) = (text(more.session_id), text(more.parent_id));
        let dataset = text(more.dataset);
        let run_id = self.run_id.and_then(|id| json::text_or_number(id, &mut repaired));
        let labels = self.labels.map(RawValue::get).filter(|labels| *labels != "null");
        if repaired {
            kinds.push(DiagnosticKind::NotUnicode);
        }
        let run = Run {
            run_id: run_id.filter(|id| !id.is_empty()),
            task,
            outcome,
            agent,
            model,
            session_id,
            parent_id,
            dataset,
            started_ms: more.started_ms.and_then(count),
            ended_ms: more.ended_ms.and_then(count),
            usage: more.usage.map(usage).unwrap_or_default(),
            cost_usd: more.cost_usd.and_then(number),
            labels: labels.map(Cow::Borrowed),
            steps,
        };
        (Some(run), kinds)
    }
}

fn count(value: &RawValue) -> Option<u64> {
    Json::new(value.get(), true).count()
}

fn number(value: &RawValue) -> Option<f64> {
    Json::new(value.get(), true).number()
}

fn usage(value: &RawValue) -> RecordedUsage {
    let [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens] =
        Json::new(value.get(), true)
            .fields(["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"])
            .map(|tokens| tokens.and_then(Json::count));
    RecordedUsage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }
}

/// Key, compared as bytes: a key that is not valid Unicode counts as unknown.
struct Key<'k>(&'k [&'static str]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_bytes<E>(self, key: &[u8]) -> Result<&'static str, E> {
        Ok(self.0.iter().find(|known| known.as_bytes() == key).copied().unwrap_or_default())
    }
}

struct RunVisitor;

impl<'de> Visitor<'de> for RunVisitor {
    type Value = RunFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a run, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RunFields<'de>, A::Error> {
        const KEYS: [&str; 14] = [
            "run_id",
            "task",
            "outcome",
            "agent",
            "model",
            "labels",
            "steps",
            "session_id",
            "parent_id",
            "dataset",
            "started_ms",
            "ended_ms",
            "usage",
            "cost_usd",
        ];
        let mut fields = RunFields::default();
        while let Some(key) = map.next_key_seed(Key(&KEYS))? {
            match key {
                "run_id" => fields.run_id = Some(map.next_value()?),
                "task" => fields.task = Some(map.next_value()?),
                "outcome" => fields.outcome = Some(map.next_value()?),
                "agent" => fields.agent = Some(map.next_value()?),
                "model" => fields.model = Some(map.next_value()?),
                "labels" => fields.labels = Some(map.next_value()?),
                "steps" => fields.steps = map.next_value_seed(StepsSeed)?,
                "session_id" => fields.more.session_id = Some(map.next_value()?),
                "parent_id" => fields.more.parent_id = Some(map.next_value()?),
                "dataset" => fields.more.dataset = Some(map.next_value()?),
                "started_ms" => fields.more.started_ms = Some(map.next_value()?),
                "ended_ms" => fields.more.ended_ms = Some(map.next_value()?),
                "usage" => fields.more.usage = Some(map.next_value()?),
                "cost_usd" => fields.more.cost_usd = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(fields)
    }
}

struct StepsSeed;

impl<'de> DeserializeSeed<'de> for StepsSeed {
    type Value = Steps<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Steps<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StepsSeed {
    type Value = Steps<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of steps")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Steps<'de>, A::Error> {
        let mut repaired = false;
        let (mut not_objects, mut first_not_object) = (0, 0);
        let mut steps = Vec::new();
        while let Some(step) = seq.next_element_seed(StepSeed { repaired: &mut repaired })? {
            if step.is_none() {
                if not_objects == 0 {
                    first_not_object = steps.len();
                }
                not_objects += 1;
            }
            // An empty step preserves the numbers of the others.
            steps.push(step.unwrap_or_default());
        }
        Ok(Steps::List { steps, not_objects, first_not_object, repaired })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Steps<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Steps::NotAList("an object"))
    }

    fn visit_unit<E>(self) -> Result<Steps<'de>, E> {
        Ok(Steps::NotAList("null"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Steps<'de>, E> {
        Ok(Steps::NotAList("true or false"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Steps<'de>, E> {
        Ok(Steps::NotAList("a number"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Steps<'de>, E> {
        Ok(Steps::NotAList("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Steps<'de>, E> {
        Ok(Steps::NotAList("a number"))
    }

    fn visit_str<E>(self, _: &str) -> Result<Steps<'de>, E> {
        Ok(Steps::NotAList("a string"))
    }
}

#[cfg(test)]
mod tests;
