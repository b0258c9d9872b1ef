//! The published usage example, unchanged up to the line below. The SDK's own tests run it.

use aws_durable_execution_sdk::{
    durable_execution, DurableContext, StepConfig, Duration, DurableError,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct OrderEvent {
    order_id: String,
    amount: f64,
}

#[derive(Serialize, Deserialize)]
struct ValidationResult {
    order_id: String,
    valid: bool,
}

#[derive(Serialize, Deserialize)]
struct PaymentResult {
    transaction_id: String,
    status: String,
}

#[derive(Serialize, Deserialize)]
struct FulfillmentResult {
    tracking_number: String,
}

#[derive(Serialize)]
struct OrderResult {
    status: String,
    order_id: String,
    transaction_id: String,
    tracking_number: String,
}

// The #[durable_execution] macro transforms this into a Lambda handler
// that integrates with AWS Lambda's durable execution service
#[durable_execution]
async fn process_order(event: OrderEvent, ctx: DurableContext) -> Result<OrderResult, DurableError> {
    let order_id = event.order_id.clone();
    let amount = event.amount;

    // Step 1: Validate the order (checkpointed automatically)
    let validation: ValidationResult = ctx.step(|_step_ctx| {
        // Validation logic here
        Ok(ValidationResult {
            order_id: order_id.clone(),
            valid: true,
        })
    }, None).await?;

    if !validation.valid {
        return Err(DurableError::Execution {
            message: "Invalid order".to_string(),
            termination_reason: TerminationReason::ExecutionError,
        });
    }

    // Step 2: Charge payment (checkpointed automatically)
    let payment: PaymentResult = ctx.step(|_step_ctx| {
        // Payment processing logic here
        Ok(PaymentResult {
            transaction_id: "txn_123".to_string(),
            status: "completed".to_string(),
        })
    }, None).await?;

    // Step 3: Wait for payment confirmation (suspends Lambda, resumes later)
    ctx.wait(Duration::from_seconds(5), Some("payment_confirmation")).await?;

    // Step 4: Fulfill the order (checkpointed automatically)
    let fulfillment: FulfillmentResult = ctx.step(|_step_ctx| {
        // Fulfillment logic here
        Ok(FulfillmentResult {
            tracking_number: "TRK123456".to_string(),
        })
    }, None).await?;

    Ok(OrderResult {
        status: "completed".to_string(),
        order_id,
        transaction_id: payment.transaction_id,
        tracking_number: fulfillment.tracking_number,
    })
}

// Here the example ends.

/// The handler for callers that know none of its types.
pub(crate) async fn on_json(event: serde_json::Value, ctx: DurableContext) -> Result<serde_json::Value, DurableError> {
    let unreadable = |error: serde_json::Error| DurableError::SerDes { message: error.to_string() };
    let event: OrderEvent = serde_json::from_value(event).map_err(unreadable)?;
    serde_json::to_value(process_order(event, ctx).await?).map_err(unreadable)
}
