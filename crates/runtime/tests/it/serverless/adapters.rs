//! The same calls on entrypoints of different adapters: whoever calls by the trait sees no difference.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use servo_entrypoint::validate::SourceIssue;
use servo_entrypoint::{
    EntrypointListFilter, EntrypointStatusAction, InvocationControlAction as Action, InvocationListFilter,
    InvocationStatus as S, RuntimeErrorPayload, ServerlessRuntime, TimelineEventType as T, errors,
};
use servo_runtime::Clock;
use servo_runtime::serverless::{STARLARK, SourceCheck};

use super::support::{Bed, FUNCTION, definition, me, request};

/// Finds nothing wrong.
pub(super) struct AnySource;

#[async_trait]
impl SourceCheck for AnySource {
    async fn check(&self, _language: &str, _source: &str) -> Vec<SourceIssue> {
        Vec::new()
    }
}

async fn ended(runtime: &dyn ServerlessRuntime, clock: &dyn Clock, id: &String) -> S {
    loop {
        let status = runtime.get_invocation(&me(), id).await.unwrap().status;
        if !matches!(status, S::Queued | S::Running) {
            return status;
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
}

/// What holds for every adapter.
async fn suite(
    runtime: Arc<dyn ServerlessRuntime>,
    clock: Arc<dyn Clock>,
    address: String,
) -> Result<(), RuntimeErrorPayload> {
    let ctx = me();
    let shown = runtime.get_entrypoint(&ctx, &address).await?;
    assert_eq!(shown.entrypoint_id, address);
    assert_eq!(runtime.list_entrypoints(&ctx, EntrypointListFilter::default()).await?.len(), 1);
    let started = runtime.start_invocation(&ctx, request(&address, json!({"n": 1}))).await?.record;
    assert_eq!(ended(&*runtime, &*clock, &started.invocation_id).await, S::Succeeded);
    let record = runtime.get_invocation(&ctx, &started.invocation_id).await?;
    assert_eq!(record.result, Some(json!({"n": 1})));
    let told = runtime.get_invocation_timeline(&ctx, &started.invocation_id).await?;
    assert_eq!(told.iter().map(|event| event.event_type).collect::<Vec<_>>(), [T::Started, T::Succeeded]);
    let replay = runtime.control_invocation(&ctx, &started.invocation_id, Action::Replay).await?;
    assert_eq!(ended(&*runtime, &*clock, &replay.invocation_id).await, S::Succeeded);
    assert_eq!(runtime.list_invocations(&ctx, InvocationListFilter::default()).await?.len(), 2);
    runtime.update_entrypoint_status(&ctx, &address, EntrypointStatusAction::Disable).await?;
    let refused = runtime.start_invocation(&ctx, request(&address, json!({}))).await.unwrap_err();
    assert_eq!(refused.error_type_id, errors::NOT_ACTIVE);
    Ok(())
}

/// SR-518: the trait and its types know neither a transport nor an adapter.
#[test]
fn entrypoints_of_two_adapters_are_called_alike() {
    let echo = |call: Arc<crate::executions::handler::Invocation>| async move { Ok(call.call.payload.clone()) };
    let run = |bed: &Bed, address: String| {
        let runtime: Arc<dyn ServerlessRuntime> = Arc::new(bed.serverless.clone());
        let clock = bed.engine().clock().clone();
        bed.run(|_| suite(runtime, clock, address)).unwrap();
    };
    let bed = Bed::new(95);
    let address = bed.function("f", echo);
    run(&bed, address);

    let bed = Bed::with(96, |platform| {
        platform.sources = Arc::new(AnySource);
        platform.adapters.push(STARLARK.to_owned());
    });
    let mut document: Value = definition(FUNCTION, "f");
    let code = json!({"language": "starlark", "source": "def main(ctx, input):\n    return input\n"});
    document["implementation"] = json!({"adapter": STARLARK, "kind": "code", "code": code});
    let registered = bed.register(&document).unwrap();
    bed.functions.answer(&registered.id.unwrap(), echo);
    bed.act(&registered.entrypoint_id, EntrypointStatusAction::Activate).unwrap();
    run(&bed, registered.entrypoint_id);

    let manifest = include_str!("../../../../entrypoint/Cargo.toml");
    let used = manifest.split("[dependencies]").nth(1).unwrap().split("[dev-dependencies]").next().unwrap();
    for transport in ["axum", "hyper", "http", "reqwest", "tokio", "tonic", "adapter"] {
        assert!(!used.contains(transport), "{transport} in {used}");
    }
}
