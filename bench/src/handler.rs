//! The measured handlers on Servo's SDK, as a program that a server calls: `servo-bench handler URL`. It does what the
//! peers' handlers do (`bench/peers`), and ends with its standard input.

mod counts;
pub(crate) mod together;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use serde::Deserialize;
use servo_sdk::{DurableContext, DurableError, DurableServiceClient, InvocationError, Options, ServoClient, handle};

use counts::COUNTS;

#[derive(Deserialize)]
struct Order {
    #[serde(default)]
    number: usize,
    steps: u16,
    /// Seconds, after the steps.
    #[serde(default)]
    wait: u64,
}

async fn steps(Order { number, steps, wait }: Order, ctx: DurableContext) -> Result<u64, DurableError> {
    COUNTS.begin().await;
    let mut bytes = 0;
    for step in 0..steps {
        let result: String = ctx.step(|_| Ok(COUNTS.step(number, step)), None).await?;
        COUNTS.recorded(number, step);
        bytes += result.len() as u64;
    }
    if wait > 0 {
        ctx.wait(servo_sdk::Duration::from_seconds(wait), None).await?;
    }
    COUNTS.end(number);
    Ok(bytes)
}

/// The function `empty` answers at once; every other name is the durable one.
async fn invoked(
    State(client): State<Arc<dyn DurableServiceClient>>,
    Path(function): Path<String>,
    body: Bytes,
) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    if function == "empty" {
        COUNTS.begin().await;
        COUNTS.end(0);
        return (json, "null").into_response();
    }
    let input = match serde_json::from_slice(&body) {
        Ok(input) => input,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    match handle(steps, input, client, Options::default()).await {
        Ok(output) => (json, axum::Json(output)).into_response(),
        Err(InvocationError(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let server = arguments.first().context("usage: servo-bench handler URL")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let client: Arc<dyn DurableServiceClient> = Arc::new(ServoClient::new(server, None)?);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        std::thread::spawn(move || {
            counts::follow(&address);
            std::process::exit(0);
        });
        let app = Router::new().route("/2015-03-31/functions/{name}/invocations", post(invoked)).with_state(client);
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await?;
        Ok(())
    })
}
