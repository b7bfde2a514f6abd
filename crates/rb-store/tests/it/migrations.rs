//! Databases that were made by earlier versions are migrated and keep their rows.

use std::sync::Arc;

use rb_store::{
    Change, ConversationKey, PatternFilter, RunFilter, RunKey, Scope, StepRow, Store, open,
};

use crate::cluster::Cluster;

fn run() -> RunKey {
    RunKey { org: "a".to_owned(), run_id: "r".to_owned() }
}

/// Checks the rows of both fixtures, and that the migrated tables accept new rows.
async fn check(store: &Arc<dyn Store>) {
    let filter =
        RunFilter { text: Some("PARSER".to_owned()), count_max: 9, ..RunFilter::default() };
    let runs = store.runs(&Scope::org("a"), &filter).await.expect("runs");
    assert_eq!(runs.iter().map(|run| run.version).collect::<Vec<_>>(), [2]);
    let steps = store.steps(&run(), 0, 9).await.expect("steps");
    let found: Vec<_> = steps.iter().map(|step| (step.thought.as_str(), &*step.state)).collect();
    assert_eq!(found, [("Perhaps the lexer.", "")]);
    let messages = store.operator_messages(&run()).await.expect("messages");
    assert_eq!(messages.iter().map(|row| &*row.message_id).collect::<Vec<_>>(), ["m-1"]);
    let heads = ["h-1".to_owned()];
    let found = store.find_conversation("a", ConversationKey::Head, &heads).await.expect("read");
    assert_eq!(found.as_deref(), Some("r"));
    let all = PatternFilter { count_max: 9, ..PatternFilter::default() };
    let patterns = store.patterns(&Scope::org("a"), &all).await.expect("patterns");
    assert_eq!(patterns.iter().map(|row| row.uses).collect::<Vec<_>>(), [3]);
    assert_eq!(store.setting("colour").await.expect("read").as_deref(), Some("red"));

    let step = StepRow { state: "SLOW".to_owned(), ..steps[0].clone() };
    let changes =
        vec![Change::ExpectVersion { run: run(), version: 2 }, Change::PutStep(Arc::new(step))];
    assert_eq!(store.apply(changes).await.expect("written"), [0, 1]);
    let steps = store.steps(&run(), 0, 9).await.expect("steps");
    assert_eq!(steps.iter().map(|step| &*step.state).collect::<Vec<_>>(), ["SLOW"]);
    store.apply(vec![Change::DeleteRun(run())]).await.expect("deleted");
    assert!(store.operator_messages(&run()).await.expect("messages").is_empty());
}

#[tokio::test]
async fn a_sqlite_database_of_schema_7_is_migrated() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("old.db");
    let connection = rusqlite::Connection::open(&path).expect("a database");
    connection
        .execute_batch(include_str!("../fixtures/sqlite_schema_7.sql"))
        .expect("the old schema");
    drop(connection);
    for _ in 0..2 {
        drop(open(&format!("sqlite:{}", path.display())).await.expect("migrated"));
    }
    check(&open(&format!("sqlite:{}", path.display())).await.expect("migrated")).await;
}

#[tokio::test]
async fn a_postgres_database_with_the_old_numbers_is_renumbered_and_migrated() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    let connection = tokio::spawn(connection);
    let old = include_str!("../fixtures/postgres_schema_6.sql");
    client.batch_execute(old).await.expect("the old schema");
    for _ in 0..2 {
        drop(open(&url).await.expect("migrated"));
    }
    let numbers =
        "SELECT string_agg(version || ' ' || name, ', ' ORDER BY version) FROM migrations";
    let numbers: String = client.query_one(numbers, &[]).await.expect("read").get(0);
    assert_eq!(
        numbers,
        "1 first, 4 reading, 5 library, 6 waiting, 7 answers, 8 node_events, 9 operator_messages, 10 step_state"
    );
    assert!(client.query("SELECT FROM told", &[]).await.is_err(), "the old event table is dropped");
    check(&open(&url).await.expect("migrated")).await;
    drop(client);
    drop(connection.await);
}

#[tokio::test]
async fn a_postgres_database_that_stopped_at_any_old_number_is_migrated() {
    let Some(cluster) = Cluster::shared() else { return };
    let old = include_str!("../fixtures/postgres_schema_6.sql");
    let ends: Vec<usize> = old
        .match_indices("INSERT INTO migrations")
        .map(|(at, _)| at + old[at..].find(";\n").expect("a statement") + 1)
        .collect();
    for end in ends {
        let url = cluster.database();
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
        let connection = tokio::spawn(connection);
        client.batch_execute(&old[..end]).await.expect("the old schema");
        let store = open(&url).await.expect("migrated");
        let step = StepRow { run: run(), state: "SLOW".to_owned(), ..StepRow::default() };
        store.apply(vec![Change::PutStep(Arc::new(step))]).await.expect("written");
        drop(client);
        drop(connection.await);
    }
}
