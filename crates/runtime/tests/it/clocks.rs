//! Wall clocks that are wrong or are set while the system works: only the store's clock counts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_model::alert::AlertCode;
use servo_model::{RunId, RunStatus};
use servo_runtime::Clock as _;
use servo_sim::SimClock;
use servo_store::mem::MemStore;

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

/// A store whose own clock can be set.
fn settable(seed: u64) -> (World, SimClock) {
    let mut clock = None;
    let world = World::with(seed, |cluster| {
        let own = cluster.sim.clock().skewed(0);
        let time = own.clone();
        let limits = cluster.config.limits.clone();
        cluster.memory = MemStore::new(Arc::new(move || time.now()), limits, [7; 32]).shared();
        clock = Some(own);
    });
    (world, clock.expect("it was made"))
}

/// R16: what cannot be kept is told: a wait is a point in the store's time. Nothing else breaks: the authority is held again at
/// once, and new work is done.
#[test]
fn a_step_of_the_stores_own_clock_is_told_and_nothing_breaks() {
    for step in SKEWS.into_iter().filter(|step| (3 * SECOND..60 * YEAR).contains(&step.abs())) {
        let (world, clock) = settable(4);
        let node = world.leader();
        world.pass(Duration::from_secs(3));
        assert!(world.alert(AlertCode::ClockJump).is_none());
        clock.set_skew(step);
        world.pass(Duration::from_secs(2));
        assert!(world.leads(&node), "{step}: the authority is this node's again");
        let alert = world.alert(AlertCode::ClockJump).unwrap_or_else(|| panic!("{step} was not told"));
        let direction = if step > 0 { "forwards" } else { "backwards" };
        let told: i64 = alert.message.split(' ').find_map(|word| word.parse().ok()).unwrap();
        assert!(alert.message.contains(direction), "{step}: {}", alert.message);
        assert!((told - step.abs()).abs() < 100, "{step}: {}", alert.message);
        let run_id =
            world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 500}}, {"stepId": "b", "dependsOn": ["a"]}]));
        let snapshot = world.wait_status(&node, &run_id, RunStatus::Completed);
        let total = Duration::from_millis(snapshot.total_duration_ms.unwrap());
        assert!(total < Duration::from_secs(3), "{step}: {total:?}");
    }
}

/// A clock that is slewed, or off by less than the lease, is nobody's concern.
#[test]
fn a_small_step_is_not_told() {
    let (world, clock) = settable(5);
    let node = world.leader();
    for step in [SECOND, -SECOND, SECOND, 0] {
        clock.set_skew(step);
        world.pass(Duration::from_secs(3));
    }
    assert!(world.alert(AlertCode::ClockJump).is_none());
    assert!(world.leads(&node));
}

/// As the documents say: a step forwards ends what waits as much earlier, one backwards as much later, and the run goes on.
#[test]
fn a_wait_follows_the_stores_clock() {
    for (step, at_least, at_most) in [(HOUR, 3, 6), (10 * SECOND, 10, 12), (-10 * SECOND, 30, 32)] {
        let (world, clock) = settable(6);
        let node = world.leader();
        let began = world.now();
        let step_a =
            json!({"stepId": "a", "with": {"failAttempts": 1}, "retry": {"maxAttempts": 2, "delayMs": 20_000}});
        let run_id = world.run(&node, json!([step_a]));
        world.pass(Duration::from_secs(3));
        clock.set_skew(step);
        world.wait_status(&node, &run_id, RunStatus::Completed);
        let waited = world.now().since(began);
        let expected = Duration::from_secs(at_least)..Duration::from_secs(at_most);
        assert!(expected.contains(&waited), "{step}: {waited:?}");
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
