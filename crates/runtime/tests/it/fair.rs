//! Tenants take turns: a flood of one does not delay another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use servo_machine::SignalKind;
use servo_model::{RunId, RunStatus, TenantId};
use servo_runtime::config::{OverloadRule, TenantShare};
use servo_runtime::loops::queue::{QueueOutcome, dequeue_and_start};
use servo_sim::faults::{Call, Fate, FaultPlan};
use servo_sim::{Cluster, Node};

use crate::world::{World, plan_named};

const SLOTS: usize = 8;

/// Starts `count` runs of one step of 100 ms for a tenant, all at once.
fn flood(world: &World, node: &Node, tenant: &str, count: usize) {
    let started = Arc::new(AtomicUsize::new(0));
    for _ in 0..count {
        let (engine, started) = (node.runtime.engine().clone(), started.clone());
        let request = plan_named("plan", tenant, json!([{"stepId": "a", "with": {"sleepMs": 100}}]));
        world.cluster.sim.tasks(node.id).spawn("client", async move {
            engine.start(request).await.unwrap();
            started.fetch_add(1, Ordering::Relaxed);
        });
    }
    world.wait_until("every run is started", || started.load(Ordering::Relaxed) == count);
}

fn small(cluster: &mut Cluster) {
    cluster.config.dispatch.in_flight_max = SLOTS;
}

/// Whose steps were begun, in order, from the moment when a tenant first appears in the log.
fn begun_since(world: &World, tenant: &str) -> Vec<String> {
    let log = world.log();
    let since = log.iter().skip_while(|event| event.tenant.as_str() != tenant);
    since.filter(|event| event.event_type == "StepStarted").map(|event| event.tenant.to_string()).collect()
}

/// Lets time pass in steps that are long, because the log is.
fn wait_until(world: &World, done: impl Fn() -> bool) {
    let begun = world.now();
    while !done() {
        world.pass_ms(500);
        assert!(world.now().since(begun) < Duration::from_secs(600), "not reached");
    }
}

/// How many steps of a tenant with so many runs are begun before the last of 20 that another tenant starts then.
fn noisy_before_quiet(noisy: usize, set: impl FnOnce(&mut Cluster)) -> usize {
    let world = World::with(19, |cluster| {
        small(cluster);
        set(cluster);
    });
    let node = world.leader();
    flood(&world, &node, "noisy", noisy);
    world.pass(Duration::from_secs(1));
    flood(&world, &node, "quiet", 20);
    let quiet = |begun: &[String]| begun.iter().filter(|tenant| *tenant == "quiet").count();
    wait_until(&world, || quiet(&begun_since(&world, "quiet")) == 20);
    let begun = begun_since(&world, "quiet");
    let last = begun.iter().rposition(|tenant| tenant == "quiet").unwrap();
    begun[..last].iter().filter(|tenant| *tenant == "noisy").count()
}

/// One for each of the quiet tenant's, what was in the slots, and what may be handed out before the rows are looked at again.
const BOUND: usize = 20 + SLOTS + 32;

#[test]
fn a_flood_of_one_tenant_does_not_delay_another() {
    let before = noisy_before_quiet(2_000, |_| {});
    assert!(before <= BOUND, "{before} of the noisy tenant's were begun before");
}

/// The control of the test above.
#[cfg(feature = "sabotage")]
#[test]
fn first_come_first_served_is_noticed() {
    let before = noisy_before_quiet(500, |cluster| cluster.config.sabotage = Some("fifo-dispatch".to_owned()));
    assert!(before > 5 * BOUND, "only {before}");
}

fn share(weight: u32, in_flight_max: Option<usize>) -> TenantShare {
    TenantShare { weight, in_flight_max }
}

#[test]
fn a_tenant_with_more_weight_starts_more() {
    let world = World::with(20, |cluster| {
        small(cluster);
        cluster.config.dispatch.tenants.insert(TenantId::parse("heavy").unwrap(), share(3, None));
    });
    let node = world.leader();
    flood(&world, &node, "heavy", 300);
    flood(&world, &node, "light", 300);
    wait_until(&world, || begun_since(&world, "light").len() >= 250);
    let begun = begun_since(&world, "light");
    // The first ones may have been handed out before the other tenant was there.
    let heavy = begun[50..250].iter().filter(|tenant| *tenant == "heavy").count();
    assert!((146..=154).contains(&heavy), "{heavy} of 200");
}

#[test]
fn a_tenant_has_no_more_in_flight_than_it_may() {
    let world = World::with(21, |cluster| {
        small(cluster);
        cluster.config.dispatch.tenants.insert(TenantId::parse("capped").unwrap(), share(1, Some(3)));
    });
    let node = world.leader();
    flood(&world, &node, "capped", 60);
    flood(&world, &node, "other", 60);
    wait_until(&world, || world.log().iter().filter(|event| event.event_type == "RunCompleted").count() == 120);
    let (mut now, mut most) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    for event in world.log() {
        let running = now.entry(event.tenant.to_string()).or_default();
        match event.event_type.as_ref() {
            "StepStarted" => *running += 1,
            "StepCompleted" => *running -= 1,
            _ => {}
        }
        let most = most.entry(event.tenant.to_string()).or_default();
        *most = (*most).max(*running);
    }
    assert_eq!(most["capped"], 3);
    assert!(most["other"] >= SLOTS - 3, "what one may not use, another may: {most:?}");
}

/// Calls of the store that take a moment, and how many put a queued run back.
#[derive(Default)]
struct Counting {
    put_back: AtomicUsize,
}

impl FaultPlan for Counting {
    fn fate(&self, call: Call) -> Fate {
        if call.name == "release_queue" {
            self.put_back.fetch_add(1, Ordering::Relaxed);
        }
        Fate { before_ms: 1, ..Fate::default() }
    }
}

/// Thousands of runs that have no room are not tried one after the other: that would take the store's time from all.
#[test]
fn runs_without_room_are_tried_a_few_at_a_time() {
    let counting = Arc::new(Counting::default());
    let world = World::with(23, |cluster| {
        cluster.faults = counting.clone();
        let rule = OverloadRule { active_runs_max: 0, ..OverloadRule::default() };
        cluster.config.overload.tenants.insert("noisy".to_owned(), rule);
    });
    let node = world.leader();
    flood(&world, &node, "noisy", 1_000);
    let before = counting.put_back.load(Ordering::Relaxed);
    world.pass(Duration::from_secs(2));
    let tried = counting.put_back.load(Ordering::Relaxed) - before;
    assert!(tried <= 3 * 64, "{tried} of 1,000 were put back within two seconds");
    assert!(tried > 0);

    // And somebody else's run is begun meanwhile as if they were not there.
    let mut request = plan_named("plan", "quiet", json!([{"stepId": "a"}]));
    request.approval_required = true;
    let run_id = world.start(&node, request).unwrap().run_id;
    let asked = world.now();
    world.signal(&node, &run_id, "go", SignalKind::Approve).unwrap();
    while world.snapshot(&node, &run_id).status != RunStatus::Completed {
        world.pass_ms(5);
        assert!(world.now().since(asked) < Duration::from_millis(500), "not begun");
    }
}

/// More tenants than are claimed at a time have no room, all with runs that are older: another's is begun all the same.
#[test]
fn tenants_without_room_do_not_hide_another() {
    const FULL: usize = 70;
    let world = World::with(24, |cluster| {
        // Calls that take a moment, so that what is put back is free again before all were seen.
        cluster.faults = Arc::new(Counting::default());
        for tenant in 0..FULL {
            let rule = OverloadRule { active_runs_max: 0, ..OverloadRule::default() };
            cluster.config.overload.tenants.insert(format!("full-{tenant:02}"), rule);
        }
    });
    let node = world.leader();
    for tenant in 0..FULL {
        flood(&world, &node, &format!("full-{tenant:02}"), 20);
    }
    let mut request = plan_named("plan", "quiet", json!([{"stepId": "a"}]));
    request.approval_required = true;
    let run_id = world.start(&node, request).unwrap().run_id;
    world.signal(&node, &run_id, "go", SignalKind::Approve).unwrap();
    let asked = world.now();
    while world.snapshot(&node, &run_id).status != RunStatus::Completed {
        world.pass_ms(20);
        assert!(world.now().since(asked) < Duration::from_secs(3), "not begun");
    }
}

/// The queue of runs, too: one round begins the oldest of every tenant, not only the oldest.
#[test]
fn a_long_queue_is_not_all_that_is_begun() {
    let world = World::with(22, |cluster| {
        let full = OverloadRule { active_runs_max: 0, ..OverloadRule::default() };
        cluster.config.overload.default = full;
    });
    let node = world.leader();
    flood(&world, &node, "noisy", 500);
    flood(&world, &node, "quiet", 5);
    world.cluster.kill(&node);
    let mut cluster = world.cluster;
    cluster.config.overload.default = OverloadRule::default();
    let world = World::of(cluster);
    let node = world.node();
    world.cluster.kill(&node);
    // What the first node had claimed or put back is free again.
    world.pass(Duration::from_secs(60));
    let engine = node.runtime.engine().clone();
    let begun = world.block_on(async move { dequeue_and_start(&engine, "me").await }).unwrap();
    assert!(begun.iter().all(|(_, outcome)| *outcome == QueueOutcome::Started));
    let rows = world.rows();
    let of_quiet = |run_id: &RunId| rows.iter().any(|row| row.run_id == *run_id && row.tenant.as_str() == "quiet");
    let quiet = begun.iter().filter(|(run_id, _)| of_quiet(run_id)).count();
    assert_eq!((begun.len(), quiet), (32 + 5, 5), "half of a claim for each");
}
