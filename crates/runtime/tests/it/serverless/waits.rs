//! Waiting, which costs a run none of its time, and what ends it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use servo_entrypoint::{InvocationStatus as S, RuntimeErrorCategory};
use servo_model::execution::EVENT;

use super::support::{Bed, WORKFLOW, awaits};
use crate::executions::handler::{Invocation, pending, succeeded};

/// Waits for an event of its own order, and for a moment after it where the params say so.
async fn waits_for_payment(invocation: Arc<Invocation>) -> crate::executions::handler::Answer {
    if invocation.known("s").is_some() {
        return succeeded("{}");
    }
    let mut paid = awaits("order.paid");
    paid.sub_type = Some(EVENT.to_owned());
    invocation.checkpoint(vec![paid]).await.unwrap();
    pending()
}

/// SR-039: the timeout is that of an attempt while it executes. Waiting in between may take longer than all of it, and then an
/// attempt that takes too long is cut off all the same.
#[test]
fn waiting_takes_none_of_the_timeout() {
    let bed = Bed::new(121);
    let limited = |document: &mut Value| document["traits"]["limits"]["timeout_seconds"] = json!(2);
    let waits = bed.entrypoint(WORKFLOW, "waits", limited, waits_for_payment);
    let id = bed.start(&waits, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    bed.world.pass(Duration::from_secs(600));
    assert_eq!(bed.get(&id).status, S::Suspended);
    bed.signal(&id, "m", "order.paid", json!(null)).unwrap();
    bed.until(&id, S::Succeeded);

    let hangs = bed.entrypoint(WORKFLOW, "hangs", limited, |invocation: Arc<Invocation>| async move {
        if invocation.known("s").is_none() {
            return waits_for_payment(invocation).await;
        }
        std::future::pending().await
    });
    let id = bed.start(&hangs, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::Suspended);
    bed.signal(&id, "m", "order.paid", json!(null)).unwrap();
    let ended = bed.until(&id, S::Failed);
    assert_eq!(ended.error.unwrap().category, RuntimeErrorCategory::Timeout);
}

/// SR-151: a signal that is named as an event resumes the run that it is sent to, once, and no other run that waits for one of the same name.
#[test]
fn a_wait_for_an_event_ends_by_a_signal_to_its_run() {
    let bed = Bed::new(122);
    let address = bed.workflow("order", waits_for_payment);
    let begin = || bed.start(&address, json!({})).unwrap().record.invocation_id;
    let runs = [begin(), begin(), begin()];
    for id in &runs {
        bed.until(id, S::Suspended);
    }
    bed.signal(&runs[1], "e1", "order.cancelled", json!(null)).unwrap();
    bed.world.pass(Duration::from_secs(60));
    assert!(runs.iter().all(|id| bed.get(id).status == S::Suspended), "nobody waits for that");
    bed.signal(&runs[1], "e2", "order.paid", json!({"amount": 3})).unwrap();
    bed.until(&runs[1], S::Succeeded);
    bed.world.pass(Duration::from_secs(60));
    assert_eq!([&runs[0], &runs[2]].map(|id| bed.get(id).status), [S::Suspended, S::Suspended]);
}
