//! New runs that do not go through the backlog, because nothing waits there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use servo_model::contract::DispatchState;
use servo_model::execution::HANDLER;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::ExecutionStatus;
use servo_model::{RunId, StepId};
use servo_runtime::executions::{Resolved, StartFunction};
use servo_sim::Node;
use servo_sim::faults::{Call, Fate, Fault, FaultPlan, NthFails};
use servo_store::dispatch::DispatchStep;
use tokio::sync::watch;

use super::handler::{Scripted, start, succeeded, tenant, wait};
use crate::world::World;

/// The types of a run's events so far.
fn types(world: &World, run: &RunId) -> Vec<String> {
    world.log().into_iter().filter(|event| event.run_id == *run).map(|event| event.event_type.into_owned()).collect()
}

fn dispatch_state(world: &World, run: &RunId) -> DispatchState {
    let step = DispatchStep { step_id: StepId::parse(HANDLER).unwrap(), logical_attempt: 1 };
    let (store, request_id) = (world.store(), step.request_id(run));
    world.block_on(async move { store.get_dispatch(&request_id).await }).unwrap().unwrap().state
}

/// A function whose handlers run until they may end.
fn held(world: &World, functions: &Scripted, spec: &FunctionSpec) -> watch::Sender<bool> {
    let (may_end, asked) = watch::channel(false);
    functions.define_as(world, "f", spec, move |_| {
        let mut may_end = asked.clone();
        async move {
            may_end.wait_for(|may_end| *may_end).await.unwrap();
            succeeded("1")
        }
    });
    may_end
}

/// Who recorded a run's start: the node that also began it, or the engine that left it to its turn.
fn is_direct(world: &World, run: &RunId) -> bool {
    let first = world.log().into_iter().find(|event| event.run_id == *run).unwrap();
    &*first.emitted_by != "engine"
}

fn quiet(seed: u64, slots: usize) -> (World, Scripted, Node) {
    let functions = Scripted::default();
    let world = World::with(seed, |cluster| {
        cluster.handlers = Arc::new(functions.clone());
        cluster.config.dispatch.in_flight_max = slots;
    });
    let node = world.leader();
    functions.serve(&node);
    // The dispatcher has looked, and has found nothing.
    world.pass(Duration::from_secs(1));
    (world, functions, node)
}

fn call(function: Resolved, synchronous: bool) -> StartFunction {
    StartFunction {
        tenant: tenant(),
        subject: "test".to_owned(),
        function,
        name: None,
        input: None,
        tenant_id: None,
        client_context: None,
        trace: None,
        synchronous,
    }
}

const STARTED: [&str; 5] = ["RunQueued", "ExecutionStarted", "RunApproved", "RunStarted", "HandlerInvoked"];

#[test]
fn a_start_on_a_quiet_node_records_its_first_invocation_with_it() {
    let (world, functions, node) = quiet(41, 4);
    let end = held(&world, &functions, &FunctionSpec::new(Reach::InProcess));
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    assert_eq!(types(&world, &begun.run_id), STARTED);
    assert!(is_direct(&world, &begun.run_id));
    assert_eq!(dispatch_state(&world, &begun.run_id), DispatchState::Notified);
    end.send_replace(true);
    assert_eq!(wait(&world, &node, &begun.run_id).status, ExecutionStatus::Succeeded);
    assert_eq!(functions.invocations(), 1);
}

#[test]
fn without_a_slot_a_run_takes_its_turn_and_overtakes_nobody() {
    let (world, functions, node) = quiet(42, 1);
    let end = held(&world, &functions, &FunctionSpec::new(Reach::InProcess));
    let runs: Vec<_> = (0..3)
        .map(|_| {
            world.pass_ms(2);
            start(&world, &node, "f", None, "{}").unwrap().run_id
        })
        .collect();
    assert_eq!(types(&world, &runs[0]), STARTED);
    for run in &runs[1..] {
        assert_eq!(types(&world, run), STARTED[..4], "it waits");
        assert_eq!(dispatch_state(&world, run), DispatchState::Pending);
    }
    end.send_replace(true);
    for run in &runs {
        wait(&world, &node, run);
    }
    let invoked: Vec<_> = world.log().into_iter().filter(|event| event.event_type == "HandlerInvoked").collect();
    assert_eq!(invoked.iter().map(|event| &event.run_id).collect::<Vec<_>>(), runs.iter().collect::<Vec<_>>());
}

#[test]
fn a_function_that_may_have_only_so_many_is_begun_at_once_while_nobody_waits_for_it() {
    let (world, functions, node) = quiet(43, 4);
    let spec = FunctionSpec { max_concurrent: Some(1), ..FunctionSpec::new(Reach::InProcess) };
    let end = held(&world, &functions, &spec);
    let runs: Vec<_> = (0..3)
        .map(|_| {
            world.pass_ms(2);
            start(&world, &node, "f", None, "{}").unwrap().run_id
        })
        .collect();
    assert!(is_direct(&world, &runs[0]));
    for run in &runs[1..] {
        assert_eq!(types(&world, run), STARTED[..4], "one runs, and it waits");
    }
    world.pass(Duration::from_secs(1));
    assert_eq!(functions.invocations(), 1);
    end.send_replace(true);
    for run in &runs {
        assert_eq!(wait(&world, &node, run).status, ExecutionStatus::Succeeded);
        assert_eq!(is_direct(&world, run), *run == runs[0]);
    }
    let invoked: Vec<_> = world.log().into_iter().filter(|event| event.event_type == "HandlerInvoked").collect();
    assert_eq!(invoked.iter().map(|event| &event.run_id).collect::<Vec<_>>(), runs.iter().collect::<Vec<_>>());
    world.pass(Duration::from_secs(1));
    let last = start(&world, &node, "f", None, "{}").unwrap();
    assert!(is_direct(&world, &last.run_id), "nobody waits any more");
}

#[test]
fn a_node_without_the_authority_leaves_it_to_the_one_that_has_it() {
    let (world, functions, node) = quiet(44, 4);
    let end = held(&world, &functions, &FunctionSpec::new(Reach::InProcess));
    end.send_replace(true);
    let other = world.node();
    world.pass(Duration::from_secs(1));
    let begun = start(&world, &other, "f", None, "{}").unwrap();
    assert!(!is_direct(&world, &begun.run_id));
    assert_eq!(wait(&world, &node, &begun.run_id).status, ExecutionStatus::Succeeded);
    assert_eq!(functions.invocations(), 1);
}

/// R15: what was begun with its start is found by the next node like any other.
#[test]
fn after_a_crash_the_next_node_invokes_the_handler_again() {
    let (world, functions, node) = quiet(45, 4);
    let end = held(&world, &functions, &FunctionSpec::new(Reach::InProcess));
    let begun = start(&world, &node, "f", None, "{}").unwrap();
    world.wait_until("it runs", || functions.invocations() == 1);
    assert!(is_direct(&world, &begun.run_id));
    world.cluster.kill(&node);
    end.send_replace(true);
    let next = world.leader();
    functions.serve(&next);
    assert_eq!(wait(&world, &next, &begun.run_id).status, ExecutionStatus::Succeeded);
    assert_eq!(functions.invocations(), 2);
}

/// An append that is done without an answer, and a silence of so many calls behind it.
#[derive(Debug)]
struct Silence {
    calls: AtomicU64,
    armed: AtomicBool,
}

impl FaultPlan for Silence {
    fn fate(&self, call: Call) -> Fate {
        let fault = if call.name == "append" && self.armed.swap(false, Ordering::SeqCst) {
            Some(Fault::ExecuteThenUnavailable)
        } else {
            let left = self.calls.load(Ordering::SeqCst);
            let silent = !self.armed.load(Ordering::SeqCst) && left > 0 && left < u64::MAX;
            silent.then(|| {
                self.calls.fetch_sub(1, Ordering::SeqCst);
                Fault::Unavailable
            })
        };
        Fate { fault, ..Fate::default() }
    }
}

/// Starts an execution while the store fails, lets it heal, and looks at what is left.
fn starts_once(faults: Arc<dyn FaultPlan>, begin: impl FnOnce(), heal: impl FnOnce(), what: &str) {
    let functions = Scripted::default();
    let world = World::with(46, |cluster| {
        cluster.handlers = Arc::new(functions.clone());
        cluster.faults = faults;
    });
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |_| async { succeeded("1") });
    world.pass(Duration::from_secs(1));
    begin();
    let begun = start(&world, &node, "f", Some("once"), "{}");
    heal();
    world.pass(Duration::from_secs(120));
    let recorded: Vec<_> = world.log().into_iter().filter(|event| event.event_type == "RunQueued").collect();
    assert!(recorded.len() <= 1, "{what}: one name, one run");
    if let Ok(begun) = &begun {
        assert_eq!(recorded[0].run_id, begun.run_id, "{what}");
    }
    for event in recorded {
        let types = types(&world, &event.run_id);
        assert_eq!(types.last().map(String::as_str), Some("RunCompleted"), "{what}: {types:?}");
    }
}

/// R13: whatever becomes of the append's answer, and of those that look for it, every run that is recorded is run and ends.
#[test]
fn no_run_is_left_behind_when_the_store_does_not_answer() {
    for fault in [Fault::Unavailable, Fault::ExecuteThenUnavailable, Fault::UnavailableThenExecute, Fault::Full] {
        for length in [1, 2, 3, 8] {
            let faults = Arc::new(NthFails::new(fault, u64::MAX, length));
            let (begin, heal) = (|| faults.begin(), || faults.heal());
            starts_once(faults.clone(), begin, heal, &format!("{fault:?} {length}"));
            assert!(faults.has_fired());
        }
    }
    for calls in 1..=12 {
        let faults = Arc::new(Silence { calls: AtomicU64::new(u64::MAX), armed: AtomicBool::new(false) });
        let begin = || {
            faults.calls.store(calls, Ordering::SeqCst);
            faults.armed.store(true, Ordering::SeqCst);
        };
        let heal = || faults.calls.store(0, Ordering::SeqCst);
        starts_once(faults.clone(), begin, heal, &format!("silence of {calls}"));
    }
}

/// R13: a caller may go away at any moment of the start. What is recorded by then, or later, is run.
#[test]
fn a_caller_who_goes_away_leaves_no_run_behind() {
    let mut recorded = 0;
    for polls in 1..=12 {
        let (world, functions, node) = quiet(47 + polls, 4);
        functions.define(&world, "f", |_| async { succeeded("1") });
        let executions = node.runtime.executions().clone();
        let epoch = node.runtime.fence();
        world.block_on(async move {
            let function = executions.resolve(&tenant(), "f", None).await.unwrap();
            let call = call(function, false);
            let mut start = std::pin::pin!(executions.start(call));
            let mut left = polls;
            std::future::poll_fn(|cx| {
                left -= 1;
                if start.as_mut().poll(cx).is_ready() || left == 0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        });
        world.pass(Duration::from_secs(60));
        let log = world.log();
        recorded += log.iter().filter(|event| event.event_type == "RunQueued").count();
        let ended = log.iter().filter(|event| event.event_type == "RunCompleted").count();
        assert_eq!(node.runtime.fence(), epoch, "{polls} polls: nothing was in doubt");
        assert_eq!(ended, log.iter().filter(|event| event.event_type == "RunQueued").count(), "{polls} polls");
    }
    assert!(recorded > 6, "only {recorded} were recorded");
}

/// Only what a caller waits for is in front, whether it begins at once or takes its turn.
#[test]
fn what_nobody_waits_for_is_done_behind() {
    let (world, functions, node) = quiet(47, 1);
    let end = held(&world, &functions, &FunctionSpec::new(Reach::InProcess));
    let start = |synchronous: bool| {
        let executions = node.runtime.executions().clone();
        let begun = world.block_on(async move {
            let function = executions.resolve(&tenant(), "f", None).await?;
            let call = call(function, synchronous);
            executions.start(call).await
        });
        begun.unwrap().run_id
    };
    let behind = || world.cluster.sim.spawned_behind(node.id);
    let (before, awaited) = (behind(), start(true));
    assert!(is_direct(&world, &awaited));
    // The one slot is taken: these two wait for it.
    let (second, accepted) = (start(true), start(false));
    assert!(!is_direct(&world, &second) && !is_direct(&world, &accepted));
    assert_eq!(behind(), before);
    end.send_replace(true);
    for run in [&awaited, &second] {
        assert_eq!(wait(&world, &node, run).status, ExecutionStatus::Succeeded);
    }
    // Whoever listened for it would be a caller who waits.
    world.wait_status(&node, &accepted, servo_model::RunStatus::Completed);
    assert_eq!(behind(), before + 1);
    world.pass(Duration::from_secs(1));
    let direct = start(false);
    assert!(is_direct(&world, &direct));
    world.wait_status(&node, &direct, servo_model::RunStatus::Completed);
    assert_eq!(behind(), before + 2);
}

/// A store that takes the same time for every call.
struct Even;

impl FaultPlan for Even {
    fn fate(&self, _: Call) -> Fate {
        Fate { before_ms: 4, ..Fate::default() }
    }
}

/// How many of 1280 accepted calls have begun when the last of 64 callers was answered, if what nobody waits for waits so long
/// for a thread.
fn begun_beside_callers(lag: Duration) -> usize {
    let functions = Scripted::default();
    let world = World::with(53, |cluster| {
        cluster.handlers = Arc::new(functions.clone());
        cluster.faults = Arc::new(Even);
        cluster.config.dispatch.in_flight_max = 128;
    });
    let node = world.leader();
    functions.serve(&node);
    functions.define(&world, "f", |_| async { succeeded("1") });
    world.cluster.sim.delay_behind(lag);
    let answered = Arc::new(AtomicU64::new(0));
    for _ in 0..64 {
        let (executions, answered) = (node.runtime.executions().clone(), answered.clone());
        world.cluster.sim.tasks(node.id).spawn("client", async move {
            let function = executions.resolve(&tenant(), "f", None).await.unwrap();
            for _ in 0..20 {
                executions.start(call(function.clone(), false)).await.unwrap();
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    world.wait_until("all are answered", || answered.load(Ordering::SeqCst) == 1280);
    let begun = world.log().iter().filter(|event| event.event_type == "HandlerInvoked").count();
    world.wait_until("all have run", || {
        world.log().iter().filter(|event| event.event_type == "RunCompleted").count() == 1280
    });
    begun
}

/// Where the processor is short, callers are answered before what was accepted is run; where it is not, nothing waits for them.
#[test]
fn what_nobody_waits_for_gives_way_to_callers() {
    let (short, soon) = (begun_beside_callers(Duration::from_millis(2)), begun_beside_callers(Duration::ZERO));
    assert!(short * 2 < soon, "{short} have begun, and {soon} where the processor is not short");
}
