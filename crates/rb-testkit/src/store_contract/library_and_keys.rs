//! Patterns, findings, profiles, keys and settings, and properties of all changes.

use std::sync::Arc;

use super::fixtures::{
    ALL, T0, a, api_key, begins, finding, key, pattern, patterns, profile, puts, quiet, start,
};
use super::{Checked, holds, put, same};
use rb_store::{
    Change, ConversationKey, ConversationRow, FindingRow, KeyRow, OperatorMessageRow,
    PatternChange, PatternFilter, PatternRow, ProfileRow, RunStart, Store,
};

type SharedStore = Arc<dyn Store>;

fn puts_pattern(row: PatternRow) -> Change {
    Change::PutPattern(Box::new(row))
}

fn puts_finding(row: FindingRow) -> Change {
    Change::PutFinding(Box::new(row))
}

pub(super) async fn patterns_are_put_replaced_used_and_deleted(store: SharedStore) -> Checked {
    let mut mine = pattern("a", "e1", "p");
    same("affected rows", put(&store, puts_pattern(mine.clone())).await?, 1)?;
    same("patterns", store.patterns(&a(), &patterns()).await?, vec![mine.clone()])?;
    mine = PatternRow {
        failure_type: None,
        model_family: None,
        source_trace_id: None,
        gate_threshold: None,
        context: "another".to_owned(),
        fields: serde_json::Map::new(),
        ..mine
    };
    put(&store, puts_pattern(mine.clone())).await?;
    same("replaced", store.patterns(&a(), &patterns()).await?, vec![mine.clone()])?;
    let name = |id: &str| ("a".to_owned(), "e1".to_owned(), id.to_owned());
    let used = Change::UsePatterns { used: vec![name("p"), name("unknown")], at_ms: T0 + 5 };
    same("patterns used", put(&store, used).await?, 1)?;
    let used = Change::UsePatterns { used: vec![name("p")], at_ms: T0 + 3 };
    put(&store, used).await?;
    mine.uses = 2;
    mine.used_ms = Some(T0 + 5);
    same("used twice", store.patterns(&a(), &patterns()).await?, vec![mine])?;
    let (org, tier, pattern_id) = name("p");
    let gone = Change::DeletePattern { org, tier, pattern_id };
    same("deleted", put(&store, gone).await?, 1)?;
    same("patterns left", store.patterns(&a(), &patterns()).await?, vec![])
}

pub(super) async fn patterns_are_listed_by_tier_and_id(store: SharedStore) -> Checked {
    for (org, tier, id) in [
        ("", "e3", "b"),
        ("a", "e1", "z"),
        ("", "e2", "c"),
        ("", "e3", "a"),
        ("b", "e1", "a"),
        ("a", "e1", "y"),
    ] {
        put(&store, puts_pattern(pattern(org, tier, id))).await?;
    }
    let patterns = store.patterns(&a(), &patterns()).await?;
    let found: Vec<(&str, &str)> =
        patterns.iter().map(|row| (row.tier.as_str(), row.pattern_id.as_str())).collect();
    same("patterns", found, vec![("e1", "y"), ("e1", "z"), ("e2", "c"), ("e3", "a"), ("e3", "b")])
}

pub(super) async fn a_pattern_is_found_by_its_key(store: SharedStore) -> Checked {
    let (mine, theirs) = (pattern("a", "e1", "p"), pattern("b", "e1", "p"));
    for row in [&mine, &theirs, &pattern("", "e2", "p")] {
        put(&store, puts_pattern(row.clone())).await?;
    }
    same("mine", store.pattern("a", "e1", "p").await?, Some(mine))?;
    same("theirs", store.pattern("b", "e1", "p").await?, Some(theirs))?;
    same("none", store.pattern("a", "e2", "p").await?, None)
}

pub(super) async fn patterns_are_listed_in_pages(store: SharedStore) -> Checked {
    let names =
        [("a", "e1", "x"), ("a", "e1", "y"), ("", "e2", "x"), ("", "e2", "z"), ("", "e3", "x")];
    for (org, tier, id) in names {
        put(&store, puts_pattern(pattern(org, tier, id))).await?;
    }
    let mut filter = PatternFilter { count_max: 2, ..PatternFilter::default() };
    let mut found = Vec::new();
    while let Some(last) = {
        let page = store.patterns(&a(), &filter).await?;
        found.extend(page.iter().map(|row| (row.tier.clone(), row.pattern_id.clone())));
        page.into_iter().next_back()
    } {
        filter.after = Some((last.tier, last.pattern_id, last.org));
    }
    let all = names.map(|(_, tier, id)| (tier.to_owned(), id.to_owned())).to_vec();
    same("pages", found, all)?;
    let filter = PatternFilter { tier: Some("e2".to_owned()), count_max: 1, after: None };
    let first = store.patterns(&a(), &filter).await?;
    same("of a tier", first.iter().map(|row| row.pattern_id.as_str()).collect(), vec!["x"])
}

pub(super) async fn pattern_changes_are_listed_in_order_and_once(store: SharedStore) -> Checked {
    let changes_after = async |after, count_max| -> Result<(u64, Vec<String>), super::Broken> {
        let changes = store.pattern_changes(after, count_max).await?;
        let version = changes.last().map_or(after, |(version, _)| *version);
        let ordered = changes.is_sorted_by(|one, next| one.0 < next.0);
        holds("every change has a version of its own, in order", ordered)?;
        let shown = changes.into_iter().map(|(_, change)| match change {
            PatternChange::Put(row) => format!("{} {}", row.pattern_id, row.context),
            PatternChange::Gone { org, tier, pattern_id } => format!("-{org} {tier} {pattern_id}"),
        });
        Ok((version, shown.collect()))
    };
    let puts = |id: &str, context: &str| {
        puts_pattern(PatternRow { context: context.to_owned(), ..pattern("a", "e1", id) })
    };
    let gone = |id: &str| {
        let (org, tier, pattern_id) = ("a".to_owned(), "e1".to_owned(), id.to_owned());
        Change::DeletePattern { org, tier, pattern_id }
    };
    same("nothing yet", changes_after(0, ALL).await?, (0, vec![]))?;
    store.apply(vec![puts("p", "1"), puts("q", "1"), puts("r", "1")]).await?;
    let (first, shown) = changes_after(0, ALL).await?;
    same("put", shown, ["p 1", "q 1", "r 1"].map(str::to_owned).to_vec())?;
    store.apply(vec![puts("p", "2"), puts("p", "3"), gone("q"), gone("unknown")]).await?;
    let (second, shown) = changes_after(first, ALL).await?;
    same("changed", shown, ["p 3", "-a e1 q"].map(str::to_owned).to_vec())?;
    let used = vec![("a".to_owned(), "e1".to_owned(), "p".to_owned())];
    put(&store, Change::UsePatterns { used, at_ms: T0 }).await?;
    same("a use is no change", changes_after(second, ALL).await?, (second, vec![]))?;
    put(&store, puts("q", "4")).await?;
    same("it is back", changes_after(second, ALL).await?.1, vec!["q 4".to_owned()])?;
    let (third, page) = changes_after(0, 2).await?;
    same("the first page", page, ["r 1", "p 3"].map(str::to_owned).to_vec())?;
    same("the second page", changes_after(third, 2).await?.1, vec!["q 4".to_owned()])
}

pub(super) async fn findings_are_put_invalidated_and_cleared(store: SharedStore) -> Checked {
    let older = FindingRow { created_ms: T0 - 1, ..finding("a", "code", "older", "src/b.rs") };
    let mut newer = finding("a", "code", "newer", "src/a.rs");
    put(&store, puts_finding(newer.clone())).await?;
    put(&store, puts_finding(older.clone())).await?;
    same("oldest first", store.findings("a", "code").await?, vec![older.clone(), newer.clone()])?;
    newer.content = String::from("another text");
    same("affected rows", put(&store, puts_finding(newer.clone())).await?, 1)?;
    same("replaced", store.findings("a", "code").await?, vec![older.clone(), newer.clone()])?;
    put(&store, puts_finding(finding("a", "code", "beside", "src/a.rs"))).await?;
    put(&store, puts_finding(finding("a", "elsewhere", "newer", "src/a.rs"))).await?;
    let (org, codebase) = ("a".to_owned(), "code".to_owned());
    let file_paths = vec!["src/a.rs".to_owned(), "src/none.rs".to_owned()];
    let invalid =
        Change::InvalidateFindings { org: org.clone(), codebase: codebase.clone(), file_paths };
    same("invalidated", put(&store, invalid).await?, 2)?;
    same("left", store.findings("a", "code").await?, vec![older])?;
    let finding_id = "older".to_owned();
    let delete = Change::DeleteFinding { org: org.clone(), codebase: codebase.clone(), finding_id };
    same("deleted", put(&store, delete).await?, 1)?;
    for at in 0..3 {
        put(&store, puts_finding(finding("a", "code", &format!("f{at}"), ""))).await?;
    }
    same("cleared", put(&store, Change::ClearFindings { org, codebase }).await?, 3)?;
    same("left", store.findings("a", "code").await?, vec![])?;
    same("left elsewhere", store.findings("a", "elsewhere").await?.len(), 1)
}

pub(super) async fn codebases_with_findings_or_runs_are_listed(store: SharedStore) -> Checked {
    for codebase in ["run only", "both", ""] {
        let run =
            RunStart { codebase: codebase.to_owned(), ..start("a", &format!("r {codebase}"), T0) };
        put(&store, begins(run)).await?;
    }
    for codebase in ["both", "a finding only"] {
        put(&store, puts_finding(finding("a", codebase, "f", ""))).await?;
    }
    let expected = ["a finding only", "both", "run only"].map(str::to_owned).to_vec();
    same("codebases", store.codebases(&a()).await?, expected)
}

pub(super) async fn profiles_are_put_replaced_and_deleted(store: SharedStore) -> Checked {
    let mut own = profile("a", "", "w");
    let of_project = profile("a", "main", "w");
    for row in [&of_project, &own] {
        same("affected rows", put(&store, Change::PutProfile(Box::new(row.clone()))).await?, 1)?;
    }
    same("profiles", store.profiles(&a()).await?, vec![own.clone(), of_project.clone()])?;
    own = ProfileRow {
        weights: std::collections::BTreeMap::new(),
        extra: serde_json::Map::new(),
        updated_ms: T0 + 9,
        ..own
    };
    put(&store, Change::PutProfile(Box::new(own.clone()))).await?;
    same("replaced", store.profiles(&a()).await?, vec![own, of_project.clone()])?;
    let (org, project, profile_id) = ("a".to_owned(), String::new(), "w".to_owned());
    let delete = Change::DeleteProfile { org, project, profile_id };
    same("deleted", put(&store, delete).await?, 1)?;
    same("profiles left", store.profiles(&a()).await?, vec![of_project])
}

pub(super) async fn keys_are_found_by_hash_and_revoked_once(store: SharedStore) -> Checked {
    let puts_key = |row: &KeyRow| Change::PutKey(Box::new(row.clone()));
    let first = api_key("a", "k1");
    let mut second = KeyRow { created_ms: T0 + 1, ..api_key("b", "k0") };
    put(&store, puts_key(&second)).await?;
    put(&store, puts_key(&first)).await?;
    same("keys, oldest first", store.keys().await?, vec![first.clone(), second.clone()])?;
    same("by hash", store.key("hash of k0").await?, Some(second.clone()))?;
    same("by another hash", store.key("hash of").await?, None)?;
    for (at_ms, touched) in [(T0 + 5, 1), (T0 + 9, 0)] {
        let revoke = Change::RevokeKey { key_id: "k0".to_owned(), at_ms };
        same("revoked", put(&store, revoke).await?, touched)?;
        second.revoked_ms = Some(T0 + 5);
        same("the key", store.key("hash of k0").await?, Some(second.clone()))?;
    }
    second.name = String::from("desktop");
    put(&store, puts_key(&second)).await?;
    same("replaced", store.keys().await?, vec![first, second])
}

pub(super) async fn settings_are_stored_by_name(store: SharedStore) -> Checked {
    same("before", store.setting("colour").await?, None)?;
    for value in ["red", "", "blue"] {
        let setting = Change::PutSetting { name: "colour".to_owned(), value: value.to_owned() };
        same("affected rows", put(&store, setting).await?, 1)?;
        same("the setting", store.setting("colour").await?.as_deref(), Some(value))?;
    }
    same("another", store.setting("Colour").await?, None)
}

pub(super) async fn conversations_are_found_by_run_and_by_key(store: SharedStore) -> Checked {
    // The keys of a conversation are `head`, `answer of head` and `mark of head`.
    let row = |org: &str, run_id: &str, head: &str, at_ms| {
        let of_head = |kind: &str| match head {
            "" => String::new(),
            head => format!("{kind}{head}"),
        };
        Change::PutConversation(Box::new(ConversationRow {
            run: key(org, run_id),
            head: of_head(""),
            answer: of_head("answer of "),
            mark: of_head("mark of "),
            state: format!("{run_id} {at_ms}"),
            at_ms,
        }))
    };
    let kinds = [
        (ConversationKey::Head, ""),
        (ConversationKey::Answer, "answer of "),
        (ConversationKey::Mark, "mark of "),
    ];
    put(&store, begins(start("a", "r", T0))).await?;
    for change in [
        row("a", "r", "h1", T0),
        row("a", "s", "h1", T0 + 1),
        row("a", "named", "", T0 + 2),
        row("b", "t", "h2", T0),
    ] {
        same("affected rows", put(&store, change).await?, 1)?;
    }
    put(&store, row("a", "r", "h3", T0 + 2)).await?;
    let state = store.conversation(&key("a", "r")).await?;
    same("the newest state", state, Some(format!("r {}", T0 + 2)))?;
    same("another organisation's", store.conversation(&key("b", "r")).await?, None)?;
    let found: [(&[&str], Option<&str>); 5] = [
        (&["h1"], Some("s")),
        (&["h9", "h3", "h1"], Some("r")),
        (&["h2"], None),
        (&[""], None),
        (&[], None),
    ];
    for (by, kind) in kinds {
        for (cache, run_id) in found {
            let any_of: Vec<String> = cache.iter().map(|head| format!("{kind}{head}")).collect();
            let found = store.find_conversation("a", by, &any_of).await?;
            same(&format!("by {by:?} {any_of:?}"), found.as_deref(), run_id)?;
        }
    }
    let nothing = store.find_conversation("a", ConversationKey::Mark, &[String::new()]).await?;
    same("by nothing", nothing, None)?;
    put(&store, Change::DeleteRun(key("a", "r"))).await?;
    same("gone with its run", store.conversation(&key("a", "r")).await?, None)
}

pub(super) async fn operator_messages_are_taken_once(store: SharedStore) -> Checked {
    let row = |org: &str, run_id: &str, message_id: &str, at_ms| OperatorMessageRow {
        run: key(org, run_id),
        message_id: message_id.to_owned(),
        text: format!("{message_id} for {run_id}"),
        at_ms,
    };
    let waits = |row: OperatorMessageRow| Change::PutOperatorMessage(Box::new(row));
    put(&store, begins(start("a", "r", T0))).await?;
    let (late, early) = (row("a", "r", "1", T0 + 2), row("a", "r", "2", T0 + 1));
    let (theirs, old) = (row("b", "r", "1", T0), row("a", "s", "1", T0 - 9));
    for row in [&late, &early, &theirs, &old] {
        same("affected rows", put(&store, waits(row.clone())).await?, 1)?;
    }
    let waiting = store.operator_messages(&key("a", "r")).await?;
    same("the oldest first", waiting, vec![early.clone(), late.clone()])?;
    same("a run that has not begun", store.run(&a(), "s").await?, None)?;
    let waited_for = store.runs_with_messages(T0).await?;
    same("runs with messages since then", waited_for, vec![key("a", "r"), key("b", "r")])?;

    let take = || Change::TakeOperatorMessage { run: key("a", "r"), message_id: "2".to_owned() };
    let (one, other) = tokio::join!(store.apply(vec![take()]), store.apply(vec![take()]));
    let taken: u64 = one?.into_iter().chain(other?).sum();
    same("taken once", taken, 1)?;
    same("what is left", store.operator_messages(&key("a", "r")).await?, vec![late])?;
    put(&store, waits(early.clone())).await?;
    same("put back, it is first again", store.operator_messages(&key("a", "r")).await?.len(), 2)?;

    let expired = put(&store, Change::ExpireOperatorMessages { before_ms: T0 }).await?;
    same("old words", (expired, store.operator_messages(&key("a", "s")).await?), (1, vec![]))?;
    put(&store, Change::DeleteRun(key("a", "r"))).await?;
    same("gone with its run", store.operator_messages(&key("a", "r")).await?, vec![])?;
    same("theirs", store.operator_messages(&key("b", "r")).await?, vec![theirs])
}

pub(super) async fn changes_of_one_call_are_atomic(store: SharedStore) -> Checked {
    put(&store, Change::PutKey(Box::new(api_key("a", "k")))).await?;
    // Hashes are unique, so this call fails at its last change.
    let twin = KeyRow { key_id: "twin".to_owned(), ..api_key("a", "k") };
    let changes =
        vec![begins(start("a", "r", T0)), puts(quiet("a", "r", 0)), Change::PutKey(Box::new(twin))];
    holds("it fails", store.apply(changes).await.is_err())?;
    same("the run", store.run(&a(), "r").await?, None)?;
    same("its steps", store.steps(&key("a", "r"), 0, ALL).await?, vec![])?;
    same("the usage", store.usage("a", 0).await?, vec![])?;
    same("the keys", store.keys().await?.len(), 1)?;
    same("the next call", put(&store, begins(start("a", "r", T0))).await?, 1)
}

pub(super) async fn deleting_a_missing_row_affects_no_rows(store: SharedStore) -> Checked {
    let (org, codebase, no) = ("a".to_owned(), "code".to_owned(), "no".to_owned());
    let changes = vec![
        Change::DeleteRun(key("a", "no")),
        Change::ExpireRuns { before_ms: T0, runs_max: 9 },
        Change::DeletePattern { org: org.clone(), tier: "e1".to_owned(), pattern_id: no.clone() },
        Change::UsePatterns { used: vec![], at_ms: T0 },
        Change::DeleteFinding {
            org: org.clone(),
            codebase: codebase.clone(),
            finding_id: no.clone(),
        },
        Change::InvalidateFindings {
            org: org.clone(),
            codebase: codebase.clone(),
            file_paths: vec![],
        },
        Change::ClearFindings { org: org.clone(), codebase },
        Change::DeleteProfile { org, project: String::new(), profile_id: no.clone() },
        Change::RevokeKey { key_id: no.clone(), at_ms: T0 },
        Change::TakeOperatorMessage { run: key("a", "no"), message_id: no },
        Change::ExpireOperatorMessages { before_ms: T0 },
    ];
    let expected = vec![0; changes.len()];
    same("affected rows", store.apply(changes).await?, expected)
}

pub(super) async fn an_empty_call_changes_nothing(store: SharedStore) -> Checked {
    same("answers", store.apply(vec![]).await?, vec![])
}

pub(super) async fn an_open_store_answers_a_ping(store: SharedStore) -> Checked {
    Ok(store.ping().await?)
}
