//! Bringing a database to the schema: at once from several processes, once only, and never over what is newer.

use servo_store::testkit::fixtures::{run_id, start_append, tenant};
use servo_store::{AdminStore, Error, LogStore, Position};
use servo_store_postgres::{Config, PostgresStore};

use crate::support::{bare_database, config, connect, database, owner, run, spawn};

#[test]
fn many_may_migrate_an_empty_database_at_once() {
    run(async {
        let url = bare_database("servo_it_migrations_at_once").await;
        let connecting: Vec<_> = (0..4)
            .map(|number| {
                let config = config(&url);
                spawn(async move {
                    let store = PostgresStore::connect(config).await.unwrap();
                    store.append(start_append(&run_id(&format!("inv_{number}")), &tenant("acme"))).await.unwrap();
                    store.secret().await.unwrap()
                })
            })
            .collect();
        let mut secrets = Vec::new();
        for task in connecting {
            secrets.push(task.await.unwrap());
        }
        assert!(secrets.iter().all(|secret| *secret == secrets[0] && *secret != [0; 32]), "one secret for all");
        let rows = "SELECT max(version) FROM servo.schema_migrations WHERE length(checksum) = 64";
        let applied = owner(&url).await.query_one(rows, &[]).await.unwrap().get::<_, i32>(0);
        let known = connect(&url).await.info().await.unwrap().schema_version;
        assert_eq!(i64::from(applied), i64::from(known), "all of them");
    });
}

#[test]
fn a_newer_schema_and_a_changed_migration_are_refused() {
    run(async {
        let url = database().await;
        let owner = owner(&url).await;
        let newer = "INSERT INTO servo.schema_migrations (version, name, checksum) VALUES (99, 'later', 'x')";
        owner.batch_execute(newer).await.unwrap();
        let error = PostgresStore::connect(config(&url)).await.unwrap_err();
        assert!(matches!(error, Error::TooNew { found: 99, .. }), "{error:?}");
        let changed = "DELETE FROM servo.schema_migrations WHERE version = 99;
            UPDATE servo.schema_migrations SET checksum = repeat('0', 64) WHERE version = 1";
        owner.batch_execute(changed).await.unwrap();
        let error = PostgresStore::connect(config(&url)).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    });
}

/// A dump brings transaction ids that mean nothing where it is restored. Its events come before all new ones.
#[test]
fn a_restored_store_counts_on_in_a_new_epoch() {
    run(async {
        let url = database().await;
        let store = connect(&url).await;
        store.append(start_append(&run_id("inv_1"), &tenant("acme"))).await.unwrap();
        store.close().await.unwrap();
        let owner = owner(&url).await;
        // As restored: written by a transaction that this server has not reached yet, and elsewhere.
        let restored = "INSERT INTO servo.events (run_seq, xid, emitted_at, event_id, store_epoch, run_id, tenant_id,
                event_type, idempotency_key, emitted_by, payload)
            SELECT 2, '4611686018427387904', 0, gen_random_uuid(), store_epoch, 'inv_1', 'acme', 'test.restored',
                sha256('restored'), 'test', '{}' FROM servo.meta;
            UPDATE servo.meta SET identity = 'elsewhere'";
        owner.batch_execute(restored).await.unwrap();
        let epoch = "SELECT store_epoch FROM servo.meta";
        let before: i32 = owner.query_one(epoch, &[]).await.unwrap().get(0);
        let store = connect(&url).await;
        store.append(start_append(&run_id("inv_2"), &tenant("acme"))).await.unwrap();
        assert_eq!(owner.query_one(epoch, &[]).await.unwrap().get::<_, i32>(0), before + 1, "once, not per connection");
        let mut events = Vec::new();
        while events.len() < 3 {
            events = store.read_log(Position::START, 100).await.unwrap().events;
        }
        let seen: Vec<_> = events.iter().map(|event| (event.run_id.as_str(), event.run_seq)).collect();
        assert_eq!(seen, [("inv_1", 1), ("inv_1", 2), ("inv_2", 1)]);
        assert!(events[1].position < events[2].position);
        assert_eq!(store.log_head().await.unwrap(), events[2].position);
    });
}

#[test]
fn a_password_is_in_no_message() {
    run(async {
        for url in ["postgres://user:hunter2@127.0.0.1:1/x", "postgres://user:hunter2@127.0.0.1:port/x", "hunter2"] {
            let mut config = Config::new(url);
            assert!(!format!("{config:?}").contains("hunter2"));
            config.acquire_timeout = std::time::Duration::from_secs(1);
            let error = PostgresStore::connect(config).await.unwrap_err();
            assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
            assert!(!error.may_have_happened());
        }
    });
}
