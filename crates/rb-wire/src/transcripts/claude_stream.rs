//! Importer of `claude --output-format stream-json`: one record per line, written during the run.
//!
//! **Shape.** `{"type": "system", "subtype": "init", "session_id", "model", …}`, then `assistant` and `user`
//! records with a message in Anthropic's format, and finally `{"type": "result", "subtype", "is_error",
//! "total_cost_usd", "usage", …}`. Partial messages (`stream_event`) are skipped; the complete message follows.
//!
//! **Sub-agents** become separate runs: their records refer to the call that started them in `parent_tool_use_id`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::claude_code::said;
use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages::truth;
use super::sniff::FilePreview;
use super::step_builder::StepBuilder;
use super::time::time_ms;
use super::usage::tokens;
use super::{Imported, Importer, Unit};
use crate::model::Run;

pub(super) const IMPORTER: Importer = Importer {
    id: "claude-stream",
    summary: "Claude Code's stream of JSON, as `--output-format stream-json` prints it.",
    unit: Unit::File,
    sniff,
    parse,
};

fn sniff(preview: &FilePreview<'_>) -> bool {
    let types = ["system", "assistant", "user", "result", "stream_event"];
    preview.any(|record| record.get("session_id").is_some() && record.is("type", &types))
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read<'a>(context: &mut ImportContext<'a>) {
    // The session, then its sub-agents by the id of their call; a stream may contain several sessions.
    let mut threads: Vec<(Run<'a>, StepBuilder<'a>)> = Vec::new();
    let mut numbers: BTreeMap<(Cow<'a, str>, Cow<'a, str>), usize> = BTreeMap::new();
    let mut events = Vec::new();
    for record in context.records() {
        let [kind, session, parent, message, model, at] = record.fields([
            "type",
            "session_id",
            "parent_tool_use_id",
            "message",
            "model",
            "timestamp",
        ]);
        let Some(kind) = kind.and_then(Json::text) else { continue };
        let session = session.and_then(Json::some_text).unwrap_or_default();
        let call = parent.and_then(Json::some_text).unwrap_or_default();
        let number = *numbers.entry((session.clone(), call.clone())).or_insert_with(|| {
            threads.push((new_run(session, &call), StepBuilder::default()));
            threads.len() - 1
        });
        let Some((run, builder)) = threads.get_mut(number) else { continue };
        let at_ms = at.and_then(time_ms);
        match (kind.as_ref(), message) {
            ("system", _) => run.model = model.and_then(Json::some_text).or(run.model.take()),
            ("assistant" | "user", Some(message)) => {
                said(message, kind == "assistant", at_ms, &mut events);
                builder.take_all(events.drain(..));
            }
            ("result", _) => ended(run, record),
            _ => {}
        }
    }
    for (run, builder) in threads {
        context.runs.push(builder.into_run(run));
    }
}

fn new_run<'a>(session: Cow<'a, str>, call: &str) -> Run<'a> {
    let session_id = Some(session).filter(|session| !session.is_empty());
    let side = format!("{}/{call}", session_id.as_deref().unwrap_or_default());
    Run {
        run_id: if call.is_empty() { session_id.clone() } else { Some(side.into()) },
        parent_id: session_id.clone().filter(|_| !call.is_empty()),
        session_id,
        agent: Some("claude-code".into()),
        ..Run::default()
    }
}

/// Reads the final record. A successful exit does not imply that the task was completed, so only a failure sets the
/// outcome.
fn ended<'a>(run: &mut Run<'a>, record: Json<'a>) {
    let [subtype, is_error, cost, old_cost, used] =
        record.fields(["subtype", "is_error", "total_cost_usd", "total_cost", "usage"]);
    let subtype = subtype.and_then(Json::some_text).filter(|subtype| subtype != "success");
    run.outcome = subtype.or_else(|| truth(is_error).then_some("error".into()));
    run.cost_usd = cost.or(old_cost).and_then(Json::number);
    run.usage = used.map(tokens).unwrap_or_default();
}
