//! Opening a store that an earlier version wrote: the same log, under the new schema.

use std::path::Path;

use rusqlite::Connection;
use servo_canon::Digest;
use servo_store::log::StoredSnapshot;
use servo_store::testkit::fixtures;
use servo_store::{AdminStore, Append, Expected, LogStore, Position, RunStore, Scope};
use servo_store_sqlite::{DATABASE_FILE, SCHEMA_VERSION, SqliteStore};

use crate::support::{PAGE, events, folder, many, one_more, open, open_old, raw, start, wait};

/// The schema before runs had numbers.
const SEVEN: [(&str, &str); 7] = [
    ("init", include_str!("../../migrations/0001_init.sql")),
    ("runs", include_str!("../../migrations/0002_runs.sql")),
    ("functions", include_str!("../../migrations/0003_functions.sql")),
    ("lines", include_str!("../../migrations/0004_lines.sql")),
    ("entrypoints", include_str!("../../migrations/0005_entrypoints.sql")),
    ("identity", include_str!("../../migrations/0006_identity.sql")),
    ("fair", include_str!("../../migrations/0007_fair.sql")),
];

/// Two runs and the system stream, with a large payload, a snapshot, a deleted run, and the last position gone with it.
fn write(store: &SqliteStore) {
    let (run, tenant) = start(store);
    wait(store.append(many(&run, &tenant, 3))).unwrap();
    wait(store.append(one_more(&run, &tenant, 100_000))).unwrap();
    let snapshot = StoredSnapshot { run_seq: 2, state: "{}".to_owned() };
    wait(store.put_snapshot(&run, &tenant, snapshot)).unwrap();
    let other = fixtures::run_id("other");
    let mut started = fixtures::start_stream(&other, &tenant);
    started.row =
        Some(fixtures::invocation_row(&other, &tenant, fixtures::run_row(&other, &tenant, now(store)).created_at));
    wait(store.append(Append::one(started))).unwrap();
    wait(
        store.append(Append::one(fixtures::system_stream(vec![fixtures::fresh_event(&servo_model::RunId::system())]))),
    )
    .unwrap();
    let gone = fixtures::run_id("gone");
    wait(store.append(fixtures::start_append(&gone, &tenant))).unwrap();
    wait(store.delete_run(&Scope::System, &gone)).unwrap();
}

fn now(store: &SqliteStore) -> servo_model::Timestamp {
    wait(store.now()).unwrap()
}

/// The same content in a file of schema 7.
fn downgrade(from: &Path, to: &Path) {
    let conn = Connection::open(to.join(DATABASE_FILE)).unwrap();
    conn.pragma_update(None, "application_id", 0x5352_564f).unwrap();
    conn.execute_batch(
        "CREATE TABLE schema_migrations (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL,
         applied_at INTEGER NOT NULL) STRICT",
    )
    .unwrap();
    for (version, (name, sql)) in (1_u32..).zip(SEVEN) {
        conn.execute_batch(sql).unwrap();
        let sha256 = Digest::of(sql.as_bytes()).to_string();
        conn.execute("INSERT INTO schema_migrations VALUES (?1, ?2, ?3, 0)", (version, name, sha256)).unwrap();
    }
    conn.execute("ATTACH ?1 AS new", [from.join(DATABASE_FILE).to_str().unwrap()]).unwrap();
    let list = |sql: &str| -> Vec<String> {
        conn.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let tables = list(
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name <> 'runs'",
    );
    for table in tables.iter().filter(|table| *table != "schema_migrations") {
        let columns = list(&format!("SELECT name FROM pragma_table_info('{table}', 'main')")).join(", ");
        conn.execute(&format!("INSERT OR REPLACE INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}"), [])
            .unwrap();
    }
    // The triggers have counted as well as the copy.
    conn.execute_batch(
        "DELETE FROM invocation_counts; INSERT INTO invocation_counts SELECT * FROM new.invocation_counts;
         UPDATE main.sqlite_sequence SET seq = (SELECT seq FROM new.sqlite_sequence WHERE name = 'events')
         WHERE name = 'events'",
    )
    .unwrap();
}

// The log of an earlier schema is read as it was written, and goes on.
#[test]
fn a_store_without_run_numbers_becomes_one_with_them() {
    let (new, old) = (folder(), folder());
    let store = open_old(new.path());
    write(&store);
    let log = wait(store.read_log(Position::START, 1_000)).unwrap();
    let rows = wait(store.list_runs(&Scope::System, &servo_store::runs::RunQuery::default())).unwrap();
    wait(store.close()).unwrap();
    downgrade(new.path(), old.path());

    let store = open(old.path());
    assert_eq!(wait(store.info()).unwrap().schema_version, SCHEMA_VERSION);
    assert_eq!(wait(store.read_log(Position::START, 1_000)).unwrap(), log);
    let read = wait(store.list_runs(&Scope::System, &servo_store::runs::RunQuery::default())).unwrap();
    assert_eq!(read, rows);
    let checked = wait(store.integrity()).unwrap();
    assert_eq!((checked.problems, checked.without_checksum), (Vec::new(), log.events.len() as u64), "those of before");
    let (run, tenant) = crate::support::names();
    let before = events(&store, &run);
    assert_eq!(before.len(), 5);

    // A key that was taken is still taken, a sequence goes on, and no position is given twice.
    let again = fixtures::new_event(&run, "again", 1, "StepStarted");
    let taken = servo_store::NewEvent { idempotency_key: before[1].idempotency_key, ..again };
    let repeated = wait(store.append(Append::one(fixtures::add(&run, &tenant, Expected::Any, vec![taken])))).unwrap();
    assert_eq!((repeated.streams[0].events[0].run_seq, repeated.streams[0].events[0].inserted), (2, false));
    wait(store.append(many(&run, &tenant, 1))).unwrap();
    let grown = events(&store, &run);
    assert_eq!(grown.iter().map(|event| event.run_seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    let last_given = log.events.last().unwrap().position.id + 1;
    assert_eq!(grown[5].position.id, last_given + 1, "the deleted run had the one before");
    wait(store.delete_run(&Scope::System, &run)).unwrap();
    assert_eq!(wait(store.integrity()).unwrap().problems, Vec::<String>::new());
    // A file keeps the pages that it has.
    let page = |dir: &Path| raw(dir).pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((page(new.path()), page(old.path())), (PAGE as i64, 4096));
}
