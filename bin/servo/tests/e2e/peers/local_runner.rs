//! The other way round: a handler on our SDK, run by the local runner that AWS publishes for its own SDKs.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use axum::{Json, Router};
use serde_json::{Value, json};
use servo_sdk::{
    CallbackConfig, DurableContext, DurableError, DurableExecutionInvocationInput, Duration, Options, RetryContext,
    RetryDecision, ServoClient, StepConfig, handle,
};

use super::service::Service;
use super::{DUMMY, Peer, at};
use crate::support::{until, variable};

/// How often the bodies of the handler's steps ran, in this test's process.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
static TRIED: AtomicUsize = AtomicUsize::new(0);

fn step(name: &str) -> StepConfig {
    StepConfig { name: Some(name.into()), ..StepConfig::default() }
}

async fn order(items: Vec<u64>, ctx: DurableContext) -> Result<Value, DurableError> {
    let reserve = |_| Ok(RESERVED.fetch_add(1, Ordering::SeqCst));
    let reserved: usize = ctx.step(reserve, Some(step("reserve"))).await?;
    ctx.wait(Duration::from_seconds(1), Some("settle")).await?;
    let squares = ctx
        .map(items, async |child: DurableContext, item: u64, _| Ok(child.step(|_| Ok(item * item), None).await?), None)
        .await?;
    let squares: Vec<u64> = squares.items.iter().filter_map(|item| item.result).collect();
    let try_twice = |_| match TRIED.fetch_add(1, Ordering::SeqCst) {
        0 => Err("the first attempt fails".into()),
        before => Ok(before),
    };
    let retries = StepConfig {
        retry_strategy: Some(Box::new(|_: &RetryContext<'_>| RetryDecision::Retry(std::time::Duration::from_secs(1)))),
        ..step("flaky")
    };
    let tried: usize = ctx.step(try_twice, Some(retries)).await?;
    let config = CallbackConfig { name: Some("approval".into()), ..CallbackConfig::default() };
    let answer = ctx.create_callback::<String>(Some(config)).await?.result().await?;
    Ok(json!({"reserved": reserved, "squares": squares, "tried": tried, "answer": answer}))
}

/// Speaks Lambda's Invoke, as the runner asks for.
fn invoke_server(runner: &str) -> Router {
    let client = Arc::new(ServoClient::new(runner, None).expect("a client"));
    // As text: boto3 gives the payload no content type.
    Router::new().fallback(move |payload: String| {
        let client = client.clone();
        async move {
            let input: DurableExecutionInvocationInput = serde_json::from_str(&payload).expect("the runner's input");
            let answer = handle(order, input, client, Options::default()).await;
            answer.map(Json).map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        }
    })
}

/// DX-095: a handler on our SDK runs to completion in AWS's local runner: step, wait, map, retry and callback.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rust_handler_runs_in_the_local_runner_of_aws() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let handlers = format!("http://{}", listener.local_addr().expect("an address"));
    // The runner does not say which port it was given, so it is told a free one.
    let (free, runner) = super::socket();
    drop(free);
    let (_, port) = runner.rsplit_once(':').expect("a port");
    let mut command = Command::new(variable("SERVO_TEST_PYTHON"));
    at(&mut command, &runner, DUMMY);
    command.args(["-m", "aws_durable_execution_sdk_python_testing.cli", "start-server", "--host", "127.0.0.1"]);
    command.args(["--port", port, "--log-level", "ERROR", "--lambda-endpoint", &handlers]);
    command.args(["--local-runner-endpoint", &runner]);
    let _runner = Peer::start(&mut command);

    let service = Service::at(&runner);
    let test = async {
        until("the runner", async || service.answers("/health").await).await;
        let started = service.post("/start-durable-execution", &start()).await;
        let arn = started["ExecutionArn"].as_str().expect("an ARN").to_owned();
        let event = service.event(&arn, "CallbackStarted").await;
        let id = event["CallbackStartedDetails"]["CallbackId"].as_str().expect("an id");
        service.succeed(id, "\"yes\"").await;
        service.result(&arn).await
    };
    let result = tokio::select! {
        result = test => result,
        ended = axum::serve(listener, invoke_server(&runner)) => panic!("the handlers ended: {ended:?}"),
    };
    assert_eq!(result, json!({"reserved": 0, "squares": [1, 4, 9], "tried": 1, "answer": "yes"}));
    assert_eq!((RESERVED.load(Ordering::SeqCst), TRIED.load(Ordering::SeqCst)), (1, 2));
}

fn start() -> Value {
    json!({"AccountId": "000000000000", "FunctionName": "order", "FunctionQualifier": "$LATEST",
        "ExecutionName": "first", "ExecutionTimeoutSeconds": 60, "ExecutionRetentionPeriodDays": 1,
        "Input": "[1,2,3]"})
}
