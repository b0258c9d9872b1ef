//! Something to see on an empty store: a function, a workflow that waits for an approval, and the one that undoes it.

pub(crate) mod crash;

use serde_json::{Value, json};
use servo_entrypoint::gts::{FUNCTION, STARLARK, WORKFLOW};
use servo_entrypoint::{
    EntrypointId, EntrypointStatusAction, InvocationMode, InvocationRequest, InvocationSignal, RestRuntime,
    RuntimeErrorPayload,
};
use servo_model::SecurityContext;

fn greet() -> String {
    format!("{FUNCTION}demo.shop.greet.v1~")
}

pub(crate) fn order() -> String {
    format!("{WORKFLOW}demo.shop.order.v1~")
}

fn refund() -> String {
    format!("{FUNCTION}demo.shop.refund.v1~")
}

/// Registers the demo and starts one run of every fate. Does nothing if the demo is there.
pub(crate) async fn begin(serverless: &dyn RestRuntime, correlation: String) {
    let ctx = SecurityContext::development(correlation);
    if let Err(error) = try_begin(serverless, &ctx).await {
        tracing::warn!(error = error.message, "the demo did not start");
    }
}

async fn try_begin(serverless: &dyn RestRuntime, ctx: &SecurityContext) -> Result<(), RuntimeErrorPayload> {
    for document in documents() {
        let registered = serverless.register_document(ctx, document).await?;
        let address = registered.entrypoint_id.clone();
        serverless.update_entrypoint_status(ctx, &address, EntrypointStatusAction::Activate).await?;
    }
    start(serverless, ctx, &greet(), json!({"name": "Ada"})).await?;
    let approved = start(serverless, ctx, &order(), order_params("o-1", 80)).await?;
    let payload = json!({"yes": true, "by": "Ada"});
    let signal = InvocationSignal { signal_id: "demo".to_owned(), name: "approval".to_owned(), payload };
    serverless.signal_invocation(ctx, &approved, signal).await?;
    // One waits for its approval, one is declined and undone.
    start(serverless, ctx, &order(), order_params("o-2", 120)).await?;
    start(serverless, ctx, &order(), order_params("o-3", 5_000)).await?;
    Ok(())
}

pub(crate) fn order_params(order_id: &str, amount: u32) -> Value {
    json!({"order_id": order_id, "amount": amount, "items": ["books", "games"]})
}

async fn start(
    serverless: &dyn RestRuntime,
    ctx: &SecurityContext,
    address: &str,
    params: Value,
) -> Result<servo_entrypoint::InvocationId, RuntimeErrorPayload> {
    let request = InvocationRequest {
        entrypoint_id: EntrypointId::from(address.to_owned()),
        mode: Some(InvocationMode::Async),
        params,
        dry_run: false,
        idempotency_key: None,
    };
    Ok(serverless.start_invocation(ctx, request).await?.record.invocation_id)
}

/// In the order in which they refer to each other.
fn documents() -> [Value; 3] {
    let name = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "default": "Ada"}}});
    let of_order = json!({"type": "object", "required": ["order_id", "amount"], "properties": {
        "order_id": {"type": "string", "title": "Order", "minLength": 1},
        "amount": {"type": "number", "title": "Amount", "minimum": 0, "description": "Above 1000 the card is declined."},
        "items": {"type": "array", "title": "Items", "items": {"type": "string"}, "default": ["books"]}}});
    let mut order = document(
        &order(),
        "Order: reserve, charge, wait for an approval, ship",
        &of_order,
        include_str!("../demo/order.star"),
    );
    order["traits"]["workflow"] = json!({"compensation": {"on_failure": refund(), "on_cancel": refund()},
        "checkpointing": {"strategy": "automatic"}, "max_suspension_days": 30});
    [
        document(&greet(), "Greet somebody", &name, include_str!("../demo/greet.star")),
        document(&refund(), "Undo an order", &json!({"type": "object"}), include_str!("../demo/refund.star")),
        order,
    ]
}

fn document(address: &str, title: &str, params: &Value, source: &str) -> Value {
    json!({
        "entrypoint_id": address, "version": "1.0.0", "title": title, "tags": ["demo"],
        "owner": {"owner_type": "tenant", "id": "default", "tenant_id": "default"},
        "schema": {"params": params, "returns": {"type": "object"}, "errors": []},
        "traits": {"invocation": {"supported": ["sync", "async"], "default": "async"},
            "limits": {"timeout_seconds": 60}, "retry": {"max_attempts": 3, "non_retryable_errors": []}},
        "implementation": {"adapter": STARLARK, "kind": "code", "code": {"language": "starlark", "source": source}},
    })
}
