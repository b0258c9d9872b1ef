//! Backpressure and the run queue: who starts now, who waits, and that nobody starts twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use servo_machine::{Command, OverloadPolicy, SignalKind};
use servo_model::ids::Name;
use servo_model::{RunId, RunStatus};
use servo_runtime::Error;
use servo_runtime::config::OverloadRule;
use servo_runtime::engine::{Order, StartRequest, Started};
use servo_runtime::loops::queue::{QueueOutcome, dequeue_and_start};
use servo_sim::faults::{Fault, RandomFaults, Scripted};
use servo_sim::{Cluster, Node, NodeId};
use servo_store::dispatch::QueueClaim;
use servo_store::{Scope, WorkStore};

use crate::world::{World, plan, plan_named};

fn limited(cluster: &mut Cluster, policy: OverloadPolicy, active_runs_max: u32) {
    cluster.config.overload.default = OverloadRule { policy, active_runs_max, delay_ms: 7_000 };
}

fn long() -> StartRequest {
    plan(json!([{"stepId": "a", "with": {"sleepMs": 20_000}}]))
}

/// Starts many at once, each as a task of the node, and gives their answers.
pub(crate) fn start_all(world: &World, node: &Node, requests: Vec<StartRequest>) -> Vec<Result<Started, Error>> {
    let answers: Arc<Mutex<BTreeMap<usize, Result<Started, Error>>>> = Arc::default();
    let count = requests.len();
    for (number, request) in requests.into_iter().enumerate() {
        let (engine, answers) = (node.runtime.engine().clone(), answers.clone());
        world.cluster.sim.tasks(node.id).spawn("client", async move {
            let answer = engine.start(request).await;
            answers.lock().unwrap().insert(number, answer);
        });
    }
    world.wait_until("every start is answered", || answers.lock().unwrap().len() == count);
    std::mem::take(&mut *answers.lock().unwrap()).into_values().collect()
}

/// The most runs that were active at once, by the log.
fn most_active(world: &World) -> usize {
    let (mut active, mut most) = (0_usize, 0);
    for event in world.log() {
        match event.event_type.as_ref() {
            "RunStarted" => active += 1,
            "RunCompleted" | "RunFailed" | "RunCancelled" => active -= 1,
            _ => {}
        }
        most = most.max(active);
    }
    most
}

/// ES-070
#[test]
fn reject_turns_away_and_keeps_nothing() {
    let world = World::with(1, |cluster| limited(cluster, OverloadPolicy::Reject, 2));
    let node = world.leader();
    let first = world.start(&node, long()).unwrap();
    world.start(&node, long()).unwrap();
    let error = world.start(&node, long()).unwrap_err();
    assert!(matches!(error, Error::Overloaded { retry_after } if retry_after == Duration::from_secs(7)));
    assert_eq!((error.code().code, error.code().status), ("OVERLOADED", 429));
    assert_eq!(world.rows().len(), 2);
    world.wait_status(&node, &first.run_id, RunStatus::Completed);
    assert_eq!(world.start(&node, long()).unwrap().snapshot.status, RunStatus::Running);
}

/// ES-070
#[test]
fn queue_keeps_a_run_and_starts_it_when_there_is_room() {
    let world = World::with(2, |cluster| limited(cluster, OverloadPolicy::Queue, 1));
    let node = world.leader();
    let first = world.start(&node, long()).unwrap();
    let waiting = world.start(&node, long()).unwrap();
    assert_eq!(waiting.snapshot.status, RunStatus::Pending);
    assert_eq!(waiting.snapshot.blocked_by[0].cause, "capacity");
    assert_eq!(world.types(&waiting.run_id), ["RunQueued"]);
    world.pass(Duration::from_secs(10));
    assert_eq!(world.snapshot(&node, &waiting.run_id).status, RunStatus::Pending);
    world.wait_status(&node, &first.run_id, RunStatus::Completed);
    world.wait_status(&node, &waiting.run_id, RunStatus::Completed);
    assert_eq!(world.types(&waiting.run_id)[..3], ["RunQueued", "RunApproved", "RunStarted"]);
    assert_eq!(most_active(&world), 1);
}

/// ES-070
#[test]
fn delay_starts_a_run_not_before_its_time() {
    let world = World::with(3, |cluster| limited(cluster, OverloadPolicy::Delay, 1));
    let node = world.leader();
    world.run(&node, json!([{"stepId": "a", "with": {"sleepMs": 1_000}}]));
    let accepted = world.now();
    let delayed = world.start(&node, long()).unwrap();
    let until = accepted.plus(Duration::from_secs(7));
    assert_eq!(delayed.snapshot.blocked_by[0].earliest_at, Some(until));
    world.wait(&node, &delayed.run_id, |snapshot| snapshot.status == RunStatus::Running);
    let started = world.events(&delayed.run_id).into_iter().find(|e| e.body.event_type() == "RunStarted").unwrap();
    assert!(started.emitted_at >= until && started.emitted_at < until.plus(Duration::from_secs(2)));
}

/// ES-070: a caller may ask for a time as well.
#[test]
fn a_run_for_later_starts_later() {
    let world = World::new(4);
    let node = world.leader();
    let until = world.now().plus(Duration::from_secs(30));
    let run_id = world.start(&node, StartRequest { not_before: Some(until), ..long() }).unwrap().run_id;
    world.pass(Duration::from_secs(29));
    assert_eq!(world.snapshot(&node, &run_id).status, RunStatus::Pending);
    world.wait(&node, &run_id, |snapshot| snapshot.status == RunStatus::Running);
    assert!(world.now() >= until);
}

/// ES-070: per tenant and per plan.
#[test]
fn the_policy_is_chosen_by_plan_then_tenant() {
    let rule = |policy| OverloadRule { policy, active_runs_max: 0, delay_ms: 1_000 };
    let world = World::with(5, |cluster| {
        let overload = &mut cluster.config.overload;
        overload.tenants.insert("acme".to_owned(), rule(OverloadPolicy::Reject));
        overload.plans.insert("nightly".to_owned(), rule(OverloadPolicy::Queue));
    });
    let node = world.leader();
    let steps = json!([{"stepId": "a"}]);
    let start = |plan: &str, tenant: &str| world.start(&node, plan_named(plan, tenant, steps.clone()));
    assert_eq!(start("plan", "default").unwrap().snapshot.status, RunStatus::Running);
    assert!(matches!(start("plan", "acme"), Err(Error::Overloaded { .. })));
    assert_eq!(start("nightly", "acme").unwrap().snapshot.status, RunStatus::Pending);
    assert_eq!(start("nightly", "default").unwrap().snapshot.status, RunStatus::Pending);
}

/// ES-070: starts at once do not all see the last free place.
#[test]
fn the_limit_holds_for_starts_at_once() {
    for seed in 0..5 {
        let slow = Arc::new(RandomFaults::new(seed, 20, 0));
        let world = World::with(seed, |cluster| {
            limited(cluster, OverloadPolicy::Reject, 4);
            cluster.faults = slow.clone();
        });
        let node = world.leader();
        let answers = start_all(&world, &node, (0..64).map(|_| long()).collect());
        // One that was recorded while another was counting may count twice, so that fewer pass; never more.
        let passed = answers.iter().filter(|answer| answer.is_ok()).count();
        assert!((2..=4).contains(&passed), "seed {seed}: {passed}");
        while world.start(&node, long()).is_ok() {}
        assert_eq!(most_active(&world), 4, "seed {seed}");
    }
}

/// A tenant at its limit with a long queue does not keep another tenant's run from starting.
#[test]
fn a_long_queue_of_one_tenant_does_not_hide_another() {
    let world = World::with(6, |cluster| {
        let rule = OverloadRule { policy: OverloadPolicy::Queue, active_runs_max: 1, delay_ms: 1_000 };
        cluster.config.overload.tenants.insert("noisy".to_owned(), rule);
    });
    let node = world.leader();
    let steps = json!([{"stepId": "a", "with": {"sleepMs": 60_000}}]);
    let answers = start_all(&world, &node, (0..300).map(|_| plan_named("plan", "noisy", steps.clone())).collect());
    assert!(answers.iter().all(Result::is_ok));
    world.pass(Duration::from_secs(5));
    let mut request = plan_named("plan", "quiet", json!([{"stepId": "a"}]));
    request.approval_required = true;
    let run_id = world.start(&node, request).unwrap().run_id;
    world.signal(&node, &run_id, "go", SignalKind::Approve).unwrap();
    let asked = world.now();
    world.wait_status(&node, &run_id, RunStatus::Completed);
    assert!(world.now().since(asked) < Duration::from_secs(3), "{:?}", world.now().since(asked));
}

/// Runs that wait in the queue, in a world whose own reconcilers are gone.
fn queued(seed: u64, count: usize, faults: Arc<dyn servo_sim::FaultPlan>) -> (World, Vec<Node>, Vec<RunId>) {
    let world = World::with(seed, |cluster| {
        cluster.faults = faults;
        cluster.config.overload.default.active_runs_max = 0;
    });
    let node = world.leader();
    let runs = (0..count).map(|_| world.run(&node, json!([{"stepId": "a"}]))).collect();
    world.cluster.kill(&node);
    let mut cluster = world.cluster;
    cluster.config.overload.default.active_runs_max = 10_000;
    let world = World::of(cluster);
    let nodes: Vec<_> = (0..2).map(|_| world.node()).collect();
    for node in &nodes {
        world.cluster.kill(node);
    }
    world.pass(Duration::from_secs(31));
    (world, nodes, runs)
}

/// ES-071
#[test]
fn two_reconcilers_at_once_start_each_run_once() {
    for seed in 0..20 {
        let slow = Arc::new(RandomFaults::new(seed, 10, 0));
        let (world, nodes, runs) = queued(seed, 20, slow);
        let reports: Arc<Mutex<Vec<(RunId, QueueOutcome)>>> = Arc::default();
        for node in &nodes {
            for _ in 0..2 {
                let (engine, owner, reports) =
                    (node.runtime.engine().clone(), node.runtime.owner().to_owned(), reports.clone());
                world.cluster.sim.tasks(node.id).spawn("reconciler", async move {
                    let outcomes = dequeue_and_start(&engine, &owner).await.unwrap();
                    reports.lock().unwrap().extend(outcomes);
                });
            }
        }
        world.pass(Duration::from_secs(60));
        let reports = reports.lock().unwrap();
        for run_id in &runs {
            assert_eq!(world.count(run_id, "RunStarted"), 1, "seed {seed}");
            let started = reports.iter().filter(|(id, outcome)| id == run_id && *outcome == QueueOutcome::Started);
            assert_eq!(started.count(), 1, "seed {seed}");
        }
        assert!(reports.iter().all(|(_, outcome)| *outcome == QueueOutcome::Started));
    }
}

/// ES-071
#[test]
fn the_reconciler_says_what_became_of_each_run() {
    let faults = Arc::new(Scripted::default());
    let (world, nodes, runs) = queued(1, 3, faults.clone());
    let node = &nodes[0];
    let round = || {
        let (engine, owner) = (node.runtime.engine().clone(), node.runtime.owner().to_owned());
        world.block_on(async move { dequeue_and_start(&engine, &owner).await }).unwrap()
    };
    faults.fail("append", Fault::Unavailable);
    let outcomes = round();
    assert_eq!(outcomes.len(), 3);
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == QueueOutcome::Failed));
    faults.heal();
    world.pass(Duration::from_secs(31));
    world.signal(node, &runs[1], "no", SignalKind::Cancel).unwrap();
    let started: BTreeMap<_, _> = round().into_iter().collect();
    let expected = [&runs[0], &runs[2]].map(|run_id| (run_id.clone(), QueueOutcome::Started));
    assert_eq!(started, expected.into_iter().collect());
    assert_eq!(round(), []);
    // At the limit a run is put back.
    let world = World::with(2, |cluster| limited(cluster, OverloadPolicy::Queue, 1));
    let node = world.leader();
    world.start(&node, long()).unwrap();
    let waiting = world.start(&node, long()).unwrap().run_id;
    world.cluster.kill(&node);
    world.pass(Duration::from_secs(31));
    let (engine, owner) = (node.runtime.engine().clone(), node.runtime.owner().to_owned());
    let outcomes = world.block_on(async move { dequeue_and_start(&engine, &owner).await }).unwrap();
    assert_eq!(outcomes, [(waiting, QueueOutcome::Skipped)]);
}

/// ES-072
#[test]
fn a_request_starts_one_run() {
    let world = World::new(7);
    let node = world.leader();
    let named = |id: &str| StartRequest { run_request_id: Some(id.to_owned()), ..plan(json!([{"stepId": "a"}])) };
    let first = world.start(&node, named("r1")).unwrap();
    assert!(first.created);
    world.wait_status(&node, &first.run_id, RunStatus::Completed);
    let again = world.start(&node, named("r1")).unwrap();
    assert_eq!((&again.run_id, again.created), (&first.run_id, false));
    assert_eq!(again.snapshot.status, RunStatus::Completed);
    // Another request under the same name is a mistake.
    let other = StartRequest { approval_required: true, ..named("r1") };
    assert!(matches!(world.start(&node, other), Err(Error::RequestMismatch)));
    // Every part of the key counts.
    let mut elsewhere = named("r1");
    elsewhere.context.environment_id = Name::parse("prod").unwrap();
    assert!(world.start(&node, elsewhere).unwrap().created);
    let mut elsewhere = named("r1");
    elsewhere.context.project_id = Name::parse("other").unwrap();
    assert!(world.start(&node, elsewhere).unwrap().created);
    let elsewhere =
        StartRequest { run_request_id: Some("r1".to_owned()), ..plan_named("plan", "acme", json!([{"stepId": "a"}])) };
    assert!(world.start(&node, elsewhere).unwrap().created);
    assert!(world.start(&node, named("r2")).unwrap().created);
    for bad in ["", "a|b", "a\nb", &"x".repeat(257)] {
        assert!(matches!(world.start(&node, named(bad)), Err(Error::Invalid(_))), "{bad:?}");
    }
}

/// ES-072
#[test]
fn the_same_request_at_once_starts_one_run_and_all_hear_of_it() {
    for seed in 0..5 {
        let slow = Arc::new(RandomFaults::new(seed, 20, 0));
        let world = World::with(seed, |cluster| cluster.faults = slow.clone());
        let (first, second) = (world.leader(), world.node());
        let request = StartRequest { run_request_id: Some("once".to_owned()), ..long() };
        let answers: Arc<Mutex<Vec<Started>>> = Arc::default();
        for number in 0..64 {
            let node = if number % 2 == 0 { &first } else { &second };
            let (engine, answers, request) = (node.runtime.engine().clone(), answers.clone(), request.clone());
            world.cluster.sim.tasks(node.id).spawn("client", async move {
                let answer = engine.start(request).await.unwrap();
                answers.lock().unwrap().push(answer);
            });
        }
        world.wait_until("every start is answered", || answers.lock().unwrap().len() == 64);
        let answers = answers.lock().unwrap();
        assert!(answers.iter().all(|answer| answer.run_id == answers[0].run_id), "seed {seed}");
        assert_eq!(answers.iter().filter(|answer| answer.created).count(), 1, "seed {seed}");
        assert_eq!(world.rows().len(), 1);
        assert_eq!(world.count(&answers[0].run_id, "RunStarted"), 1);
    }
}

/// ES-073
#[test]
fn a_run_whose_starter_died_with_the_lease_is_started_once() {
    let (world, nodes, runs) = queued(3, 1, Arc::new(Scripted::default()));
    let memory = world.cluster.memory.clone();
    let claimed =
        world.block_on(async move { memory.claim_queue(&QueueClaim::new("the-dead", 30_000, 10)).await }).unwrap();
    assert_eq!(claimed.len(), 1);
    let node = world.leader();
    world.pass(Duration::from_secs(10));
    assert_eq!(world.snapshot(&node, &runs[0]).status, RunStatus::Pending, "the lease was not kept");
    world.wait_status(&node, &runs[0], RunStatus::Completed);
    assert_eq!(world.count(&runs[0], "RunStarted"), 1);
    // The dead one comes back and tries what it had in mind.
    let mut late = Order::new(Scope::System, runs[0].clone(), Command::Begin, "engine");
    late.queue_lease = Some("the-dead".to_owned());
    assert!(world.execute(&nodes[1], late).is_err());
    assert_eq!(world.count(&runs[0], "RunStarted"), 1);
}

/// ES-073: killed anywhere between lease and start.
#[test]
fn a_reconciler_killed_anywhere_starts_nothing_twice() {
    for millis in 0..60 {
        let slow = Arc::new(RandomFaults::new(millis, 8, 0));
        let (world, nodes, runs) = queued(millis, 2, slow);
        let node = &nodes[0];
        let (engine, owner) = (node.runtime.engine().clone(), node.runtime.owner().to_owned());
        world.cluster.sim.tasks(node.id).spawn("reconciler", async move {
            let _ = dequeue_and_start(&engine, &owner).await;
        });
        world.pass_ms(millis);
        world.cluster.sim.kill(NodeId(node.id.0));
        let next = world.leader();
        for run_id in &runs {
            world.wait_status(&next, run_id, RunStatus::Completed);
            assert_eq!(world.count(run_id, "RunStarted"), 1, "killed after {millis} ms");
        }
        world.verify();
    }
}

/// ES-072: a start whose answer was lost, and which could not be looked up, is found again by the next try.
#[test]
fn a_start_whose_answer_is_lost_is_one_run() {
    let faults = Arc::new(Scripted::default());
    let world = World::with(9, |cluster| cluster.faults = faults.clone());
    let node = world.leader();
    let fate = |fault| servo_sim::faults::Fate { fault: Some(fault), ..Default::default() };
    faults.next("append", 1, fate(Fault::ExecuteThenUnavailable));
    faults.next("read_run", 3, fate(Fault::Unavailable));
    let started = world.start(&node, long()).unwrap();
    assert!(started.created);
    assert_eq!(started.snapshot.status, RunStatus::Running);
    assert_eq!(world.rows().len(), 1);
    assert_eq!(world.count(&started.run_id, "RunQueued"), 1);
    world.wait_status(&node, &started.run_id, RunStatus::Completed);
}
