//! The database itself refuses what the store never does. All by plain SQL, as the owner of the tables, whom no grant
//! holds back.

use servo_store::testkit::fixtures::{add, fresh_event, payload, run_id, start_append, tenant};
use servo_store::{AdminStore, Append, Expected, LogStore, Scope};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::support::{connect, database, owner, run};

const COPY: &str =
    "INSERT INTO servo.events (run_seq, emitted_at, event_id, store_epoch, run_id, tenant_id, event_type,
        idempotency_key, emitted_by, payload)
    SELECT $1, emitted_at, gen_random_uuid(), store_epoch, run_id, tenant_id, event_type, $2, emitted_by, payload
    FROM servo.events WHERE run_id = 'inv_1' AND run_seq = 1";

/// A run with an event and one whose payload is large.
async fn prepared() -> (Client, impl LogStore + AdminStore) {
    let url = database().await;
    let store = std::sync::Arc::into_inner(connect(&url).await).unwrap();
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    store.append(start_append(&run, &acme)).await.unwrap();
    let mut large = fresh_event(&run);
    large.payload = payload(100_000);
    store.append(Append::one(add(&run, &acme, Expected::Seq(1), vec![large]))).await.unwrap();
    (owner(&url).await, store)
}

async fn refusal(client: &Client, sql: &str) -> SqlState {
    let error = client.batch_execute(sql).await.expect_err(sql);
    error.code().expect("the server refuses it").clone()
}

// ES-005, ES-006
#[test]
fn sequences_and_keys_are_unique_in_the_database() {
    run(async {
        let (owner, _store) = prepared().await;
        let (new_key, old_key) = (vec![7_u8; 32], {
            let row = owner.query_one("SELECT idempotency_key FROM servo.events WHERE run_seq = 1", &[]).await.unwrap();
            row.get::<_, Vec<u8>>(0)
        });
        let error = owner.execute(COPY, &[&1_i64, &new_key]).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
        assert_eq!(error.as_db_error().unwrap().constraint(), Some("events_pkey"));
        let error = owner.execute(COPY, &[&3_i64, &old_key]).await.unwrap_err();
        assert_eq!(error.as_db_error().unwrap().constraint(), Some("events_key"));
        assert_eq!(owner.execute(COPY, &[&3_i64, &new_key]).await.unwrap(), 1, "both new");
    });
}

// ES-008
#[test]
fn nobody_changes_or_removes_an_event() {
    run(async {
        let (owner, store) = prepared().await;
        let guarded = SqlState::INTEGRITY_CONSTRAINT_VIOLATION;
        for table in ["events", "blobs"] {
            for sql in [
                format!("UPDATE servo.{table} SET payload = payload"),
                format!("DELETE FROM servo.{table}"),
                format!("TRUNCATE servo.{table}"),
            ] {
                assert_eq!(refusal(&owner, &sql).await, guarded, "{sql}");
            }
            for role in ["servo_app", "servo_engine"] {
                let sql = format!("SET ROLE {role}; UPDATE servo.{table} SET payload = payload");
                assert_eq!(refusal(&owner, &sql).await, SqlState::INSUFFICIENT_PRIVILEGE, "{sql}");
                owner.batch_execute("RESET ROLE").await.unwrap();
            }
        }
        assert_eq!(refusal(&owner, "TRUNCATE servo.runs CASCADE").await, guarded);
        assert_eq!(
            refusal(&owner, "DELETE FROM servo.runs WHERE run_id = 'inv_1'").await,
            SqlState::FOREIGN_KEY_VIOLATION
        );
        let page = store.read_run(&Scope::System, &run_id("inv_1"), 0, 10).await.unwrap();
        assert_eq!(page.events.len(), 2, "all is there");
    });
}

// ES-008
#[test]
fn a_mark_opens_the_guard_for_its_own_transaction_only() {
    run(async {
        let (owner, store) = prepared().await;
        let mark = "UPDATE servo.runs SET trim_before = 2, trim_xid = pg_current_xact_id() WHERE run_id = 'inv_1'";
        owner.batch_execute(mark).await.unwrap();
        let guarded = SqlState::INTEGRITY_CONSTRAINT_VIOLATION;
        assert_eq!(refusal(&owner, "DELETE FROM servo.events WHERE run_seq = 1").await, guarded, "the mark is old");
        let both = format!("BEGIN; {mark}; DELETE FROM servo.events WHERE run_seq <= 2");
        assert_eq!(refusal(&owner, &both).await, guarded, "the second is not below the mark");
        owner.batch_execute("ROLLBACK").await.unwrap();
        store.delete_run(&Scope::System, &run_id("inv_1")).await.unwrap();
        let left = owner.query_one("SELECT count(*) FROM servo.events", &[]).await.unwrap();
        assert_eq!(left.get::<_, i64>(0), 0, "the store knows how");
    });
}

#[test]
fn the_writer_has_no_say_in_transaction_and_number() {
    run(async {
        let (owner, _store) = prepared().await;
        owner.batch_execute("SET ROLE servo_engine").await.unwrap();
        let forged = refusal(&owner, "INSERT INTO servo.events (xid) VALUES ('1')").await;
        assert_eq!(forged, SqlState::INSUFFICIENT_PRIVILEGE);
        let forged = refusal(&owner, "INSERT INTO servo.events (id) VALUES (1)").await;
        assert_eq!(forged, SqlState::GENERATED_ALWAYS);
    });
}

#[test]
fn a_missing_guard_is_found() {
    run(async {
        let (owner, store) = prepared().await;
        assert_eq!(store.integrity().await.unwrap().problems, Vec::<String>::new());
        owner.batch_execute("ALTER TABLE servo.events DISABLE TRIGGER events_delete").await.unwrap();
        assert_eq!(store.integrity().await.unwrap().problems, ["table events is not guarded"]);
        owner.batch_execute("DELETE FROM servo.events WHERE run_seq = 2").await.unwrap();
        owner.batch_execute("ALTER TABLE servo.events ENABLE TRIGGER events_delete").await.unwrap();
        assert_eq!(store.integrity().await.unwrap().problems, ["a payload of run inv_1 has no event"]);
    });
}
