//! Functions that cannot be reached, or not yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_adapter::HandlerFailure;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::ExecutionStatus;
use tokio::sync::Notify;

use super::handler::{Scripted, start, succeeded, wait};

/// DX-093: executions of a handler that is down for hours are all there when it comes back, and say meanwhile what they wait for.
#[test]
fn an_outage_of_hours_costs_no_execution() {
    let (world, functions) = Scripted::world(41);
    let node = world.leader();
    functions.serve(&node);
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    functions.define(&world, "f", move |_| {
        let is_up = up.load(Ordering::Relaxed);
        async move {
            if !is_up {
                return Err(HandlerFailure::unreached("Runtime.ConnectionError", "connection refused"));
            }
            succeeded("1")
        }
    });
    let begun: Vec<_> = (0..3).map(|_| start(&world, &node, "f", None, "{}").unwrap()).collect();
    world.pass(Duration::from_secs(3 * 3_600));
    for run in &begun {
        let blocked = world.snapshot(&node, &run.run_id).blocked_by;
        assert_eq!((blocked.len(), blocked[0].cause.as_str()), (1, "handler"));
        let reason = blocked[0].reason.as_deref().unwrap();
        assert!(
            reason.starts_with("it cannot be reached since ") && reason.ends_with(": connection refused"),
            "{reason}"
        );
        let again = blocked[0].earliest_at.unwrap();
        assert!(again > world.now() && again.since(world.now()) <= Duration::from_secs(300), "{again}");
    }
    is_up.store(true, Ordering::Relaxed);
    let from = world.now();
    for run in &begun {
        assert_eq!(wait(&world, &node, &run.run_id).status, ExecutionStatus::Succeeded);
    }
    assert!(world.now().since(from) <= Duration::from_secs(301), "they are called again soon");
    assert!(functions.invocations() < 3 * 150, "{}", functions.invocations());
    world.verify();
}

/// DX-093: where the handlers themselves know when a worker has the call, the engine's clock does not end it while it waits.
#[test]
fn a_call_that_waits_for_a_worker_does_not_time_out() {
    let (world, functions) = Scripted::world(42);
    let node = world.leader();
    functions.serve(&node);
    let (taken, free) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (notified, done) = (taken.clone(), free.clone());
    let spec = FunctionSpec { invocation_timeout_seconds: 1, ..FunctionSpec::new(Reach::Pull) };
    functions.define_as(&world, "f", &spec, move |_| {
        let (taken, done) = (notified.clone(), done.clone());
        async move {
            taken.notified().await;
            assert!(done.load(Ordering::Relaxed));
            succeeded("1")
        }
    });
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    world.pass(Duration::from_secs(600));
    free.store(true, Ordering::Relaxed);
    taken.notify_one();
    assert_eq!(wait(&world, &node, &begun.run_id).status, ExecutionStatus::Succeeded);
    assert_eq!(functions.invocations(), 1);
}
