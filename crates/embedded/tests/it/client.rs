//! The engine in this process as the SDK's service.

use servo_embedded::Servo;
use servo_sdk::{CheckpointRequest, DurableContext, DurableError, DurableServiceClient, ServiceError, Verdict};

async fn waiting(_: (), ctx: DurableContext) -> Result<(), DurableError> {
    ctx.create_callback::<()>(None).await?.result().await
}

/// DX-044: the embedded engine is an implementation of the SDK's client, and refuses in the words of the service.
#[tokio::test]
async fn the_engine_speaks_as_the_service_does() {
    let servo = Servo::builder().in_memory().function("waiting", waiting).start().await.unwrap();
    let execution = servo.start("waiting", servo_embedded::Start::default()).await.unwrap();
    let client: &dyn DurableServiceClient = &servo.client();
    let request = || CheckpointRequest { checkpoint_token: "old".to_owned(), updates: None, client_token: None };
    let stale = client.checkpoint(execution.arn(), request()).await.unwrap_err();
    assert_eq!(stale.verdict(), Verdict::Reinvoke, "{stale}");
    let stale = client.get_state(execution.arn(), "old", "").await.unwrap_err();
    assert_eq!(stale.verdict(), Verdict::Reinvoke, "{stale}");
    let nowhere = client.checkpoint("arn:nowhere", request()).await.unwrap_err();
    assert!(matches!(nowhere, ServiceError::Refused { status: 400, .. }), "{nowhere}");
    servo.shutdown().await;
}
