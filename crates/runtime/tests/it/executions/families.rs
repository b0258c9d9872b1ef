//! Runs that start runs: how far that goes, and that what was started ends with what has started it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use servo_machine::SignalKind;
use servo_model::operation::{
    ExecutionStatus, OperationAction as A, OperationStatus, OperationType as T, OperationUpdate,
};
use servo_model::{AliasName, FunctionName, RunId, RunStatus};
use servo_runtime::config::TenantFamilies;
use servo_sim::{Cluster, Node};
use servo_store::Scope;

use super::chained::invoke;
use super::handler::{Scripted, pending, start, succeeded, tenant, wait};
use crate::world::{World, signal};

fn world(seed: u64, set: impl FnOnce(&mut Cluster)) -> (World, Scripted) {
    let scripted = Scripted::default();
    let world = World::with(seed, |cluster| {
        cluster.handlers = Arc::new(scripted.clone());
        set(cluster);
    });
    (world, scripted)
}

fn waits(id: &str) -> OperationUpdate {
    let mut update = OperationUpdate::new(id, T::Wait, A::Start);
    update.wait_options = Some(servo_model::operation::WaitOptions { wait_seconds: Some(100_000) });
    update
}

/// Runs of functions that have not ended.
fn open(world: &World) -> Vec<RunId> {
    let rows = world.rows().into_iter().filter(|row| !row.status.is_terminal() && !row.run_id.is_system());
    rows.map(|row| row.run_id).collect()
}

fn cancel(world: &World, node: &Node, run: &RunId) {
    world.signal(node, run, "cancel", SignalKind::Cancel).unwrap();
}

/// Starts another and gives back what came of it: the name of its error, or what it has given back itself.
fn define_chain(world: &World, functions: &Scripted, name: &str, target: &'static str) {
    functions.define(world, name, move |invocation| async move {
        if invocation.known("i").is_none() {
            let answer = invocation.checkpoint(vec![invoke("i", target, "1")]).await.unwrap();
            let operation = &answer.new_execution_state.operations[0];
            if operation.status == OperationStatus::Started {
                return pending();
            }
            let error = operation.chained_invoke_details.as_ref().unwrap().error.clone().unwrap();
            return succeeded(&format!("\"{}\"", error.error_type.unwrap()));
        }
        let operations = &invocation.input.initial_execution_state.operations;
        succeeded(operations[1].chained_invoke_details.as_ref().unwrap().result.as_deref().unwrap())
    });
}

/// However it comes back to itself: directly, by way of another, or by an alias.
#[test]
fn a_function_that_starts_itself_comes_to_the_last_level() {
    for (seed, a, b) in [(61, "a", "a"), (62, "b", "a"), (63, "a:live", "a:live"), (64, "a:1", "b:$LATEST")] {
        let (world, functions) = Scripted::world(seed);
        let node = world.leader();
        functions.serve(&node);
        define_chain(&world, &functions, "a", a);
        define_chain(&world, &functions, "b", b);
        let (store, name) = (world.store(), FunctionName::parse("a").unwrap());
        let alias = AliasName::parse("live").unwrap();
        world.block_on(async move { store.put_alias(&tenant(), &name, &alias, 1).await }).unwrap();
        let begun = start(&world, &node, "a", None, "{}").unwrap();
        let ended = wait(&world, &node, &begun.run_id);
        assert_eq!(ended.result.as_deref(), Some("\"RecursiveInvocationException\""), "{a}, {b}");
        let rows: Vec<_> = world.rows().into_iter().filter(|row| !row.run_id.is_system()).collect();
        assert_eq!(rows.len(), 16, "{a}, {b}");
        let below = rows.iter().filter(|row| row.root.as_ref() == Some(&begun.run_id)).count();
        assert_eq!((below, rows.iter().filter(|row| row.root.is_none()).count()), (15, 1));
        world.verify();
    }
}

#[test]
fn a_tenant_may_have_fewer_levels_and_not_more() {
    for (seed, own, expected) in [(65, 3, 3), (66, 30, 16)] {
        let (world, functions) = world(seed, |cluster| {
            let own = TenantFamilies { levels_max: Some(own), open_max: None };
            cluster.config.families.tenants.insert(tenant(), own);
        });
        let node = world.leader();
        functions.serve(&node);
        define_chain(&world, &functions, "a", "a");
        wait(&world, &node, &start(&world, &node, "a", None, "{}").unwrap().run_id);
        assert_eq!(world.rows().iter().filter(|row| !row.run_id.is_system()).count(), expected);
    }
}

/// Each run starts four of itself and waits, as do those. Without a bound it ends all the same, with some hundred.
fn fork(seed: u64, set: impl FnOnce(&mut Cluster)) -> (World, Scripted, Node, RunId) {
    let (world, functions) = world(seed, |cluster| {
        cluster.config.families.open_max = 10;
        set(cluster);
    });
    let node = world.leader();
    functions.serve(&node);
    let left = Arc::new(AtomicUsize::new(60));
    functions.define(&world, "fork", move |invocation| {
        let left = left.clone();
        async move {
            if invocation.known("w").is_none()
                && left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
            {
                let ids = ["i0", "i1", "i2", "i3"];
                let updates = ids.iter().map(|id| invoke(id, "fork", "1")).chain([waits("w")]).collect();
                let answer = invocation.checkpoint(updates).await.unwrap();
                // In the order in which the program asked: those that were let in come first.
                let status = |id: &str| {
                    let operations = &answer.new_execution_state.operations;
                    operations.iter().find(|operation| operation.id == id).unwrap().status
                };
                let begun: Vec<bool> = ids.iter().map(|id| status(id) == OperationStatus::Started).collect();
                assert!(begun.is_sorted_by(|a, b| a >= b), "{begun:?}");
            }
            pending()
        }
    });
    let begun = start(&world, &node, "fork", None, "{}").unwrap();
    world.pass(Duration::from_secs(30));
    (world, functions, node, begun.run_id)
}

#[test]
fn no_more_runs_are_open_below_a_root_than_may_be() {
    for seed in 70..76 {
        let (world, _, node, root) = fork(seed, |_| {});
        assert_eq!(open(&world).len(), 11, "the root, and ten below it");
        world.pass(Duration::from_secs(600));
        assert_eq!(open(&world).len(), 11);
        // Below another root there is room; and what has ended leaves room.
        let other = start(&world, &node, "fork", None, "{}").unwrap();
        world.pass(Duration::from_secs(30));
        assert_eq!(open(&world).len(), 22);
        cancel(&world, &node, &other.run_id);
        world.wait_until("the other family is gone", || open(&world).len() == 11);
        let below = open(&world).into_iter().find(|run| *run != root).unwrap();
        cancel(&world, &node, &below);
        world.verify();
    }
}

#[cfg(feature = "sabotage")]
#[test]
fn without_a_bound_there_are_more() {
    let (world, ..) = fork(76, |cluster| {
        cluster.config.sabotage = Some("endless-families".to_owned());
    });
    assert!(open(&world).len() > 11);
}

/// Also what is refused counts as done once it is recorded: the same call again gets the same answer and no place.
#[test]
fn cancelling_a_root_ends_everything_below_it() {
    for seed in 80..84 {
        let (world, functions, node, root) = fork(seed, |_| {});
        cancel(&world, &node, &root);
        world.wait_until("all of them have ended", || open(&world).is_empty());
        let (calls, runs) = (functions.invocations(), world.rows().len());
        world.pass(Duration::from_secs(3_600));
        assert_eq!((functions.invocations(), world.rows().len()), (calls, runs), "nothing begins afterwards");
        let rows = world.rows();
        let below = rows.iter().filter(|row| row.root.as_ref() == Some(&root));
        assert!(below.into_iter().all(|row| row.status == RunStatus::Cancelled));
        world.verify();
    }
}

#[cfg(feature = "sabotage")]
#[test]
fn a_root_that_leaves_what_it_has_started_is_noticed() {
    let (world, _, node, root) = fork(84, |cluster| cluster.config.sabotage = Some("keep-descendants".to_owned()));
    cancel(&world, &node, &root);
    world.pass(Duration::from_secs(600));
    assert_eq!(open(&world).len(), 10);
}

/// The node that recorded the cancel is gone at once, before it has ended anything: another one finds the dispatch.
#[test]
fn what_was_started_ends_after_a_crash_and_on_another_node() {
    for seed in 90..96 {
        let (world, functions, node, root) = fork(seed, |_| {});
        let engine = node.runtime.engine().clone();
        let order = signal(Scope::System, &root, "cancel", SignalKind::Cancel);
        world.block_on(async move { engine.execute(order).await }).unwrap();
        world.cluster.kill(&node);
        let next = world.leader();
        functions.serve(&next);
        world.wait_until("all of them have ended", || open(&world).is_empty());
        world.pass(Duration::from_secs(600));
        assert!(open(&world).is_empty());
        world.verify();
    }
}

/// A cancel by a node that is not the scheduler, with its store cut off at once, is the scheduler's to follow.
#[test]
fn a_cancel_of_any_node_reaches_them() {
    let (world, _, _, root) = fork(97, |_| {});
    let other = world.node();
    let engine = other.runtime.engine().clone();
    let order = signal(Scope::System, &root, "cancel", SignalKind::Cancel);
    world.block_on(async move { engine.execute(order).await }).unwrap();
    world.cluster.kill(&other);
    world.wait_until("all of them have ended", || open(&world).is_empty());
}

/// A run starts one that starts another and ends without waiting for it. What ends by itself takes nothing with it; what is
/// cancelled takes also what its children have left.
#[test]
fn runs_that_nobody_waits_for_are_reached_too() {
    let (world, functions) = Scripted::world(98);
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "last", |invocation| async move {
        if invocation.known("w").is_none() {
            invocation.checkpoint(vec![waits("w")]).await.unwrap();
        }
        pending()
    });
    functions.define(&world, "middle", |invocation| async move {
        if invocation.known("i").is_none() {
            invocation.checkpoint(vec![invoke("i", "last", "1")]).await.unwrap();
        }
        succeeded("1")
    });
    functions.define(&world, "first", |invocation| async move {
        if invocation.known("i").is_none() {
            invocation.checkpoint(vec![invoke("i", "middle", "1"), waits("w")]).await.unwrap();
        }
        pending()
    });
    let begun = start(&world, &node, "first", None, "{}").unwrap();
    let ended = |function: &str, status: RunStatus| {
        world.rows().iter().any(|row| *row.plan_id == *function && row.status == status)
    };
    world.wait_until("the middle one has ended", || ended("middle", RunStatus::Completed));
    world.pass(Duration::from_secs(60));
    assert!(ended("last", RunStatus::Running), "it goes on");
    cancel(&world, &node, &begun.run_id);
    world.wait_until("the last one has ended", || ended("last", RunStatus::Cancelled));
    assert!(ended("middle", RunStatus::Completed), "what had ended stays as it was");
}

/// Only what is below the run that is cancelled ends with it.
#[test]
fn what_is_beside_a_cancelled_run_goes_on() {
    let (world, _, node, root) = fork(99, |cluster| cluster.config.families.open_max = 40);
    let lineage = |run: &RunId| {
        let (engine, run) = (node.runtime.engine().clone(), run.clone());
        let ancestors = |state: &servo_model::RunState| state.lineage().map(|lineage| lineage.ancestors.clone());
        world.block_on(async move { engine.view(&Scope::System, &run, ancestors).await }).unwrap().unwrap_or_default()
    };
    let all = open(&world);
    let child = all.iter().find(|run| lineage(run) == [root.clone()]).unwrap().clone();
    let (below, beside): (Vec<_>, Vec<_>) =
        all.iter().filter(|run| **run != child).cloned().partition(|run| lineage(run).contains(&child));
    assert!(!below.is_empty() && !beside.is_empty());
    cancel(&world, &node, &child);
    world.wait_until("those below it have ended", || below.iter().all(|run| !open(&world).contains(run)));
    world.pass(Duration::from_secs(600));
    let still = open(&world);
    assert!(beside.iter().all(|run| still.contains(run)), "{beside:?} of {still:?}");
}

/// A run that takes too long is cut off as one that is cancelled; one that fails by itself is not.
#[test]
fn a_run_out_of_time_takes_what_it_has_started_with_it() {
    for (seed, fails) in [(100, false), (101, true)] {
        let (world, functions) = Scripted::world(seed);
        let node = world.leader();
        functions.serve(&node);
        functions.define(&world, "child", |invocation| async move {
            if invocation.known("w").is_none() {
                invocation.checkpoint(vec![waits("w")]).await.unwrap();
            }
            pending()
        });
        let spec = servo_model::function::FunctionSpec {
            execution_timeout_seconds: 60,
            ..servo_model::function::FunctionSpec::new(servo_model::function::Reach::InProcess)
        };
        functions.define_as(&world, "parent", &spec, move |invocation| async move {
            if invocation.known("i").is_none() {
                invocation.checkpoint(vec![invoke("i", "child", "1")]).await.unwrap();
            }
            if fails { Ok(r#"{"Status":"FAILED","Error":{}}"#.to_owned()) } else { pending() }
        });
        let begun = start(&world, &node, "parent", None, "{}").unwrap();
        let ended = wait(&world, &node, &begun.run_id);
        world.pass(Duration::from_secs(60));
        let expected = if fails { (ExecutionStatus::Failed, 1) } else { (ExecutionStatus::TimedOut, 0) };
        assert_eq!((ended.status, open(&world).len()), expected);
    }
}
