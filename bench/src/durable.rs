//! Durable functions with the engine in the same program: steps per second, and what a step costs when a run is long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use servo_adapter::{HandlerCall, HandlerFailure, Handlers};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::{FunctionName, TenantId};
use servo_runtime::executions::{Executions, StartFunction};
use servo_runtime::{Ids, InProcessBus, Parts, RuntimeConfig, SystemClock, Tasks};
use servo_sdk::{DurableContext, DurableError, DurableServiceClient, Options, ServiceError, async_trait, handle};
use servo_store::Store;
use servo_wire::lambda::{CheckpointRequest, CheckpointResponse, GetStateResponse};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::stats::median;
use crate::{Args, sqlite};

const STEPS: i64 = 10;
const LONG: i64 = 1_000;
const CONCURRENT: usize = 64;

/// The engine as a client, without a server between.
struct InProcess(Executions);

#[async_trait]
impl DurableServiceClient for InProcess {
    async fn checkpoint(&self, arn: &str, request: CheckpointRequest) -> Result<CheckpointResponse, ServiceError> {
        self.0.checkpoint(&TenantId::default_tenant(), arn, request).await.map_err(|refused| refusal(&refused))
    }

    async fn get_state(&self, arn: &str, token: &str, marker: &str) -> Result<GetStateResponse, ServiceError> {
        let tenant = TenantId::default_tenant();
        self.0.state(&tenant, arn, token, Some(marker), Some(1_000)).await.map_err(|refused| refusal(&refused))
    }
}

fn refusal(refused: &servo_runtime::executions::Refused) -> ServiceError {
    let (status, code) = (refused.name.status(), refused.name.as_str().to_owned());
    ServiceError::Refused { status, code, message: refused.message.clone() }
}

#[derive(Default)]
struct Workflows(OnceCell<Executions>);

#[async_trait]
impl Handlers for Workflows {
    async fn call(&self, call: HandlerCall) -> Result<String, HandlerFailure> {
        let crashed = |error: String| HandlerFailure::crashed("Runtime.Error", error);
        let input = serde_json::from_str(&call.payload).map_err(|error| crashed(error.to_string()))?;
        let executions = self.0.get().ok_or_else(|| crashed("not started".to_owned()))?.clone();
        let output = handle(workflow, input, Arc::new(InProcess(executions)), Options::default()).await;
        let output = output.map_err(|error| crashed(error.to_string()))?;
        serde_json::to_string(&output).map_err(|error| crashed(error.to_string()))
    }
}

/// A negative number is a wait of so many seconds.
/// As many steps as its input says, each with a result of 100 bytes; the time of each hundred at the end.
async fn workflow(steps: i64, ctx: DurableContext) -> Result<Vec<u64>, DurableError> {
    if steps < 0 {
        ctx.wait(servo_sdk::Duration::from_seconds(steps.unsigned_abs()), None).await?;
        return Ok(Vec::new());
    }
    let result = "x".repeat(98);
    let mut times = Vec::new();
    let mut start = Instant::now();
    for step in 1..=steps {
        let _: String = ctx.step(|_| Ok(result.clone()), None).await?;
        if step % 100 == 0 {
            times.push(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
            start = Instant::now();
        }
    }
    Ok(times)
}

pub(crate) async fn start(store: Arc<dyn Store>) -> Result<(servo_runtime::Runtime, Executions)> {
    start_with(store, 1_000_000).await
}

/// With so many active executions allowed.
pub(crate) async fn start_with(store: Arc<dyn Store>, active: u32) -> Result<(servo_runtime::Runtime, Executions)> {
    let mut config = RuntimeConfig::default();
    config.overload.default.active_runs_max = active;
    let workflows = Arc::new(Workflows::default());
    let runtime = servo_runtime::Runtime::start(Parts {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(Ids::from_os()),
        tasks: Tasks::on_tokio(),
        bus: Arc::new(InProcessBus::default()),
        adapters: Vec::new(),
        handlers: workflows.clone(),
        config,
    })
    .await?;
    let executions = runtime.executions().clone();
    let _ = workflows.0.set(executions.clone());
    let spec = serde_json::to_string(&FunctionSpec::new(Reach::InProcess))?;
    store.put_function(&TenantId::default_tenant(), &FunctionName::parse("bench")?, &spec).await?;
    while runtime.fence().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok((runtime, executions))
}

/// Starts one; a negative input waits.
pub(crate) async fn begin(executions: &Executions, input: i64) -> Result<servo_model::RunId> {
    let tenant = TenantId::default_tenant();
    let function = executions.resolve(&tenant, "bench", None).await?;
    let begun = executions
        .start(StartFunction {
            tenant: tenant.clone(),
            subject: "bench".to_owned(),
            function,
            name: None,
            input: Some(input.to_string()),
            tenant_id: None,
            trace: None,
            synchronous: true,
        })
        .await?;
    Ok(begun.run_id)
}

async fn run_one(executions: &Executions, steps: i64) -> Result<String> {
    let (tenant, run_id) = (TenantId::default_tenant(), begin(executions, steps).await?);
    let ended = executions.wait(&tenant, &run_id, Duration::from_secs(600)).await?.context("did not end")?;
    anyhow::ensure!(ended.error.is_none(), "the workflow failed: {:?}", ended.error);
    ended.result.context("no result")
}

/// Workflows one after the other in so many lanes, for a while; gives workflows per second.
async fn lanes(executions: &Executions, lanes: usize, seconds: f64) -> Result<(f64, Vec<f64>)> {
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..lanes {
        let executions = executions.clone();
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while start.elapsed().as_secs_f64() < seconds {
                let one = Instant::now();
                run_one(&executions, STEPS).await?;
                times.push(one.elapsed().as_secs_f64() * 1e6);
            }
            anyhow::Ok(times)
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of workflows")]
    Ok((times.len() as f64 / start.elapsed().as_secs_f64(), times))
}

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let store: Arc<dyn Store> = Arc::new(sqlite::open(dir.path())?);
    let seconds = args.seconds;
    let (many, one, times, long) = runtime.block_on(async {
        let (engine, executions) = start(store).await?;
        lanes(&executions, CONCURRENT, 0.5).await?;
        let (many, _) = lanes(&executions, CONCURRENT, seconds).await?;
        let (one, times) = lanes(&executions, 1, seconds).await?;
        let long: Vec<u64> = serde_json::from_str(&run_one(&executions, LONG).await?)?;
        engine.stop().await;
        anyhow::Ok((many, one, times, long))
    })?;
    let steps = STEPS as f64;
    println!("## Durable functions, engine in the program (SQLite)\n");
    println!("| {STEPS}-step workflows, results of 100 bytes | steps/s | p50 per step µs |\n|---|---|---|");
    println!("| {CONCURRENT} at once | {:.0} | |", many * steps);
    println!("| one at a time | {:.0} | {:.0} |\n", one * steps, median(&times) / steps);
    let (first, last) = (long.first().copied().unwrap_or(0), long.last().copied().unwrap_or(0));
    println!("| one workflow of {LONG} steps | µs per step |\n|---|---|");
    println!("| first 100 | {:.0} |\n| last 100 | {:.0} |\n", first as f64 / 100.0, last as f64 / 100.0);
    Ok(())
}
