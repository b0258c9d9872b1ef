//! Timers under changing leaders: none lost, none early, none late for long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use servo_model::event::EventBody;
use servo_model::{RunId, RunStatus, Timestamp};
use servo_sim::dice::Dice;
use servo_sim::faults::RandomFaults;

use crate::world::World;

/// How late each delayed attempt was handed out.
fn lateness(world: &World, run_id: &RunId) -> Vec<Duration> {
    let mut due: BTreeMap<(String, u32), Timestamp> = BTreeMap::new();
    let mut late = Vec::new();
    for event in world.events(run_id) {
        match &event.body {
            EventBody::StepRetryScheduled(body) => {
                due.insert((body.step_id.to_string(), body.logical_attempt_id), body.not_before.unwrap());
            }
            EventBody::StepStarted(body) if body.logical_attempt_id > 1 => {
                let at = due[&(body.step_id.to_string(), body.logical_attempt_id)];
                assert!(event.emitted_at >= at, "early: due {at}, started {}", event.emitted_at);
                late.push(event.emitted_at.since(at));
            }
            _ => {}
        }
    }
    late
}

/// R13, small: many timers, a new leader every few seconds.
#[test]
fn no_timer_is_lost_or_early_while_leaders_change() {
    let mut dice = Dice::new(13);
    let slow = Arc::new(RandomFaults::new(13, 3, 0));
    let world = World::with(13, |cluster| {
        cluster.faults = slow.clone();
        cluster.config.authority.lease_ms = 2_000;
    });
    let mut node = world.leader();
    let runs: Vec<_> = (0..150)
        .map(|_| {
            let delay = dice.between(1, 60_000);
            let retry = json!({"maxAttempts": 2, "delayMs": delay});
            world.run(&node, json!([{"stepId": "a", "with": {"failAttempts": 1}, "retry": retry}]))
        })
        .collect();
    for _ in 0..20 {
        world.pass_ms(dice.between(500, 5_000));
        world.cluster.kill(&node);
        node = world.node();
    }
    let mut late = Vec::new();
    for run_id in &runs {
        world.wait_status(&node, run_id, RunStatus::Completed);
        late.extend(lateness(&world, run_id));
    }
    assert_eq!(late.len(), 150);
    late.sort();
    // A hand-over takes the lease and the waiting node's next look; without one a timer is on time.
    assert!(late[149] <= Duration::from_millis(2_000 + 5_000), "{:?}", late[149]);
    assert!(late[75] <= Duration::from_millis(2_500), "{:?}", late[75]);
    world.verify();
}

/// R13: with a leader that stays, they are on time.
#[test]
fn timers_are_on_time() {
    let world = World::new(14);
    let node = world.leader();
    let runs: Vec<_> = (1..100)
        .map(|number| {
            let retry = json!({"maxAttempts": 3, "delayMs": number * 137});
            world.run(&node, json!([{"stepId": "a", "with": {"failAttempts": 2}, "retry": retry}]))
        })
        .collect();
    for run_id in &runs {
        world.wait_status(&node, run_id, RunStatus::Completed);
        assert!(lateness(&world, run_id).iter().all(|late| *late <= Duration::from_millis(10)));
    }
}
