//! Plugins see every invocation, operation, attempt and change, in the order in which it happens; what they do with it changes
//! nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration as Time;

use servo_sdk::{
    AttemptInfo, Backoff, BoxError, Clock as _, ContextConfig, DurableContext, DurableError, Duration, InvocationEnd,
    InvocationInfo, InvocationStatus, OperationInfo, OperationStatus, Options, Plugin, StepConfig, StepContext,
    WaitDecision, WaitForCallbackConfig, WaitForConditionConfig, branch,
};

use crate::service::{Fault, World};

#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Begin(InvocationInfo),
    End(InvocationEnd),
    Start(OperationInfo),
    Done(OperationInfo),
    Try(AttemptInfo),
    Tried(AttemptInfo),
    Change(OperationInfo),
}

/// What a plugin does when the hook of this number is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Fails(usize),
    Panics(usize),
}

const HOOKS: usize = 7;

/// Writes everything down beside its own name.
#[derive(Default)]
struct Witness {
    name: &'static str,
    notes: Arc<Mutex<Vec<(&'static str, Seen)>>>,
    trouble: Option<Trouble>,
}

impl Witness {
    fn note(&self, hook: usize, seen: Seen) -> Result<(), BoxError> {
        self.notes.lock().unwrap().push((self.name, seen));
        match self.trouble {
            Some(Trouble::Fails(at)) if at == hook => Err("plugins may fail".into()),
            Some(Trouble::Panics(at)) if at == hook => panic!("plugins may panic"),
            _ => Ok(()),
        }
    }
}

impl Plugin for Witness {
    fn on_invocation_start(&self, info: &InvocationInfo) -> Result<(), BoxError> {
        self.note(0, Seen::Begin(info.clone()))
    }
    fn on_invocation_end(&self, info: &InvocationEnd) -> Result<(), BoxError> {
        self.note(1, Seen::End(info.clone()))
    }
    fn on_operation_start(&self, info: &OperationInfo) -> Result<(), BoxError> {
        self.note(2, Seen::Start(info.clone()))
    }
    fn on_operation_end(&self, info: &OperationInfo) -> Result<(), BoxError> {
        self.note(3, Seen::Done(info.clone()))
    }
    fn on_attempt_start(&self, info: &AttemptInfo) -> Result<(), BoxError> {
        self.note(4, Seen::Try(info.clone()))
    }
    fn on_attempt_end(&self, info: &AttemptInfo) -> Result<(), BoxError> {
        self.note(5, Seen::Tried(info.clone()))
    }
    fn on_operation_change(&self, info: &OperationInfo) -> Result<(), BoxError> {
        self.note(6, Seen::Change(info.clone()))
    }
}

fn named(name: &str) -> Option<StepConfig> {
    let retry = Backoff::fixed(2, Time::from_secs(5));
    Some(StepConfig { name: Some(name.into()), retry_strategy: Some(Box::new(retry)), ..StepConfig::default() })
}

/// Every kind of operation, a retry, and a branch that waits while another works. Counts the bodies that run.
async fn everything(bodies: &AtomicUsize, world: &World, ctx: DurableContext) -> Result<Vec<u64>, DurableError> {
    let body = |value: u64| {
        move |_: StepContext| {
            bodies.fetch_add(1, Ordering::SeqCst);
            Ok(value)
        }
    };
    let mut results = vec![ctx.step(body(1), named("first")).await?];
    let flaky = |step: StepContext| {
        bodies.fetch_add(1, Ordering::SeqCst);
        if step.attempt() == 1 { Err("not yet".into()) } else { Ok(2) }
    };
    results.push(ctx.step(flaky, named("flaky")).await?);
    ctx.wait(Duration::from_seconds(30), Some("pause")).await?;
    let callback = WaitForCallbackConfig { name: Some("approve".into()), ..WaitForCallbackConfig::default() };
    results.push(ctx.wait_for_callback(|_, _: String| Ok(()), Some(callback)).await?);
    results.push(ctx.invoke("double", 4_u64, None).await?);
    let inside = async |child: DurableContext| Ok(child.step(body(5), named("inner")).await?);
    let config = ContextConfig { name: Some("child".into()), ..ContextConfig::default() };
    results.push(ctx.run_in_child_context(inside, Some(config)).await?);
    let twice = WaitForConditionConfig::new(0_u64, |state, _| match state {
        2.. => WaitDecision::Done,
        _ => WaitDecision::Continue(Duration::from_seconds(4)),
    });
    results.push(ctx.wait_for_condition(|state, _| Ok(state + 1), twice.named("condition")).await?);
    let works = async |child: DurableContext| {
        let slow = async |_: StepContext| {
            bodies.fetch_add(1, Ordering::SeqCst);
            world.clock.sleep(Time::from_secs(60)).await;
            Ok(7)
        };
        Ok(child.step(slow, named("works")).await?)
    };
    let waits = async |child: DurableContext| {
        child.wait(Duration::from_seconds(5), Some("beside")).await?;
        Ok(8)
    };
    let both = ctx.parallel(vec![branch(works), branch(waits)], None).await?;
    results.extend(both.get_results()?.into_iter().copied());
    Ok(results)
}

const RESULT: &str = "[1,2,3,8,5,2,7,8]";

fn world() -> World {
    World::new("null").answer("approve create callback id", 100, Ok("3".into())).function("double", 6, Ok("8".into()))
}

struct Told {
    notes: Vec<(&'static str, Seen)>,
    bodies: usize,
}

impl Told {
    /// What one plugin saw.
    fn by(&self, name: &str) -> Vec<Seen> {
        self.notes.iter().filter(|(by, _)| *by == name).map(|(_, seen)| seen.clone()).collect()
    }
}

fn play(world: &World, troubles: [Option<Trouble>; 2]) -> Told {
    let (bodies, notes) = (AtomicUsize::new(0), Arc::default());
    let plugins = ["a", "b"].into_iter().zip(troubles);
    let plugins: Vec<Arc<dyn Plugin>> = plugins
        .map(|(name, trouble)| Arc::new(Witness { name, notes: Arc::clone(&notes), trouble }) as Arc<dyn Plugin>)
        .collect();
    let options = Options { plugins, ..world.options() };
    let report = world.run_with(async |_: (), ctx: DurableContext| everything(&bodies, world, ctx).await, options);
    assert_eq!((report.result.as_deref(), report.status), (Some(RESULT), InvocationStatus::Succeeded));
    let notes = notes.lock().unwrap().clone();
    Told { notes, bodies: bodies.load(Ordering::SeqCst) }
}

/// What each invocation of an execution saw, from its beginning to its end.
fn invocations(seen: &[Seen]) -> Vec<Vec<Seen>> {
    let mut all: Vec<Vec<Seen>> = Vec::new();
    for note in seen {
        match note {
            Seen::Begin(_) => all.push(vec![note.clone()]),
            _ => all.last_mut().expect("an invocation begins before anything else").push(note.clone()),
        }
    }
    all
}

fn label(info: &OperationInfo) -> String {
    info.name.clone().unwrap_or_else(|| info.operation_type.as_str().to_owned())
}

#[test]
fn an_invocation_begins_and_ends_around_everything_else() {
    let told = play(&world(), [None, None]);
    let all = invocations(&told.by("a"));
    assert!(all.len() > 5, "{}", all.len());
    for (number, seen) in all.iter().enumerate() {
        let (Some(Seen::Begin(begin)), Some(Seen::End(end))) = (seen.first(), seen.last()) else { panic!("{seen:?}") };
        assert_eq!(begin.is_first, number == 0);
        let last = number + 1 == all.len();
        let status = if last { InvocationStatus::Succeeded } else { InvocationStatus::Pending };
        assert_eq!((end.status, &end.error), (Some(status), &None));
        let ends = seen.iter().filter(|note| matches!(note, Seen::End(_))).count();
        assert_eq!(ends, 1);
    }
}

/// In each invocation an operation starts once and ends at most once, behind its start. What the record says is told as a
/// replay, and what happens now is not: each outcome is new exactly once.
#[test]
fn an_operation_is_new_once_and_a_replay_ever_after() {
    let told = play(&world(), [None, None]);
    let mut new: BTreeMap<String, usize> = BTreeMap::new();
    let mut replayed: BTreeMap<String, usize> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for seen in invocations(&told.by("a")) {
        let mut open: BTreeMap<String, bool> = BTreeMap::new();
        for note in &seen {
            match note {
                Seen::Start(info) => {
                    let before = open.insert(info.operation_id.clone(), info.is_replay);
                    assert_eq!(before, None, "{} started twice", label(info));
                }
                Seen::Done(info) => {
                    let replays = open.remove(&info.operation_id);
                    assert_eq!(replays, Some(info.is_replay), "{} ended, and had begun as {replays:?}", label(info));
                    assert!(info.status.is_some_and(OperationStatus::is_terminal), "{info:?}");
                    let count = if info.is_replay { &mut replayed } else { &mut new };
                    *count.entry(info.operation_id.clone()).or_default() += 1;
                    *kinds.entry(info.operation_type.as_str()).or_default() += usize::from(!info.is_replay);
                    // An outcome that was once new is a replay only.
                    assert!(info.is_replay || !replayed.contains_key(&info.operation_id), "{info:?}");
                }
                _ => {}
            }
        }
    }
    for (id, count) in &new {
        assert_eq!(*count, 1, "{id}");
    }
    for kind in ["STEP", "WAIT", "CONTEXT"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 0), "no {kind} ended while it was watched: {kinds:?}");
    }
    assert!(replayed.len() > 5, "{replayed:?}");
}

/// Attempts lie inside their operation, come in their order, and are as many as bodies ran.
#[test]
fn attempts_are_those_that_ran() {
    let told = play(&world(), [None, None]);
    let mut running: BTreeMap<String, u32> = BTreeMap::new();
    let mut tries: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut ran = 0;
    for seen in invocations(&told.by("a")) {
        let mut open: Vec<String> = Vec::new();
        for note in &seen {
            match note {
                Seen::Start(info) if !info.is_replay => open.push(info.operation_id.clone()),
                Seen::Done(info) => {
                    assert!(!running.contains_key(&info.operation_id), "ended within an attempt: {info:?}");
                    open.retain(|id| *id != info.operation_id);
                }
                Seen::Try(info) => {
                    assert!(open.contains(&info.operation_id), "{info:?}");
                    assert_eq!(running.insert(info.operation_id.clone(), info.attempt), None);
                    tries.entry(info.name.clone().unwrap_or_default()).or_default().push(info.attempt);
                    let bodies = ["first", "flaky", "inner", "works"];
                    ran += usize::from(info.name.as_deref().is_some_and(|name| bodies.contains(&name)));
                }
                Seen::Tried(info) => {
                    assert_eq!(running.remove(&info.operation_id), Some(info.attempt));
                    let (failed, again) = (info.error.is_some(), info.retry_after_seconds);
                    let first_of_flaky = info.name.as_deref() == Some("flaky") && info.attempt == 1;
                    assert_eq!(failed, first_of_flaky, "{info:?}");
                    assert!(!failed || again == Some(5), "{info:?}");
                }
                _ => {}
            }
        }
        assert!(running.is_empty(), "an attempt outlived its invocation: {running:?}");
    }
    assert_eq!(ran, told.bodies);
    assert_eq!((&tries["flaky"], &tries["condition"], &tries["first"]), (&vec![1, 2], &vec![1, 2], &vec![1]));
}

/// The service's news reach the plugin in the invocation in which they come.
#[test]
fn a_change_is_told_when_the_service_tells_it() {
    let told = play(&world(), [None, None]);
    let changes: Vec<(String, Option<OperationStatus>)> = told
        .by("a")
        .into_iter()
        .filter_map(|note| match note {
            Seen::Change(info) => Some((label(&info), info.status)),
            _ => None,
        })
        .collect();
    let is_told = |name: &str, status| changes.contains(&(name.to_owned(), Some(status)));
    assert!(is_told("approve create callback id", OperationStatus::Started), "{changes:?}");
    assert!(is_told("beside", OperationStatus::Succeeded), "the wait ended while the other branch worked: {changes:?}");
    assert!(!is_told("pause", OperationStatus::Succeeded), "it ended between two invocations: {changes:?}");
}

/// All hooks call the plugins in the order in which they were given.
#[test]
fn plugins_are_called_in_their_order() {
    let told = play(&world(), [None, None]);
    assert!(told.notes.len() > 40);
    for pair in told.notes.chunks(2) {
        assert_eq!((pair[0].0, pair[1].0), ("a", "b"));
        assert_eq!(pair[0].1, pair[1].1);
    }
}

/// Whichever hook fails or panics: the execution goes the same way, and the other plugin sees all of it.
#[test]
fn a_plugin_in_trouble_changes_nothing() {
    let calm = play(&world(), [None, None]);
    for hook in 0..HOOKS {
        for trouble in [Trouble::Fails(hook), Trouble::Panics(hook)] {
            for troubles in [[Some(trouble), None], [None, Some(trouble)]] {
                let told = play(&world(), troubles);
                assert_eq!(told.bodies, calm.bodies, "{troubles:?}");
                assert_eq!(told.notes, calm.notes, "{troubles:?}");
            }
        }
    }
}

/// A body that ran in vain is seen again, and one whose outcome is recorded is not: at every call of a crash.
#[test]
fn a_crash_shows_which_bodies_ran_again() {
    let calm = play(&world(), [None, None]);
    let calls = {
        let world = world();
        play(&world, [None, None]);
        world.attempts()
    };
    let mut repeated = 0;
    for call in 1..=calls {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let told = play(&world().fault(call, fault), [None, None]);
            let seen = told.by("a");
            let bodies = ["first", "flaky", "inner", "works"];
            let is_body = |info: &AttemptInfo| info.name.as_deref().is_some_and(|name| bodies.contains(&name));
            let tries = seen.iter().filter(|note| matches!(note, Seen::Try(info) if is_body(info))).count();
            assert_eq!(tries, told.bodies, "{fault:?} at {call}");
            repeated += told.bodies - calm.bodies;
            // Whoever died told nobody of its end.
            let begun = seen.iter().filter(|note| matches!(note, Seen::Begin(_))).count();
            let ended = seen.iter().filter(|note| matches!(note, Seen::End(_))).count();
            assert_eq!(begun, ended + 1, "{fault:?} at {call}");
        }
    }
    assert!(repeated > 0, "no crash was worth it");
}
