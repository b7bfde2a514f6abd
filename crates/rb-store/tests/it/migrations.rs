//! Databases that were made by earlier versions are migrated and keep their rows.

use std::sync::Arc;

use rb_store::{Change, ConversationKey, RunFilter, RunKey, Scope, StepRow, Store, open};

use crate::cluster::Cluster;

const ROWS: &str = include_str!("../fixtures/rows_before_renames.sql");
const SQLITE: &str = include_str!("../fixtures/sqlite_schema_7.sql");
const POSTGRES: &str = include_str!("../fixtures/postgres_schema_6.sql");

/// Returns the rows of a backend; PostgreSQL has two columns more.
fn rows(seen_day: &str, day: &str, slot: &str, zero: &str) -> String {
    let given = [("{seen_day}", seen_day), ("{day}", day), ("{slot}", slot), ("{zero}", zero)];
    given.iter().fold(ROWS.to_owned(), |sql, (name, value)| sql.replace(name, value))
}

fn run() -> RunKey {
    RunKey { org: "a".to_owned(), run_id: "r".to_owned() }
}

/// Prints all rows as they are read, except for the versions of patterns, which differ between backends.
async fn dump(store: &Arc<dyn Store>) -> String {
    let scope = Scope { org: Some("a".to_owned()), project: Some("main".to_owned()) };
    let list = RunFilter { count_max: 9, ..RunFilter::default() };
    let by_text = RunFilter { text: Some("PARSER".to_owned()), ..list.clone() };
    let by_monitor = RunFilter { fired: Some("repeat".to_owned()), ..list.clone() };
    let by_pattern = RunFilter { pattern: Some("e1:p-1".to_owned()), ..list };
    let keys = ["an-1".to_owned()];
    let changes = store.pattern_changes(0, 9).await.expect("changes");
    format!(
        "{:#?}\n",
        (
            store.runs(&scope, &by_text).await.expect("runs"),
            store.runs(&scope, &by_monitor).await.expect("runs").len(),
            store.runs(&scope, &by_pattern).await.expect("runs").len(),
            store.steps(&run(), 0, 9).await.expect("steps"),
            store.health(&scope, 0).await.expect("health"),
            store.operator_messages(&run()).await.expect("messages"),
            store.conversations(None, 9).await.expect("conversations"),
            store.find_conversation("a", ConversationKey::Answer, &keys).await.expect("found"),
            changes.into_iter().map(|(_, change)| change).collect::<Vec<_>>(),
            store.findings("a", "repo").await.expect("findings"),
            (store.profiles(&scope).await.expect("profiles"), store.keys().await.expect("keys")),
            (store.usage("a", 0).await.expect("usage"), store.settings().await.expect("settings")),
        )
    )
}

/// Checks the rows of the fixture, and that the migrated tables accept new rows.
async fn check(store: &Arc<dyn Store>) {
    let expected = include_str!("../fixtures/rows_after_migration.txt");
    assert_eq!(dump(store).await, expected);
    let step = store.steps(&run(), 0, 9).await.expect("steps").remove(0);
    let step = StepRow { state: "SLOW".to_owned(), ..step };
    let guard = Change::ExpectVersion { run: run(), version: 3 };
    let changes = vec![guard, Change::PutStep(Arc::new(step.clone()))];
    assert_eq!(store.apply(changes).await.expect("written"), [0, 1]);
    assert_eq!(store.steps(&run(), 0, 9).await.expect("steps"), [step]);
    store.apply(vec![Change::DeleteRun(run())]).await.expect("deleted");
    assert!(store.operator_messages(&run()).await.expect("messages").is_empty());
    assert!(store.conversations(None, 9).await.expect("conversations").is_empty());
}

#[tokio::test]
async fn a_sqlite_database_of_schema_7_keeps_all_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("old.db");
    let connection = rusqlite::Connection::open(&path).expect("a database");
    connection.execute_batch(SQLITE).expect("the old schema");
    connection.execute_batch(&rows("", "", "", "")).expect("the old rows");
    drop(connection);
    for _ in 0..2 {
        drop(open(&format!("sqlite:{}", path.display())).await.expect("migrated"));
    }
    check(&open(&format!("sqlite:{}", path.display())).await.expect("migrated")).await;
}

#[tokio::test]
async fn a_postgres_database_with_the_old_numbers_keeps_all_rows() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    let connection = tokio::spawn(connection);
    client.batch_execute(POSTGRES).await.expect("the old schema");
    let rows = rows("seen_day, ", "0, ", "slot, ", "0, ");
    client.batch_execute(&rows).await.expect("the old rows");
    let event = "INSERT INTO told (node, message) VALUES ('n', 'an event')";
    client.batch_execute(event).await.expect("an event");
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
    let ends: Vec<usize> = POSTGRES
        .match_indices("INSERT INTO migrations")
        .map(|(at, _)| at + POSTGRES[at..].find(";\n").expect("a statement") + 1)
        .collect();
    assert_eq!(ends.len(), 6);
    for end in ends {
        let url = cluster.database();
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
        let connection = tokio::spawn(connection);
        client.batch_execute(&POSTGRES[..end]).await.expect("the old schema");
        let store = open(&url).await.expect("migrated");
        let step = StepRow { run: run(), state: "SLOW".to_owned(), ..StepRow::default() };
        store.apply(vec![Change::PutStep(Arc::new(step))]).await.expect("written");
        drop(client);
        drop(connection.await);
    }
}
