//! Who only looks at a run waits for nobody who writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use servo_sim::faults::{Fault, Scripted};
use servo_store::Scope;

use crate::world::World;

/// A command on the run is tried again and again, or takes long: its own work, which must not be dropped.
#[test]
fn a_run_is_read_while_nothing_can_be_written() {
    for is_slow in [false, true] {
        let faults = Arc::new(Scripted::default());
        let world = World::with(6, |cluster| cluster.faults = faults.clone());
        let node = world.leader();
        let run_id = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 1_000}}]));
        world.wait_in_flight(&node, &run_id);
        if is_slow {
            faults.slow("append", 600_000);
        } else {
            faults.fail("append", Fault::Full);
        }
        world.pass(Duration::from_secs(3));
        let (runtime, read) = (node.runtime.clone(), Arc::new(AtomicBool::new(false)));
        world.cluster.sim.tasks(node.id).spawn("read", {
            let (run_id, read) = (run_id.clone(), read.clone());
            async move {
                let snapshot = runtime.engine().snapshot(&Scope::System, &run_id).await.unwrap();
                read.store(snapshot.run_id == run_id, Ordering::Relaxed);
            }
        });
        world.pass(Duration::from_secs(2));
        assert!(read.load(Ordering::Relaxed), "slow: {is_slow}");
    }
}
