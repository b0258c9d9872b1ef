//! Events that were changed past the guards of the log: each change is found by whoever reads the run, and by the check of the store.

use servo_store::testkit::fixtures::{add, fresh_event, payload, run_id, start_append, tenant};
use servo_store::{AdminStore, Append, Error, Expected, Integrity, LogStore, NewEvent, Position, Scope};
use servo_store_postgres::PostgresStore;

use crate::conformance::past_guards;
use crate::support::{config, connect, database, owner, run};

/// Two runs: one of three events, the second by the way of plain checkpoints and the third with a payload in `blobs`, and one of one.
async fn write(store: &PostgresStore) {
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    store.append(start_append(&run, &acme)).await.unwrap();
    let small = NewEvent { payload: "{\"amount\":1}".to_owned(), ..fresh_event(&run) };
    store.append(Append::one(add(&run, &acme, Expected::Seq(1), vec![small]))).await.unwrap();
    let large = NewEvent { payload: payload(100_000), ..fresh_event(&run) };
    store.append(Append::one(add(&run, &acme, Expected::Seq(2), vec![large]))).await.unwrap();
    store.append(start_append(&run_id("inv_2"), &acme)).await.unwrap();
}

async fn read(store: &PostgresStore, run: &str) -> servo_store::Result<usize> {
    store.read_run(&Scope::System, &run_id(run), 0, 10).await.map(|page| page.events.len())
}

#[test]
fn every_changed_column_is_found_and_refused() {
    run(async {
        let url = database().await;
        let store = connect(&url).await;
        write(&store).await;
        assert_eq!(store.integrity().await.unwrap(), Integrity::default());
        assert_eq!((read(&store, "inv_1").await.unwrap(), read(&store, "inv_2").await.unwrap()), (3, 1));
        let owner = owner(&url).await;
        owner.batch_execute("CREATE TABLE kept AS SELECT * FROM servo.events").await.unwrap();
        for change in [
            "xid = (xid::text::bigint + 1)::text::xid8",
            "store_epoch = store_epoch + 1",
            "run_seq = 7",
            "emitted_at = emitted_at + 1",
            "occurred_at = 1",
            "event_id = gen_random_uuid()",
            "run_id = 'inv_2'",
            "tenant_id = 'acmf'",
            "event_type = 'test.other'",
            "idempotency_key = sha256('x')",
            "emitted_by = 'nobody'",
            "payload = replace(payload, '1', '2')",
            "format = 0",
            "checksum = checksum + 1",
        ] {
            past_guards(&owner, &format!("UPDATE servo.events SET {change} WHERE run_id = 'inv_1' AND run_seq = 2"))
                .await;
            let refused = [read(&store, "inv_1").await, read(&store, "inv_2").await];
            assert!(refused.iter().any(|read| matches!(read, Err(Error::Corrupt { .. }))), "{change}: {refused:?}");
            assert!(!store.integrity().await.unwrap().problems.is_empty(), "{change}");
            let restored = "DELETE FROM servo.events WHERE event_type <> 'none'; INSERT INTO servo.events OVERRIDING SYSTEM VALUE SELECT * FROM kept";
            past_guards(&owner, restored).await;
        }
        assert_eq!(store.integrity().await.unwrap(), Integrity::default());
        for at in 1..=12 {
            let overlay = format!("payload = overlay(payload placing '~' from {at} for 1)");
            past_guards(&owner, &format!("UPDATE servo.events SET {overlay} WHERE run_id = 'inv_1' AND run_seq = 2"))
                .await;
            let refused = read(&store, "inv_1").await;
            let told = "event 2 of run inv_1 is not as written: the checksum differs";
            assert!(matches!(&refused, Err(Error::Corrupt { detail }) if detail == told), "{at}: {refused:?}");
            assert_eq!(store.integrity().await.unwrap().problems, [told]);
            past_guards(&owner, "UPDATE servo.events e SET payload = k.payload FROM kept k WHERE k.id = e.id").await;
        }
        let swap = "UPDATE servo.events e SET payload = k.payload FROM kept k
            WHERE e.run_id = 'inv_1' AND e.run_seq = 1 AND k.run_id = 'inv_1' AND k.run_seq = 2";
        past_guards(&owner, swap).await;
        assert!(read(&store, "inv_1").await.is_err(), "another event's payload");
    });
}

#[test]
fn a_changed_large_payload_and_a_changed_snapshot_are_found() {
    run(async {
        let url = database().await;
        let store = connect(&url).await;
        write(&store).await;
        let (run, acme) = (run_id("inv_1"), tenant("acme"));
        let snapshot = servo_store::log::StoredSnapshot { run_seq: 1, state: "{}".to_owned() };
        store.put_snapshot(&run, &acme, snapshot).await.unwrap();
        let owner = owner(&url).await;
        owner.batch_execute("UPDATE servo.snapshots SET state = '[]'").await.unwrap();
        owner
            .batch_execute(
                "ALTER TABLE servo.blobs DISABLE TRIGGER USER; UPDATE servo.blobs SET payload = replace(payload, 'a', 'b');
                 ALTER TABLE servo.blobs ENABLE TRIGGER USER",
            )
            .await
            .unwrap();
        let found = store.snapshot_at(&Scope::System, &run, 9).await.unwrap().unwrap();
        assert_eq!((found.run_seq, found.state.as_str()), (1, ""), "it is not used");
        assert!(read(&store, "inv_1").await.is_err());
        assert_eq!(
            store.integrity().await.unwrap().problems,
            [
                "event 3 of run inv_1 is not as written: the checksum differs",
                "the snapshot of run inv_1 at event 1 is not as written; it is not used"
            ]
        );
    });
}

/// The control: without checksums a changed payload is given as if it had been written.
#[test]
fn control_without_checksums_a_changed_byte_passes() {
    run(async {
        let url = database().await;
        let mut config = config(&url);
        config.sabotage = Some("no-checksums".to_owned());
        let store = PostgresStore::connect(config).await.unwrap();
        write(&store).await;
        let change =
            "UPDATE servo.events SET payload = replace(payload, '1', '2') WHERE run_id = 'inv_1' AND run_seq = 2";
        past_guards(&owner(&url).await, change).await;
        let page = store.read_run(&Scope::System, &run_id("inv_1"), 1, 1).await.unwrap();
        assert_eq!(page.events[0].payload, "{\"amount\":2}");
        assert_eq!(store.integrity().await.unwrap(), Integrity { problems: Vec::new(), without_checksum: 4 });
    });
}

/// A node of a version before is still writing: what it writes is read, and counted.
#[test]
fn the_appends_of_a_node_of_before_are_read_as_they_are() {
    run(async {
        let url = database().await;
        let store = connect(&url).await;
        write(&store).await;
        let old = owner(&url).await;
        let append = "SET search_path = servo; SET ROLE servo_app;
            SELECT append_events('acme', ARRAY[1::bigint], NULL, ARRAY[3::bigint], ARRAY[4::bigint], ARRAY[NULL::bigint],
                ARRAY[gen_random_uuid()], ARRAY['inv_1'], ARRAY['acme'], ARRAY['test.noted'], ARRAY[sha256('old')],
                ARRAY['old'], ARRAY['{}'])";
        old.batch_execute(append).await.unwrap();
        assert_eq!(read(&store, "inv_1").await.unwrap(), 4);
        assert_eq!(store.integrity().await.unwrap(), Integrity { problems: Vec::new(), without_checksum: 1 });
        assert_eq!(store.read_log(Position::START, 100).await.unwrap().unreadable, []);
    });
}
