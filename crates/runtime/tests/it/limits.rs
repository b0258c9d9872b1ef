//! R23: the limits as they come, at one byte or event less, at the limit and at one more. What is over it is refused before
//! anything is written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use servo_entrypoint::{InvocationMode, InvocationRequest, InvocationStatus as S, TimelineEventType, errors};
use servo_model::alert::AlertCode;
use servo_model::limits::Limits;
use servo_model::operation::OperationAction as A;
use servo_model::{RunStatus, StepStatus};
use servo_sim::Cluster;
use servo_sim::faults::{Call, Fate, FaultPlan};
use servo_store::mem::MemStore;
use servo_store::testkit::fixtures::{add, fresh_event, payload, run_id, start_append, tenant};
use servo_store::{Append, Error, Expected, LogStore as _, NewEvent, Position};

use crate::executions::handler::{pending, step, succeeded};
use crate::serverless::support::{Bed, awaits, me, request};
use crate::world::World;

const PAYLOAD: usize = 6 * 1024 * 1024;
const TRANSACTION: usize = 16 * 1024 * 1024;
const EVENTS: u64 = 250_000;

/// Decision 37.
#[test]
fn these_are_the_defaults() {
    let Limits { events_per_run_max, payload_bytes_max, transaction_bytes_max, .. } = Limits::default();
    assert_eq!((events_per_run_max, payload_bytes_max, transaction_bytes_max), (EVENTS, PAYLOAD, TRANSACTION));
    let config = servo_runtime::RuntimeConfig::default();
    assert_eq!((config.limits, config.policy.events_per_run_max), (Limits::default(), EVENTS));
}

/// Counts what is written, by the name of the call.
#[derive(Default)]
struct Writes(Mutex<BTreeMap<&'static str, u64>>);

impl FaultPlan for Writes {
    fn fate(&self, call: Call) -> Fate {
        if call.writes {
            *self.0.lock().unwrap().entry(call.name).or_default() += 1;
        }
        Fate::default()
    }
}

impl Writes {
    fn bed(seed: u64) -> (Bed, Arc<Self>) {
        let writes = Arc::new(Self::default());
        let plan = writes.clone();
        (Bed::of(seed, |cluster| cluster.faults = plan), writes)
    }

    fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap().clone()
    }
}

/// How many events of runs there are. Pages have a size, so that one of them does not tell.
fn events(world: &World) -> usize {
    let memory = world.cluster.memory.clone();
    world.block_on(async move {
        let (mut after, mut count) = (Position::START, 0);
        loop {
            let page = memory.read_log(after, 1_000).await.unwrap();
            if page.events.is_empty() {
                return count;
            }
            count += page.events.iter().filter(|event| !event.run_id.is_system()).count();
            after = page.next;
        }
    })
}

/// An object that takes so many bytes as JSON. Quotes take twice their bytes where an event holds them as text.
fn object(bytes: usize, fill: &str) -> Value {
    let each = serde_json::to_string(fill).unwrap().len() - 2;
    let room = bytes - r#"{"a":""}"#.len();
    let object = json!({"a": fill.repeat(room / each) + &"x".repeat(room % each)});
    assert_eq!(object.to_string().len(), bytes);
    object
}

const FILLS: [&str; 2] = ["x", "\""];

/// R23: params at the limit are taken, whatever they hold and whether the caller waits; of larger ones nothing is written.
#[test]
fn params_at_the_default_limit() {
    let (bed, writes) = Writes::bed(230);
    let address = bed.function("f", |call| async move { Ok(json!({"had": call.call.payload.len()}).to_string()) });
    for (mode, fill) in [(InvocationMode::Async, "x"), (InvocationMode::Async, "\""), (InvocationMode::Sync, "\"")] {
        let start = |bytes| {
            let request = request(&address, object(bytes, fill));
            bed.start_as(&me(), InvocationRequest { mode: Some(mode), ..request })
        };
        for bytes in [PAYLOAD - 1, PAYLOAD] {
            let id = start(bytes).unwrap().record.invocation_id;
            assert_eq!(bed.until(&id, S::Succeeded).result, Some(json!({"had": bytes})), "{mode:?} {fill:?}");
        }
        bed.world.pass(Duration::from_secs(5));
        let (before, rows, kept) = (writes.counts(), bed.world.rows().len(), events(&bed.world));
        let refused = start(PAYLOAD + 1).unwrap_err();
        assert_eq!(refused.error_type_id, errors::VALIDATION);
        assert_eq!(refused.details["issues"][0]["error_type"], "limit_exceeded");
        assert_eq!(writes.counts(), before, "nothing is written");
        assert!(before["append"] > 0, "it would have been counted: {before:?}");
        bed.world.pass(Duration::from_secs(5));
        assert_eq!((bed.world.rows().len(), events(&bed.world)), (rows, kept), "and nothing comes of it later");
    }
}

/// R23: a result at the limit is kept whole, also beside params as large. A larger one fails the run once and for all.
#[test]
fn results_at_the_default_limit() {
    let bed = Bed::new(231);
    let table = [(InvocationMode::Async, "x"), (InvocationMode::Async, "\""), (InvocationMode::Sync, "\"")];
    for (number, (mode, fill)) in table.into_iter().enumerate() {
        for bytes in [PAYLOAD - 1, PAYLOAD, PAYLOAD + 1] {
            let result = object(bytes, fill);
            let text = result.to_string();
            let address = bed.function(&format!("f{number}{}", bytes % 3), move |_| {
                let text = text.clone();
                async move { Ok(text) }
            });
            let called = bed.functions.invocations();
            let params = if bytes == PAYLOAD { object(PAYLOAD, fill) } else { json!({}) };
            let request = InvocationRequest { mode: Some(mode), ..request(&address, params) };
            let started = bed.start_as(&me(), request).unwrap();
            let is_over = bytes > PAYLOAD;
            let record = bed.until(&started.record.invocation_id, if is_over { S::Failed } else { S::Succeeded });
            assert!(record.result == (!is_over).then_some(result), "{mode:?} {fill:?} {bytes}");
            let said = record.error.map(|error| error.message);
            let message = format!("Execution output payload size must be less than or equal to {PAYLOAD} bytes.");
            assert_eq!(said, is_over.then_some(message), "{mode:?} {fill:?} {bytes}");
            assert_eq!(bed.functions.invocations(), called + 1, "it is not tried again");
        }
    }
}

/// What one operation of a checkpoint holds, as the published API has it.
const OPERATION: usize = 1024 * 1024;

/// R23: a payload over the limit of an operation refuses its checkpoint, which leaves nothing, and the handler goes on.
#[test]
fn checkpoints_at_the_default_limit() {
    let (bed, writes) = Writes::bed(232);
    let (told, counted) = (Arc::new(Mutex::new(Vec::new())), writes.clone());
    let noted = told.clone();
    let address = bed.workflow("f", move |invocation| {
        let (told, writes) = (noted.clone(), counted.clone());
        async move {
            for (number, (fill, more)) in
                FILLS.into_iter().flat_map(|fill| (0..3).map(move |more| (fill, more))).enumerate()
            {
                let id = format!("s{number}");
                let mut done = step(&id, A::Succeed);
                done.payload = Some(fill.repeat(OPERATION - 1 + more));
                let before = writes.counts().get("append").copied();
                let answer = invocation.checkpoint(vec![step(&id, A::Start), done]).await;
                let written = writes.counts().get("append").copied() != before;
                told.lock().unwrap().push((answer.map_err(|refused| refused.message).err(), written));
            }
            succeeded("{}")
        }
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Succeeded);
    let message = format!("STEP output payload size must be less than or equal to {OPERATION} bytes.");
    let three = [(None, true), (None, true), (Some(message), false)];
    assert_eq!(*told.lock().unwrap(), [three.clone(), three].concat());
    assert_eq!(bed.get(&id).observability.metrics.step_count, Some(4));
    bed.world.verify();
}

/// R23: a checkpoint whose payloads are each allowed and together more than a transaction may be is refused as a whole.
#[test]
fn a_checkpoint_is_one_transaction() {
    let bed = Bed::new(233);
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = told.clone();
    let address = bed.workflow("f", move |invocation| {
        let told = noted.clone();
        async move {
            for payloads in [TRANSACTION / OPERATION, TRANSACTION / OPERATION - 1] {
                let steps = (0..payloads).flat_map(|number| {
                    let id = format!("s{payloads}-{number}");
                    let done = servo_wire::lambda::OperationUpdate {
                        payload: Some("x".repeat(OPERATION)),
                        ..step(&id, A::Succeed)
                    };
                    [step(&id, A::Start), done]
                });
                let answer = invocation.checkpoint(steps.collect()).await;
                told.lock().unwrap().push(answer.map_err(|refused| refused.message).err());
            }
            let awaited = invocation.checkpoint(vec![awaits("go")]).await;
            told.lock().unwrap().push(awaited.map_err(|refused| refused.message).err());
            pending()
        }
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    let told = told.lock().unwrap().clone();
    assert!(told[0].as_ref().is_some_and(|refused| refused.contains(&TRANSACTION.to_string())), "{told:?}");
    assert_eq!(told[1..], [None, None]);
    let steps = bed.timeline(&id).into_iter().filter(|told| *told == TimelineEventType::StepCompleted);
    assert_eq!(steps.count(), TRANSACTION / OPERATION - 1);
    bed.world.verify();
}

/// R23: events and transactions to the byte, on the store that is the specification of the others.
#[test]
fn events_and_transactions_at_the_default_limit() {
    let world = World::new(234);
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    let memory = world.cluster.memory.clone();
    let first = start_append(&run, &acme);
    world.block_on(async move { memory.append(first).await }).unwrap();
    let put = |sizes: &[usize]| {
        let sized = |bytes: &usize| NewEvent { payload: payload(*bytes), ..fresh_event(&run) };
        let stream = add(&run, &acme, Expected::Any, sizes.iter().map(sized).collect());
        let memory = world.cluster.memory.clone();
        world.block_on(async move { memory.append(Append::one(stream)).await }).map(|_| ())
    };
    let event = Limits::default().event_bytes_max();
    assert_eq!(event, 2 * PAYLOAD + 64 * 1024, "a payload of nothing but quotes, and what is beside it");
    let rest = TRANSACTION - event;
    let table = [
        (vec![event - 1], None),
        (vec![event], None),
        (vec![8, event + 1], Some(event)),
        (vec![event, rest - 1], None),
        (vec![event, rest], None),
        (vec![event, rest + 1], Some(TRANSACTION)),
        (vec![event, 8, rest - 8], None),
    ];
    for (sizes, limit) in table {
        let before = events(&world);
        let refused = match put(&sizes) {
            Ok(()) => None,
            Err(Error::Limit { limit, .. }) => Some(limit as usize),
            Err(other) => panic!("{other}"),
        };
        let written = if limit.is_none() { sizes.len() } else { 0 };
        assert_eq!((refused, events(&world) - before), (limit, written), "{sizes:?}");
    }
}

/// Appends so many events to a run, as if somebody had recorded them.
fn append(world: &World, run: &str, count: u64) {
    for from in (0..count).step_by(1_000) {
        let events = (from..count.min(from + 1_000)).map(|_| fresh_event(&run_id(run))).collect();
        let stream = add(&run_id(run), &tenant("acme"), Expected::Any, events);
        let memory = world.cluster.memory.clone();
        world.block_on(async move { memory.append(Append::one(stream)).await }).unwrap();
    }
}

/// R23: an operator is told of a run that has used a fifth of its events, once, and not of one that has one less.
#[test]
fn a_long_run_is_told_of_before_its_limit() {
    let world = World::new(235);
    let _node = world.leader();
    let warned_at = Limits::events_warned_at(Limits::default().events_per_run_max);
    assert_eq!(warned_at, 50_000);
    let memory = world.cluster.memory.clone();
    world.block_on(async move { memory.append(start_append(&run_id("inv_1"), &tenant("acme"))).await }).unwrap();
    append(&world, "inv_1", warned_at - 2);
    let followed = || world.wait_until("the projector has seen it", || world.has_followed("projector"));
    followed();
    assert_eq!(world.alert(AlertCode::RunEventsHigh), None, "one less");
    append(&world, "inv_1", 1);
    followed();
    let alert = world.alert(AlertCode::RunEventsHigh).expect("at the boundary");
    assert_eq!((alert.run_id.unwrap(), alert.tenant_id, alert.count), (run_id("inv_1"), tenant("acme"), 1));
    assert_eq!(alert.message, "the run has 50000 events, and ends at 250000");
    append(&world, "inv_1", 1_000);
    followed();
    assert_eq!(world.alert(AlertCode::RunEventsHigh).unwrap().count, 1, "once");
}

/// A world with a limit of events of its own, and a plan whose step is tried again for as long as there is room.
fn small(seed: u64, events_per_run_max: u64) -> World {
    let mut cluster = Cluster::new(seed);
    cluster.config.limits.events_per_run_max = events_per_run_max;
    let limits = cluster.config.limits.clone();
    cluster.memory = MemStore::new(cluster.sim.clock().time_source(), limits, [7; 32]).shared();
    World::of(cluster)
}

/// R23: also a short limit is told of, though the projector passes by the first events of a run.
#[test]
fn a_short_limit_is_told_of_too() {
    let world = small(236, 200);
    let node = world.leader();
    let steps: Vec<Value> = (0..30).map(|number| json!({"stepId": format!("s{number}")})).collect();
    let run = world.run(&node, json!(steps));
    world.wait_status(&node, &run, RunStatus::Completed);
    assert!(world.stored(&run).len() > 40);
    world.wait_until("an alert", || world.alert(AlertCode::RunEventsHigh).is_some());
    assert_eq!(world.alert(AlertCode::RunEventsHigh).unwrap().message, "the run has 40 events, and ends at 200");
}

/// R23: the limit that the store keeps is the one that runs end at. One that the machine did not know of would leave them with
/// appends that are refused for ever.
#[test]
fn a_run_ends_at_the_limit_of_its_store() {
    let world = small(237, 150);
    let node = world.leader();
    let fails = json!({"stepId": "a", "with": {"failAttempts": 1_000}, "retry": {"maxAttempts": 1_000}});
    let run = world.run(&node, json!([fails]));
    let ended = world.wait_status(&node, &run, RunStatus::Failed);
    assert_eq!(ended.root_cause.unwrap().code, "LIMIT_EXCEEDED");
    assert!(ended.steps.iter().all(|step| step.status != StepStatus::Success));
    assert!(world.stored(&run).len() <= 150);
    world.verify();
}
