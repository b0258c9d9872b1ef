//! What holds for calls from inside a run: the limiter of what is called, and who may see it.

use std::sync::Arc;

use serde_json::json;
use servo_entrypoint::access::{Access, AccessControl};
use servo_entrypoint::{InvocationStatus as S, OwnerRef};
use servo_model::SecurityContext;
use servo_model::operation::OperationStatus;
use servo_wire::lambda::CheckpointRequest;

use super::calls::calls;
use super::compensation::{handler_of, order_of};
use super::support::{Bed, FUNCTION, caller, request};
use crate::executions::handler::{pending, succeeded};

/// An entrypoint that may be called twice, and then not for a long time.
fn limited(bed: &Bed) -> String {
    let strategy = "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~";
    bed.entrypoint(
        FUNCTION,
        "limited",
        |document| {
            let config = json!({"max_requests_per_second": 0.001, "burst_size": 2});
            document["traits"]["rate_limit"] = json!({"strategy": strategy, "config": config});
        },
        |_| async move { Ok("{}".to_owned()) },
    )
}

/// SR-072, SR-073: a call from inside a run counts against the rate of what it calls like any other, and one over it fails alone.
#[test]
fn a_rate_holds_for_calls_from_inside() {
    let bed = Bed::new(101);
    let limited = limited(&bed);
    let address = bed.workflow("caller", move |invocation| {
        let limited = limited.clone();
        async move {
            let ids = ["a", "b", "c"];
            if invocation.known("a").is_none() {
                let updates = ids.iter().map(|id| calls(id, &limited)).collect();
                invocation.checkpoint(updates).await.unwrap();
                return pending();
            }
            let operations = &invocation.input.initial_execution_state.operations;
            let of = |id: &str| operations.iter().find(|operation| operation.id == id).unwrap();
            if ids.iter().any(|id| of(id).status == OperationStatus::Started) {
                return pending();
            }
            let error = of("c").chained_invoke_details.as_ref().and_then(|details| details.error.as_ref());
            let error = error.and_then(|error| error.error_type.clone());
            let statuses: Vec<_> = ids.iter().map(|id| of(id).status.as_str()).collect();
            succeeded(&json!({"statuses": statuses, "error": error}).to_string())
        }
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let result = bed.until(&id, S::Succeeded).result.unwrap();
    assert_eq!(result["statuses"], json!(["SUCCEEDED", "SUCCEEDED", "FAILED"]));
    assert_eq!(result["error"], servo_entrypoint::errors::RATE_LIMITED);
}

/// SR-072: a checkpoint whose answer was lost comes again under its client token, starts nothing and takes nothing of the rate.
#[test]
fn a_call_that_is_repeated_counts_once() {
    let bed = Bed::new(103);
    let limited = limited(&bed);
    let address = bed.workflow("caller", move |invocation| {
        let limited = limited.clone();
        async move {
            let statuses = ["a", "b"].map(|id| invocation.known(id));
            if statuses[0].is_none() {
                let request = CheckpointRequest {
                    checkpoint_token: invocation.input.checkpoint_token.clone(),
                    updates: Some(vec![calls("a", &limited)]),
                    client_token: Some("once".to_owned()),
                };
                for _ in 0..4 {
                    let arn = &invocation.input.durable_execution_arn;
                    invocation.executions.checkpoint(&invocation.call.tenant, arn, request.clone()).await.unwrap();
                }
                return pending();
            }
            if statuses[1].is_none() {
                invocation.checkpoint(vec![calls("b", &limited)]).await.unwrap();
                return pending();
            }
            if statuses.contains(&Some(OperationStatus::Started)) {
                return pending();
            }
            succeeded(&json!({"statuses": statuses.map(|status| status.map(OperationStatus::as_str))}).to_string())
        }
    });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    let result = bed.until(&id, S::Succeeded).result.unwrap();
    assert_eq!(result["statuses"], json!(["SUCCEEDED", "SUCCEEDED"]));
}

/// Everything is shared with bob.
struct ForBob;

#[async_trait::async_trait]
impl AccessControl for ForBob {
    async fn grants(&self, ctx: &SecurityContext, access: Access, _: &str, _: &OwnerRef) -> bool {
        ctx.subject == "bob" && access == Access::See
    }
}

/// What is shared with somebody is there for its runs as well.
#[test]
fn a_grant_reaches_into_a_run() {
    let bed = Bed::with(102, |platform| platform.access = Arc::new(ForBob));
    let private = bed.entrypoint(
        FUNCTION,
        "private",
        |document| document["owner"] = json!({"owner_type": "user", "id": "ada", "tenant_id": "default"}),
        |_| async move { Ok("{}".to_owned()) },
    );
    let address = bed.workflow("caller", move |invocation| {
        let private = private.clone();
        async move {
            match invocation.known("p") {
                None => {
                    invocation.checkpoint(vec![calls("p", &private)]).await.unwrap();
                    pending()
                }
                Some(OperationStatus::Started) => pending(),
                Some(status) => succeeded(&json!({"call": status.as_str()}).to_string()),
            }
        }
    });
    for (subject, call) in [("bob", "SUCCEEDED"), ("eve", "FAILED")] {
        let id = bed.start_as(&caller(subject, "default"), request(&address, json!({}))).unwrap().record.invocation_id;
        assert_eq!(bed.until(&id, S::Succeeded).result, Some(json!({"call": call})), "{subject}");
    }
}

/// A shared workflow is undone by what its owner keeps, also for somebody who was given the workflow alone.
#[test]
fn a_shared_workflow_is_undone_by_its_owners_handler() {
    struct Workflows;
    #[async_trait::async_trait]
    impl AccessControl for Workflows {
        async fn grants(&self, ctx: &SecurityContext, access: Access, address: &str, _: &OwnerRef) -> bool {
            ctx.subject == "bob" && access == Access::See && address.contains("serverless.workflow.")
        }
    }
    let bed = Bed::with(103, |platform| platform.access = Arc::new(Workflows));
    let ada = json!({"owner_type": "user", "id": "ada", "tenant_id": "default"});
    let (undo, seen) = handler_of(&bed, "undo", true, Some(&ada));
    let address = order_of(&bed, "process", &undo, Some(&ada));
    let bob = caller("bob", "default");
    assert!(bed.start_as(&bob, request(&undo, json!({}))).is_err(), "not bob's to call");
    let id = bed.start_as(&bob, request(&address, json!({}))).unwrap().record.invocation_id;
    bed.until(&id, S::Compensated);
    assert_eq!(seen.lock().unwrap().len(), 1);
}
