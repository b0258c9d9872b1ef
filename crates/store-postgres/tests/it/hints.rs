//! One process hears that another one wrote, and not that it did so itself. Only a hint: nothing here may depend on how fast it comes.

use std::time::Duration;

use servo_store::testkit::fixtures::{run_id, start_append, tenant};
use servo_store::{AdminStore, LogStore};
use servo_store_postgres::PostgresStore;

use crate::support::{config, database, run};

/// Far more than a hint takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_write_is_heard_in_other_processes() {
    run(async {
        let mut config = config(&database().await);
        config.hints = true;
        let (writer, reader) =
            (PostgresStore::connect(config.clone()).await.unwrap(), PostgresStore::connect(config).await.unwrap());
        let (mut own, mut other) = (writer.subscribe(), reader.subscribe());
        // Each tells once when it begins to listen.
        for hint in [&mut own, &mut other] {
            tokio::time::timeout(PATIENCE, hint.wait_for(|count| *count > 0)).await.unwrap().unwrap();
            hint.mark_unchanged();
        }
        let told = *own.borrow();
        writer.append(start_append(&run_id("inv_1"), &tenant("acme"))).await.unwrap();
        tokio::time::timeout(PATIENCE, other.changed()).await.unwrap().unwrap();
        reader.append(start_append(&run_id("inv_2"), &tenant("acme"))).await.unwrap();
        tokio::time::timeout(PATIENCE, own.changed()).await.unwrap().unwrap();
        // Hints come in the order of what they tell of: one for its own write would have come before.
        assert_eq!(*own.borrow(), told + 1, "the writer is told of the other's write only");
        writer.close().await.unwrap();
        reader.close().await.unwrap();
    });
}
