//! Wall clocks that are wrong or are set while the system works: only the store's clock counts.

use std::time::Duration;

use serde_json::json;
use servo_model::{RunId, RunStatus};

use crate::world::World;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// To 1970, to 2038 and beyond, and everything in between.
const SKEWS: [i64; 11] =
    [0, SECOND, -SECOND, HOUR, -HOUR, DAY, -DAY, 12 * YEAR + 18 * DAY, -56 * YEAR, 200 * YEAR, -200 * YEAR];

/// Between the failure and the second start of the step, by the store's clock.
fn waited(world: &World, run_id: &RunId) -> Duration {
    let events = world.events(run_id);
    let find = |event_type: &str, attempt: u32| {
        events.iter().find(|e| e.body.event_type() == event_type && e.body.key_parts() == ("a", attempt)).unwrap()
    };
    let (failed, again) = (find("StepFailed", 1), find("StepStarted", 2));
    again.emitted_at.since(failed.emitted_at)
}

/// R16
#[test]
fn a_delay_is_a_delay_whatever_the_wall_says() {
    for skew in SKEWS {
        let world = World::new(1);
        let node = world.cluster.node_with(skew);
        let step = json!({"stepId": "a", "with": {"failAttempts": 1}, "retry": {"maxAttempts": 2, "delayMs": 10_000}});
        let run_id = world.run(
            &node,
            json!([step, {"stepId": "b", "with": {"sleepMs": 4_000}}, {"stepId": "c", "dependsOn": ["b"]}]),
        );
        let snapshot = world.wait_status(&node, &run_id, RunStatus::Completed);
        let waited = waited(&world, &run_id);
        assert!(waited >= Duration::from_secs(10) && waited < Duration::from_secs(12), "{skew}: {waited:?}");
        // Durations come out of the store's time as well.
        let total = Duration::from_millis(snapshot.total_duration_ms.unwrap());
        assert!(total >= Duration::from_secs(10) && total < Duration::from_secs(12), "{skew}: {total:?}");
        for event in world.events(&run_id) {
            let apart = event.emitted_at.since(event.occurred_at.unwrap());
            assert!(event.occurred_at.unwrap() <= event.emitted_at && apart < Duration::from_secs(1), "{skew}");
        }
        world.verify();
    }
}

/// R16: set while a delayed attempt waits and while a lease is held.
#[test]
fn a_clock_that_is_set_fires_nothing_early_and_loses_no_authority() {
    for skew in SKEWS {
        let world = World::new(2);
        let node = world.leader();
        let step = json!({"stepId": "a", "with": {"failAttempts": 1}, "retry": {"maxAttempts": 2, "delayMs": 20_000}});
        let run_id = world.run(
            &node,
            json!([step, {"stepId": "b", "with": {"sleepMs": 6_000}}, {"stepId": "c", "dependsOn": ["b"]}]),
        );
        world.pass(Duration::from_secs(3));
        let fence = node.runtime.fence();
        node.clock.set_skew(skew);
        // The end of `b` is decided with the new time on the wall.
        world.pass(Duration::from_secs(10));
        assert_eq!(node.runtime.fence(), fence, "{skew}");
        world.wait_status(&node, &run_id, RunStatus::Completed);
        let waited = waited(&world, &run_id);
        assert!(waited >= Duration::from_secs(20) && waited < Duration::from_secs(22), "{skew}: {waited:?}");
    }
}

/// R16: queue times are the store's as well.
#[test]
fn a_queued_run_is_not_lost_in_the_future() {
    for skew in SKEWS {
        let world = World::with(3, |cluster| cluster.config.overload.default.active_runs_max = 1);
        let node = world.cluster.node_with(skew);
        let first = world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 5_000}}]));
        let second = world.run(&node, json!([{"stepId": "a"}]));
        world.wait_status(&node, &first, RunStatus::Completed);
        let room = world.now();
        world.wait_status(&node, &second, RunStatus::Completed);
        assert!(world.now().since(room) < Duration::from_secs(3), "{skew}");
    }
}
