//! The measured handlers inside the server's process: `servo-bench together PORT FOLDER`. The engine, the HTTP server and the
//! handlers are the ones of the other ways; only checkpoints need no connection.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use servo_embedded::Servo;
use servo_runtime::serverless::{Platform, Serverless};
use servo_runtime::{Shutdown, Tasks};
use servo_sdk::{DurableContext, DurableError};
use servo_server::auth::Auth;
use servo_server::config::ServerConfig;
use servo_server::{App, PlanSources};
use tokio::net::TcpListener;

use super::counts::{self, COUNTS};

async fn empty(_: serde_json::Value, _ctx: DurableContext) -> Result<(), DurableError> {
    COUNTS.begin().await;
    COUNTS.end(0);
    Ok(())
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [port, folder] = arguments else { anyhow::bail!("usage: servo-bench together PORT FOLDER") };
    let port: u16 = port.parse().context("the port is a number")?;
    // As many threads as the product has.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let servo = Servo::builder().sqlite(folder).function("steps", super::steps).function("empty", empty);
        let servo = servo.start().await?;
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?.to_string();
        let config = ServerConfig::default();
        let platform = Platform::new(servo.runtime().engine());
        let serverless = Serverless::new(servo.runtime().executions().clone(), platform);
        let app = App::new(servo_server::Parts {
            sight: serverless.sight().clone(),
            serverless: Arc::new(serverless),
            runtime: servo.runtime().clone(),
            auth: Auth::Development,
            plan_sources: PlanSources::new(&[], 1 << 20)?,
            host: Arc::new(servo_server::host::NoHost),
            loopback: true,
            dev: false,
            config,
            shutdown: Shutdown::default(),
        });
        let (app, connections) = (app.await?, Tasks::on_tokio());
        while servo.runtime().fence().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        std::thread::spawn(move || {
            counts::follow(&address);
            std::process::exit(0);
        });
        servo_server::serve(listener, None, app, &connections).await;
        Ok(())
    })
}
