//! Runs that are undone while nodes die and the store fails: each is undone once, by what was recorded, in its order.

use std::sync::Arc;

use serde_json::{Value, json};
use servo_entrypoint::{
    InvocationControlAction as Action, InvocationListFilter, InvocationRecord, InvocationRequest,
    InvocationStatus as S, ServerlessRuntime as _, TimelineEventType as T,
};
use servo_model::RunId;
use servo_model::event::EventBody;
use servo_model::operation::{OperationAction as A, OperationUpdate};
use servo_sim::dice::Dice;
use servo_sim::faults::{Call, Fate, FaultPlan, RandomFaults};

use super::support::{Bed, WORKFLOW, me, request};
use crate::executions::handler::{Answer, Invocation, step, succeeded};

/// Every call of the store takes a moment, so that a node can die in each.
struct Slow;

impl FaultPlan for Slow {
    fn fate(&self, _: Call) -> Fate {
        Fate { before_ms: 1, ..Fate::default() }
    }
}

fn named(id: &str, name: &str, action: A) -> OperationUpdate {
    let mut update = step(id, action);
    update.name = Some(name.to_owned());
    update
}

/// Does these steps, each recorded by itself, if they are not done. A call that is refused means that the node is lost.
async fn steps(invocation: &Invocation, names: &[&str]) -> bool {
    for name in names {
        if invocation.known(name).is_some_and(|status| status.is_terminal()) {
            continue;
        }
        if invocation.checkpoint(vec![named(name, name, A::Start), named(name, name, A::Succeed)]).await.is_err() {
            return false;
        }
    }
    true
}

/// Reserves and charges, then does as its params say; undone by a workflow that undoes the last first.
fn saga(bed: &Bed) -> (String, String) {
    let undo = bed.entrypoint(
        WORKFLOW,
        "undo",
        |document| {
            document["schema"]["params"] = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
        },
        |invocation| async move {
            if steps(&invocation, &["uncharge", "unreserve"]).await { succeeded("{}") } else { lost().await }
        },
    );
    let order = bed.entrypoint(
        WORKFLOW,
        "order",
        |document| {
            document["traits"]["workflow"]["compensation"] = json!({"on_failure": undo, "on_cancel": undo});
        },
        |invocation: Arc<Invocation>| async move {
            if !steps(&invocation, &["reserve", "charge"]).await {
                return lost().await;
            }
            let input = &invocation.input.initial_execution_state.operations[0];
            let input = input.execution_details.as_ref().and_then(|details| details.input_payload.clone());
            match input.and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default()["do"].as_str() {
                Some("hang") => std::future::pending().await,
                Some("work") => succeeded("{}"),
                _ => Ok(json!({"Status": "FAILED", "Error": {"ErrorMessage": "no stock"}}).to_string()),
            }
        },
    );
    (order, undo)
}

/// The node of this handler is gone, and so is whoever waits for it.
async fn lost() -> Answer {
    std::future::pending().await
}

fn runs_of(bed: &Bed, address: &str) -> Vec<InvocationRecord> {
    let filter = InvocationListFilter { entrypoint_id: Some(address.to_owned()), ..InvocationListFilter::default() };
    bed.run(|serverless| async move { serverless.list_invocations(&me(), filter).await }).unwrap()
}

/// The steps of a run that were recorded as done, in the order of the log.
fn done(bed: &Bed, id: &str) -> Vec<String> {
    let events = bed.world.events(&RunId::parse(id).unwrap()).into_iter();
    let names = events.filter_map(|event| match event.body {
        EventBody::OperationUpdated(body) if body.action == A::Succeed => Some(body.operation_id),
        _ => None,
    });
    names.collect()
}

/// Undone once, by one run that did each of its steps once and in order, and told so.
fn is_undone_once(bed: &Bed, id: &str, undo: &str, what: &str) {
    let all = runs_of(bed, undo).into_iter();
    let of = |record: &InvocationRecord| record.params["original_workflow_invocation_id"] == id;
    let undoing: Vec<_> = all.filter(of).collect();
    assert_eq!(undoing.len(), 1, "{what}: one run undoes it");
    assert_eq!(undoing[0].status, S::Succeeded, "{what}");
    assert_eq!(done(bed, &undoing[0].invocation_id), ["uncharge", "unreserve"], "{what}");
    let told = bed.timeline(id);
    let told: Vec<_> =
        told.into_iter().filter(|event| matches!(event, T::CompensationStarted | T::CompensationCompleted)).collect();
    assert_eq!(told, [T::CompensationStarted, T::CompensationCompleted], "{what}");
}

/// Kills the node at every moment of a run that fails and is undone, and goes on with another.
#[test]
fn a_compensation_survives_a_crash_at_every_point() {
    let mut after_end = 0;
    for millis in 0..40 {
        let mut bed = Bed::of(700 + millis, |cluster| cluster.faults = Arc::new(Slow));
        let (order, undo) = saga(&bed);
        let id = bed.start(&order, json!({})).unwrap().record.invocation_id;
        bed.world.pass_ms(millis);
        after_end += u32::from(bed.get(&id).status == S::Compensated);
        bed.crash();
        let record = bed.until(&id, S::Compensated);
        assert_eq!(record.error.unwrap().message, "no stock");
        assert_eq!(done(&bed, &id), ["reserve", "charge"], "killed after {millis} ms");
        is_undone_once(&bed, &id, &undo, &format!("killed after {millis} ms"));
        bed.world.verify();
    }
    assert!((1..30).contains(&after_end), "{after_end} of 40 were over before the crash: the points miss the way");
}

/// Many runs of entrypoints, with a store that fails and nodes that die, drawn from a seed.
#[test]
fn entrypoints_under_faults() {
    for seed in 0..12 {
        let faults = Arc::new(RandomFaults::new(seed, 5, 15));
        let mut dice = Dice::new(seed);
        let calm = Arc::new(Slow);
        let mut bed = Bed::of(800 + seed, |cluster| cluster.faults = calm);
        let (order, undo) = saga(&bed);
        bed.world.cluster.faults = faults.clone();
        bed.crash();
        let mut started = Vec::new();
        for number in 0..6 {
            let what = *dice.pick(&["fail", "hang", "work"]);
            let key = Some(format!("order {number}"));
            let ask = InvocationRequest { idempotency_key: key, ..request(&order, json!({"do": what})) };
            // Whoever gets no answer asks again with the same key.
            let id = loop {
                match bed.start_as(&me(), ask.clone()) {
                    Ok(answer) => break answer.record.invocation_id,
                    Err(_) => bed.world.pass_ms(50),
                }
            };
            started.push((id, what));
            bed.world.pass_ms(dice.below(40));
            if dice.percent(30) {
                bed.crash();
            }
        }
        faults.heal();
        if dice.percent(50) {
            bed.crash();
        }
        let hanging = started.iter().filter(|(_, what)| *what == "hang");
        for (id, _) in hanging {
            // One whose handlers were lost again and again is out of time by now, and undone for that.
            let undone = || matches!(bed.get(id).status, S::Compensating | S::Compensated);
            bed.world.wait_until("it is cancelled", || bed.control(id, Action::Cancel).is_ok() || undone());
        }
        for (id, what) in &started {
            let what = format!("seed {seed}, {what}");
            let (ends, undone) = if what.ends_with("work") { (S::Succeeded, false) } else { (S::Compensated, true) };
            bed.until(id, ends);
            if undone {
                is_undone_once(&bed, id, &undo, &what);
            }
        }
        let undone = started.iter().filter(|(_, what)| *what != "work").count();
        assert_eq!((runs_of(&bed, &order).len(), runs_of(&bed, &undo).len()), (6, undone), "seed {seed}: none twice");
        bed.world.verify();
    }
}
