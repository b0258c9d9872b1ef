//! R26: what a start costs with many open runs, and how soon their work goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use servo_sim::Cluster;
use servo_sim::faults::{Call, Fate, FaultPlan};

use crate::queue::start_all;
use crate::world::{World, plan};

/// Counts what is asked of the store.
#[derive(Default)]
struct Calls(AtomicU64);

impl FaultPlan for Calls {
    fn fate(&self, _call: Call) -> Fate {
        self.0.fetch_add(1, Ordering::Relaxed);
        Fate::default()
    }
}

/// A world with so many runs whose first step is in flight on a node that is gone, and the calls counter of its store.
fn deserted(open: usize) -> (World, Arc<Calls>) {
    let calls = Arc::new(Calls::default());
    let world = World::with(1, |cluster: &mut Cluster| {
        cluster.faults = calls.clone();
        cluster.config.dispatch.in_flight_max = 2 * open;
    });
    let node = world.leader();
    let steps = json!([{"stepId": "a", "with": {"sleepMs": 3_600_000}}, {"stepId": "b", "dependsOn": ["a"]}]);
    let answers = start_all(&world, &node, (0..open).map(|_| plan(steps.clone())).collect());
    assert!(answers.iter().all(Result::is_ok));
    world.wait_until("every step is in flight", || count(&world, "StepStarted") == open);
    world.cluster.kill(&node);
    // Until the lease of the node that is gone is over nobody may go on.
    world.pass(Duration::from_secs(30));
    (world, calls)
}

fn count(world: &World, event_type: &str) -> usize {
    world.log().iter().filter(|event| event.event_type == event_type).count()
}

/// R26: ten open runs or a thousand are the same to a start, and all of them go on within ten seconds of it.
#[test]
fn a_start_takes_as_long_with_many_open_runs_and_hands_all_of_them_out() {
    let start = |open: usize| {
        let (world, calls) = deserted(open);
        let before = calls.0.load(Ordering::Relaxed);
        let from = world.now();
        let _node = world.node();
        let spent = calls.0.load(Ordering::Relaxed) - before;
        assert_eq!(world.now(), from, "ready at once");
        world.wait_until("every step is handed out again", || count(&world, "StepTakenOver") == open);
        let took = world.now().since(from);
        assert!(took <= Duration::from_secs(10), "{open} open runs: {took:?}");
        spent
    };
    assert_eq!(start(10), start(1_000), "calls of the store before a start is ready");
}
