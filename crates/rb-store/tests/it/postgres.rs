//! PostgreSQL with several nodes, server failures and foreign tables.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rb_store::{Change, RunKey, Scope, StepRow, Store, StoreError, open};
use rb_testkit::store_contract;

use crate::cluster::Cluster;

const NODES: u32 = 3;

fn run(run_id: &str) -> RunKey {
    RunKey { org: "a".to_owned(), run_id: run_id.to_owned() }
}

fn step(run_id: &str, step_index: u32) -> Change {
    let fired = if step_index.is_multiple_of(3) { vec!["repeat".to_owned()] } else { vec![] };
    let thought = format!("{step_index} ").repeat(50);
    Change::PutStep(Arc::new(StepRow {
        run: run(run_id),
        step_index,
        thought,
        fired,
        total_score: f64::from(step_index % 10) / 10.0,
        ..StepRow::default()
    }))
}

async fn nodes(url: &str) -> Vec<Arc<dyn Store>> {
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..NODES {
        let url = url.to_owned();
        opening.spawn(async move { open(&url).await.expect("a node starts") });
    }
    opening.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_migrate_once() {
    let Some(cluster) = Cluster::shared() else { return };
    for _ in 0..3 {
        let nodes = nodes(&cluster.database()).await;
        let value = Change::PutSetting { name: "colour".to_owned(), value: "red".to_owned() };
        nodes[0].apply(vec![value]).await.expect("written");
        for node in nodes {
            assert_eq!(node.setting("colour").await.expect("read").as_deref(), Some("red"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_write_the_same_runs_keep_exact_totals() {
    let Some(cluster) = Cluster::shared() else { return };
    let nodes = nodes(&cluster.database()).await;
    let mut writing = tokio::task::JoinSet::new();
    for (node, store) in (0_u32..).zip(&nodes) {
        for caller in 0..4_u32 {
            let store = Arc::clone(store);
            writing.spawn(async move {
                for at in 0..40_u32 {
                    // Every call changes two runs in either order, and all write the same step.
                    let index = at * 12 + node * 4 + caller;
                    let mut changes = vec![step("r", index), step("s", index), step("r", 7)];
                    if caller % 2 == 1 {
                        changes.reverse();
                    }
                    store.apply(changes).await.expect("written");
                }
            });
        }
    }
    writing.join_all().await;
    let store = Arc::clone(&nodes[1]);
    for run_id in ["r", "s"] {
        let row = store.run(&Scope::org("a"), run_id).await.expect("read").expect("there");
        assert_eq!(row.step_count, 480, "{run_id}");
    }
    store_contract::recount(store, &[]).await.expect("aggregates equal a recount");
}

#[tokio::test]
async fn tables_of_another_program_are_not_changed() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    let connection = tokio::spawn(connection);
    client.batch_execute("CREATE TABLE music (title text)").await.expect("a table");
    let error = open(&url).await.err().expect("refused").to_string();
    assert!(error.contains("tables of another program"), "{error}");
    client.batch_execute("DROP TABLE music").await.expect("deleted");
    drop(open(&url).await.expect("an empty database"));
    let later = "INSERT INTO migrations (version, name) VALUES (9000, 'later')";
    client.batch_execute(later).await.expect("put");
    let error = open(&url).await.err().expect("refused");
    assert!(matches!(error, StoreError::TooNew { found: 9000, .. }), "{error}");
    drop(client);
    drop(connection.await);
}

#[tokio::test]
async fn migration_counts_existing_steps() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    let connection = tokio::spawn(connection);
    let version_1 = [
        "CREATE TABLE migrations (version bigint PRIMARY KEY, name text NOT NULL)",
        include_str!("../../migrations/postgres/0001_first.sql"),
        "INSERT INTO migrations (version, name) VALUES (1, 'first')",
        "INSERT INTO runs (version, org, run_id, project, started_ms, seen_ms, seen_day, step_count, score_nano, score_peak)
            VALUES (3, 'a', 'r', '', 5, 5, 0, 3, 1200000000, 0.7)",
    ];
    for sql in version_1 {
        client.batch_execute(sql).await.expect(sql);
    }
    for (index, score, shown) in [
        (0, 0.7, Some(r#"["[e3:q]","[e1:p-1]","[e1:p-1]"]"#)),
        (1, 0.4, Some(r#"["[e1:p-1]","[e2:\"ü\\u\"]","[e9:no]","[e1:]","[e1:\u0000]","\u0000"]"#)),
        (2, 0.1, None),
    ] {
        let step = "INSERT INTO steps (run, step_index, at_ms, total_score, cost_usd, tokens_total, tokens_input,
            tokens_output, cache_read, cache_write, injected, is_error, input_is_structured, model, injections,
            project, user_input, thought)
            VALUES (1, $1, 5, $2, 0, 0, 0, 0, 0, 0, false, false, false, '', $3, '', '', '')";
        client.execute(step, &[&i64::from(index), &score, &shown]).await.expect("a step");
    }
    let store = open(&url).await.expect("migrated");
    let health = store.health(&Scope::default(), 0).await.expect("read");
    assert_eq!((health.warn_steps, health.danger_steps), (1, 1));
    let shown =
        "SELECT string_agg(pattern || ' ' || steps, ', ' ORDER BY pattern) FROM pattern_runs";
    let shown: String = client.query_one(shown, &[]).await.expect("read").get(0);
    assert_eq!(shown, r#"e1:p-1 2, e2:"ü\u" 1, e3:q 1"#);
    store.apply(vec![Change::DeleteRun(run("r"))]).await.expect("deleted");
    assert!(client.query("SELECT FROM pattern_runs", &[]).await.expect("read").is_empty());
    drop(client);
    drop(connection.await);
}

#[tokio::test]
async fn a_call_is_one_transaction_on_a_new_connection() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let store = open(&url).await.expect("a store");
    store.apply(vec![step("r", 0)]).await.expect("written");
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    let connection = tokio::spawn(connection);
    // `xmin` is the id of the transaction that wrote the row.
    let writers = "SELECT count(DISTINCT w) FROM (SELECT xmin::text AS w FROM usage UNION ALL SELECT xmin::text FROM steps) r";
    let writers: i64 = client.query_one(writers, &[]).await.expect("read").get(0);
    assert_eq!(writers, 1);
    drop(client);
    drop(connection.await);
}

#[tokio::test]
async fn connection_errors_do_not_contain_the_password() {
    let Some(cluster) = Cluster::shared() else { return };
    let missing = cluster.database().replace("/postgres?", "/nowhere?");
    for (url, expected) in [
        ("postgres://me:secret@127.0.0.1:1/db", "no connection"),
        ("postgres://me:secret@127.0.0.1:port/db", "invalid database URL"),
        (missing.as_str(), "no such database"),
    ] {
        let error = open(url).await.err().expect("refused").to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_steps_survive_a_server_crash() {
    let Some(cluster) = Cluster::start() else { return };
    let store = open(&cluster.database()).await.expect("a store");
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut writing = tokio::task::JoinSet::new();
    for writer in 0..8_u32 {
        let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
        writing.spawn(async move {
            let (mut kept, mut refused) = (BTreeSet::new(), 0_u32);
            for index in 0.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                match store.apply(vec![step(&format!("r{writer}"), index)]).await {
                    Ok(_) => drop(kept.insert(index)),
                    Err(StoreError::Unavailable(_)) => {
                        refused += 1;
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            (writer, kept, refused)
        });
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    cluster.kill();
    assert!(matches!(store.ping().await, Err(StoreError::Unavailable(_))));
    cluster.begin();
    let back = Instant::now();
    while store.ping().await.is_err() {
        assert!(back.elapsed() < Duration::from_secs(10), "the store does not reconnect");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("answers again {:.0?} after the server", back.elapsed());
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut answered = 0;
    while let Some(result) = writing.join_next().await {
        let (writer, kept, refused) = result.expect("a writer");
        let steps = store.steps(&run(&format!("r{writer}")), 0, u32::MAX).await.expect("steps");
        let found: BTreeSet<u32> = steps.iter().map(|step| step.step_index).collect();
        let lost: Vec<_> = kept.difference(&found).collect();
        assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), kept.len());
        assert!(refused > 0, "no call failed while the server was down");
        answered += kept.len();
    }
    println!("{answered} answered steps, none lost");
    store_contract::recount(store, &[]).await.expect("aggregates equal a recount");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_receive_events_also_after_a_lost_connection() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.database();
    let nodes = nodes(&url).await;
    let mut events_received = nodes[1].subscribe("one").expect("a shared store");
    let mut own = nodes[0].subscribe("zero").expect("a shared store");
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
    let connection = tokio::spawn(connection);
    for round in 0..3 {
        let events: Vec<String> = (0..50).map(|at| format!("{round}: {at}\0")).collect();
        let begun = Instant::now();
        nodes[0].publish("zero", 1_000, events.clone()).await.expect("published");
        for expected in events {
            let received =
                tokio::time::timeout(Duration::from_secs(8), events_received.recv()).await;
            assert_eq!(received.expect("in time"), Some(expected));
        }
        println!("received after {:.0?}", begun.elapsed());
        // Terminates the listening connections.
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND query LIKE 'LISTEN%'";
        client.batch_execute(cut).await.expect("cut");
    }
    assert!(own.try_recv().is_err(), "a node does not receive its own events");
    drop(client);
    drop(connection.await);
}
