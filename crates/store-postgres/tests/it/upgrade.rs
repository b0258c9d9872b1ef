//! A store of an earlier schema is brought to this one with what it holds, and used on.

use servo_canon::Digest;
use servo_store::testkit::fixtures::{add, dispatch_step, fresh_event, run_id, start_append, tenant};
use servo_store::{AdminStore, Append, DispatchChange, Error, Expected, LogStore, Scope, WorkStore};
use tokio_postgres::error::SqlState;

use crate::support::{bare_database, connect, database, owner, run};

/// The schema as it was before appends were checked by the database.
const OLD: [&str; 7] = [
    include_str!("../../migrations/0001_initial.sql"),
    include_str!("../../migrations/0002_runs.sql"),
    include_str!("../../migrations/0003_functions.sql"),
    include_str!("../../migrations/0004_lines.sql"),
    include_str!("../../migrations/0005_entrypoints.sql"),
    include_str!("../../migrations/0006_identity.sql"),
    include_str!("../../migrations/0007_fair.sql"),
];

/// A run with two events, a timer and a dispatch that is handed out.
const ROWS: &str = "
    INSERT INTO meta (store_epoch, identity) VALUES (1, 'where it was');
    INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, created_at, changed_seq)
        VALUES ('inv_1', 'acme', '', '', 'plan', '1', 'RUNNING', 'running', 0, 1);
    INSERT INTO events (run_seq, emitted_at, event_id, store_epoch, run_id, tenant_id, event_type, idempotency_key, emitted_by,
            payload)
        SELECT n, 0, gen_random_uuid(), 1, 'inv_1', 'acme', 'test.noted', sha256(n::text::bytea), 'test', '{}'
        FROM generate_series(1, 2) n;
    INSERT INTO timers VALUES ('inv_1', 'acme', 4102444800000);
    INSERT INTO dispatches VALUES ('inv_1/a/1', 'inv_1', 'acme', 't', 'a', 1, 'notified', 'node', NULL, 1, 0, 0)";

async fn old_store(name: &str) -> String {
    // Whoever connects first makes the roles that the schema names.
    database().await;
    let url = bare_database(name).await;
    let owner = owner(&url).await;
    let history = "CREATE SCHEMA servo; SET search_path = servo;
        CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now())";
    owner.batch_execute(history).await.unwrap();
    for (version, sql) in (1..).zip(OLD) {
        let checksum = Digest::of(sql.as_bytes());
        let noted = format!("INSERT INTO schema_migrations VALUES ({version}, 'old', '{checksum}')");
        owner.batch_execute(&format!("BEGIN; {sql}; {noted}; COMMIT")).await.unwrap();
    }
    owner.batch_execute(ROWS).await.unwrap();
    url
}

#[test]
fn a_store_from_before_is_used_on() {
    run(async {
        let url = old_store("servo_it_upgrade").await;
        let store = connect(&url).await;
        let (run, acme) = (run_id("inv_1"), tenant("acme"));
        assert_eq!(store.read_run(&Scope::System, &run, 0, 10).await.unwrap().events.len(), 2);
        let mut stream = add(&run, &acme, Expected::Seq(2), vec![fresh_event(&run)]);
        let request_id = dispatch_step("a", 1).request_id(&run);
        stream.dispatches.push(DispatchChange::Deliver { request_id: request_id.clone() });
        let appended = store.append(Append::one(stream)).await.unwrap();
        assert_eq!(appended.streams[0].events[0].run_seq, 3);
        assert_eq!(store.get_dispatch(&request_id).await.unwrap().unwrap().state.as_str(), "delivered");
        let late = Append::one(add(&run, &acme, Expected::Seq(2), vec![fresh_event(&run)]));
        assert!(matches!(store.append(late).await, Err(Error::Conflict { expected: 2, actual: 3, .. })));
        let checked = store.integrity().await.unwrap();
        assert_eq!(
            (checked.problems, checked.without_checksum),
            (Vec::new(), 2),
            "those of before are read, and counted"
        );
        // What the old schema's foreign keys kept is kept.
        let owner = owner(&url).await;
        let bare =
            "DELETE FROM servo.timers; DELETE FROM servo.dispatches; DELETE FROM servo.runs WHERE run_id = 'inv_1'";
        let stray = owner.batch_execute(bare).await.unwrap_err();
        assert_eq!(stray.code(), Some(&SqlState::FOREIGN_KEY_VIOLATION), "events are left");
        store.delete_run(&Scope::System, &run).await.unwrap();
        assert!(matches!(store.read_run(&Scope::System, &run, 0, 1).await, Err(Error::NotFound)));
        let gone = Append::one(add(&run, &acme, Expected::Seq(3), vec![fresh_event(&run)]));
        assert!(matches!(store.append(gone).await, Err(Error::NotFound)), "no event without its run");
        for tenant in ["acme", "globex"] {
            store.append(start_append(&run_id("inv_2"), &acme)).await.ok();
            let run = if tenant == "acme" { "inv_1" } else { "inv_2" };
            let stray = format!(
                "INSERT INTO servo.events (run_seq, emitted_at, event_id, store_epoch, run_id, tenant_id, event_type,
                    idempotency_key, emitted_by, payload)
                 VALUES (9, 0, gen_random_uuid(), 1, '{run}', '{tenant}', 'test.stray', sha256('x'), 'test', '{{}}')"
            );
            let stray = owner.batch_execute(&stray).await.unwrap_err();
            assert_eq!(stray.code(), Some(&SqlState::FOREIGN_KEY_VIOLATION), "{run} of {tenant}");
        }
        let left = owner.query_one("SELECT count(*) FROM servo.events WHERE run_id = 'inv_1'", &[]).await.unwrap();
        assert_eq!(left.get::<_, i64>(0), 0);
    });
}
