//! One owner at a time, by lease and fence.

use std::time::Duration;

use servo_model::RunId;
use servo_model::contract::RuntimeEvent;
use servo_runtime::Error;
use servo_sim::check::{self, Evidence};
use servo_store::{Fence, WorkStore};

use crate::world::World;
use serde_json::json;

fn acquire(owner: &str, lease: &str, until: &str) -> String {
    json!({"command": "AcquireAuthority", "owner": owner, "lease_id": lease, "leased_until": until}).to_string()
}

fn renew(owner: &str, lease: &str, until: &str) -> String {
    json!({"command": "RenewAuthority", "owner": owner, "lease_id": lease, "leased_until": until}).to_string()
}

fn in_seconds(world: &World, seconds: u64) -> String {
    world.now().plus(Duration::from_secs(seconds)).to_string()
}

fn epoch(world: &World) -> Option<Fence> {
    let memory = world.cluster.memory.clone();
    let row = world.block_on(async move { memory.authority().await }).unwrap();
    row.map(|row| Fence { epoch: row.epoch })
}

fn facts(world: &World) -> usize {
    world.stored(&RunId::system()).len()
}

/// RT-002
#[test]
fn a_second_owner_is_refused_and_leaves_no_event() {
    let world = World::new(1);
    let executed = world.command(&acquire("w1", "l1", &in_seconds(&world, 60)), None).unwrap();
    assert!(matches!(&executed.events[..], [RuntimeEvent::AuthorityAcquired { owner, .. }] if owner == "w1"));
    let before = facts(&world);
    let error = world.command(&acquire("w2", "l2", &in_seconds(&world, 90)), None).unwrap_err();
    assert!(matches!(&error, Error::Store(servo_store::Error::AuthorityHeld { owner, .. }) if owner == "w1"));
    assert_eq!(error.code().code, "AUTHORITY_HELD");
    assert!(error.to_string().contains("w1 holds the authority until"), "{error}");
    assert_eq!(facts(&world), before);
    assert_eq!(world.runtime_snapshot().authority.owner.as_deref(), Some("w1"));
}

/// RT-003
#[test]
fn only_the_holder_renews() {
    let world = World::new(2);
    let until = in_seconds(&world, 60);
    assert_eq!(world.command(&renew("w1", "l1", &until), None).unwrap_err().code().code, "AUTHORITY_NOT_HELD");
    world.command(&acquire("w1", "l1", &until), None).unwrap();
    let later = in_seconds(&world, 120);
    assert_eq!(world.command(&renew("w2", "l2", &later), None).unwrap_err().code().code, "AUTHORITY_NOT_HELD");
    let before = facts(&world);
    let executed = world.command(&renew("w1", "l2", &later), None).unwrap();
    assert!(matches!(&executed.events[..], [RuntimeEvent::AuthorityRenewed { lease_id, .. }] if lease_id == "l2"));
    assert_eq!(facts(&world), before + 1);
    let authority = world.runtime_snapshot().authority;
    assert_eq!((authority.owner.as_deref(), authority.leased_until), (Some("w1"), Some(later)));
}

/// RT-004
#[test]
fn after_a_take_over_the_old_owner_can_do_nothing() {
    let world = World::new(3);
    world.command(&acquire("w1", "l1", &in_seconds(&world, 10)), None).unwrap();
    let old = epoch(&world);
    world.command(r#"{"command":"QueueDispatch","request_id":"r1","target":"t"}"#, old).unwrap();
    world.pass(Duration::from_secs(11));
    // Expired and nobody else there yet: the fence is closed all the same.
    let notify = r#"{"command":"MarkNotified","request_id":"r1","channel":"c"}"#;
    assert_eq!(world.command(notify, old).unwrap_err().code().code, "AUTHORITY_FENCED");
    assert!(world.command(&renew("w1", "l1", &in_seconds(&world, 10)), old).is_err());
    world.command(&acquire("w2", "l2", &in_seconds(&world, 60)), None).unwrap();
    let before = facts(&world);
    for command in [
        notify.to_owned(),
        r#"{"command":"QueueDispatch","request_id":"r2","target":"t"}"#.to_owned(),
        r#"{"command":"MarkDelivered","request_id":"r1"}"#.to_owned(),
        r#"{"command":"MarkFailed","request_id":"r1","reason":"x"}"#.to_owned(),
        renew("w1", "l1", &in_seconds(&world, 60)),
    ] {
        let error = world.command(&command, old).unwrap_err();
        assert!(matches!(error.code().code, "AUTHORITY_FENCED" | "AUTHORITY_NOT_HELD"), "{command}: {error}");
    }
    assert_eq!(facts(&world), before);
    world.command(notify, epoch(&world)).unwrap();
    assert_eq!(world.runtime_snapshot().backlog.notified, 1);
}

/// RT-004, RT-015: the scheduler of the running system holds this lease, and loses it when its process stands still.
#[test]
fn a_paused_scheduler_is_fenced_when_it_comes_back() {
    for seed in 0..10 {
        let world = World::new(seed);
        let first = world.leader();
        let second = world.node();
        let runs: Vec<_> = (0..4)
            .map(|_| {
                world.run(
                    &second,
                    json!([{"stepId": "a", "with": {"sleepMs": 1_000}}, {"stepId": "b", "dependsOn": ["a"]}]),
                )
            })
            .collect();
        world.pass_ms(seed * 200);
        world.cluster.sim.pause(first.id);
        world.wait_until("the second node leads", || world.leads(&second));
        assert_eq!(world.runtime_snapshot().authority.owner.as_deref(), Some(second.runtime.owner()));
        world.pass_ms(seed * 100);
        world.cluster.sim.resume(first.id);
        world.pass(Duration::from_secs(30));
        assert!(!world.leads(&first));
        for run_id in &runs {
            world.wait_status(&second, run_id, servo_model::RunStatus::Completed);
            assert_eq!(world.count(run_id, "StepCompleted"), 2);
        }
        let evidence = Evidence { journal: world.cluster.journal.entries(), ..Evidence::default() };
        assert_eq!(check::everything(&evidence), Vec::<String>::new());
    }
}

/// RT-004: whoever waits gets the authority within the lease and a little more, also when clocks are off.
#[test]
fn a_take_over_takes_no_longer_than_the_lease() {
    const HOUR: i64 = 3_600_000;
    for skew in [0, HOUR, -HOUR, 24 * HOUR, -24 * HOUR] {
        let world = World::new(7);
        let first = world.cluster.node_with(skew);
        world.wait_until("the first node leads", || world.leads(&first));
        let second = world.cluster.node_with(-skew);
        world.pass(Duration::from_secs(1));
        world.cluster.kill(&first);
        let killed = world.now();
        world.wait_until("the second node leads", || world.leads(&second));
        let waited = world.now().since(killed);
        assert!(waited <= Duration::from_millis(world.cluster.config.authority.lease_ms + 1_000), "{skew}: {waited:?}");
    }
}

/// With the settings as they come, the next node goes on with what was in hand within five seconds, and starts what waits.
#[test]
fn five_seconds_after_a_kill_the_next_node_works() {
    for seed in 0..5 {
        let world = World::new(seed);
        assert_eq!(world.cluster.config.authority.lease_ms, 3_000);
        let first = world.leader();
        let second = world.node();
        let in_hand = world.run(&first, json!([{"stepId": "a", "with": {"sleepMs": 100}}]));
        world.wait_in_flight(&first, &in_hand);
        world.cluster.kill(&first);
        let killed = world.now();
        let new = world.run(&second, json!([{"stepId": "a", "with": {"sleepMs": 100}}]));
        world.wait_status(&second, &new, servo_model::RunStatus::Completed);
        world.wait_status(&second, &in_hand, servo_model::RunStatus::Completed);
        let waited = world.now().since(killed);
        assert!(waited <= Duration::from_secs(5), "{seed}: {waited:?}");
    }
}

/// A store that is away for less than the lease takes the authority from nobody: the term stays, and so does what runs in it.
#[test]
fn a_renewal_that_fails_is_tried_again_before_the_lease_ends() {
    use servo_sim::faults::{Fault, Scripted};
    for fault in [Fault::Unavailable, Fault::ExecuteThenUnavailable] {
        let faults = std::sync::Arc::new(Scripted::default());
        let world = World::with(9, |cluster| cluster.faults = faults.clone());
        let node = world.leader();
        world.pass_ms(500);
        let fence = node.runtime.fence();
        faults.fail("append", fault);
        world.pass_ms(1_500);
        assert_eq!(node.runtime.fence(), fence, "{fault:?}: the lease is not over");
        faults.heal();
        world.pass_ms(5_000);
        assert_eq!(node.runtime.fence(), fence, "{fault:?}: and was renewed");
        faults.fail("append", fault);
        world.pass_ms(3_100);
        assert_eq!(node.runtime.fence(), None, "{fault:?}: a lease that is over is not held");
        faults.heal();
    }
}

/// RT-015: without the authority nothing is handed out, whoever holds it.
#[test]
fn an_outside_owner_keeps_the_scheduler_still() {
    let world = World::new(8);
    world.command(&acquire("operator", "l1", &in_seconds(&world, 60)), None).unwrap();
    let node = world.node();
    let run_id = world.run(&node, json!([{"stepId": "a"}]));
    world.pass(Duration::from_secs(50));
    assert!(!world.leads(&node));
    assert_eq!(world.runtime_snapshot().backlog.pending, 1);
    assert_eq!(world.count(&run_id, "StepStarted"), 0);
    world.wait_status(&node, &run_id, servo_model::RunStatus::Completed);
    assert!(world.now() >= world.events(&run_id)[0].emitted_at.plus(Duration::from_secs(59)));
}
