//! What surrounds the operations: modes, batches, serdes, logs, plugins, helpers, pages of state.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use servo_sdk::{
    AttemptInfo, Backoff, BoxError, CheckpointBatcherConfig, CheckpointingMode, DurableContext, DurableError, Duration,
    InvocationEnd, InvocationInfo, InvocationStatus, LogContext, LogLevel, Logger, OperationInfo, Options, Plugin,
    ReplaySafeHelpers, SerDes, SerDesContext, SerDesError, StepConfig,
};

use crate::service::{Fault, World};

async fn ten_steps(_: (), ctx: DurableContext) -> Result<u32, DurableError> {
    let mut sum = 0;
    for number in 0..10 {
        sum += ctx.step(|_| Ok(number), None).await?;
    }
    Ok(sum)
}

/// DX-024: the modes differ in calls and in nothing else; a crash costs the optimistic one more.
#[test]
fn modes_differ_in_calls_only() {
    let run = |mode, fault: Option<usize>| {
        let mut world = World::new("null");
        if let Some(call) = fault {
            world = world.fault(call, Fault::CrashBefore);
        }
        let report = world.run_with(ten_steps, Options { checkpointing_mode: mode, ..world.options() });
        assert_eq!(report.result.as_deref(), Some("45"), "{mode:?}");
        world.calls().len()
    };
    assert_eq!(run(CheckpointingMode::Batched, None), 10);
    assert_eq!(run(CheckpointingMode::Optimistic, None), 1);
    assert!(run(CheckpointingMode::Eager, None) >= 10);
    for mode in [CheckpointingMode::Batched, CheckpointingMode::Optimistic, CheckpointingMode::Eager] {
        run(mode, Some(1));
    }
}

/// DX-025, DX-053: what waits together travels together, up to the limits.
#[test]
fn many_branches_share_calls() {
    let run = |batcher| {
        let world = World::new("null");
        let options = Options { batcher, ..world.options() };
        let report = world.run_with(
            async |_: (), ctx: DurableContext| {
                let items = (0..100_u32).collect();
                let batch = ctx
                    .map(items, async |child: DurableContext, item, _| Ok(child.step(|_| Ok(item), None).await?), None)
                    .await?;
                Ok(batch.success_count())
            },
            options,
        );
        assert_eq!(report.result.as_deref(), Some("100"));
        let most = world.calls().iter().map(|call| call.updates.len()).max().unwrap();
        (world.calls().len(), most)
    };
    // 301 updates in two calls; then the outcomes of the items, as far as their steps are recorded; then the map's.
    assert_eq!(run(CheckpointBatcherConfig::default()), (5, 250));
    let (calls, most) = run(CheckpointBatcherConfig { max_batch_operations: 20, ..CheckpointBatcherConfig::default() });
    assert!(calls >= 20 && most == 20, "{calls} calls of at most {most}");
}

/// Writes values backwards, so that nobody else can read them.
struct Backwards(Mutex<Vec<String>>);

impl SerDes<Value> for Backwards {
    fn serialize(&self, value: &Value, context: &SerDesContext) -> Result<String, SerDesError> {
        self.0.lock().unwrap().push(context.operation_id.clone());
        Ok(value.to_string().chars().rev().collect())
    }

    fn deserialize(&self, data: &str, _: &SerDesContext) -> Result<Value, SerDesError> {
        let text: String = data.chars().rev().collect();
        serde_json::from_str(&text).map_err(|error| SerDesError::Deserialization(error.to_string()))
    }
}

/// DX-016: a serdes of one's own writes what is recorded and reads it on replay.
#[test]
fn a_custom_serdes_is_used_both_ways() {
    let world = World::new("null");
    let serdes = Arc::new(Backwards(Mutex::default()));
    let report = world.run(async |_: (), ctx: DurableContext| {
        let config = StepConfig { serdes: Some(serdes.clone()), name: Some("s".into()), ..StepConfig::default() };
        let value: Vec<u32> = ctx.step(|_| Ok(vec![12, 34]), Some(config)).await?;
        ctx.wait(Duration::from_seconds(1), None).await?;
        Ok(value)
    });
    assert_eq!((report.result.as_deref(), report.invocations), (Some("[12,34]"), 2));
    let step = world.named("s");
    assert_eq!(step.step_details.unwrap().result.as_deref(), Some("]43,21["));
    assert_eq!(*serdes.0.lock().unwrap(), [step.id]);
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Logger for Lines {
    fn log(&self, level: LogLevel, message: &str, context: &LogContext<'_>) {
        assert!(context.durable_execution_arn.starts_with("arn:"));
        self.0.lock().unwrap().push(format!("{level:?} {message} {:?} {:?}", context.operation_name, context.attempt));
    }
}

/// DX-017: each record is written once, however often the handler is replayed.
#[test]
fn logs_are_silent_on_replay() {
    let world = World::new("null");
    let lines = Arc::new(Lines::default());
    let options = Options { logger: lines.clone(), ..world.options() };
    world.run_with(
        async |_: (), ctx: DurableContext| {
            ctx.logger().info("start");
            ctx.step(
                |step| {
                    step.logger().warn("inside");
                    Ok(())
                },
                Some(StepConfig { name: Some("s".into()), ..StepConfig::default() }),
            )
            .await?;
            ctx.logger().info("between");
            ctx.wait(Duration::from_seconds(1), None).await?;
            ctx.logger().info("end");
            Ok(())
        },
        options,
    );
    let expected =
        ["Info start None None", "Warn inside Some(\"s\") Some(1)", "Info between None None", "Info end None None"];
    assert_eq!(*lines.0.lock().unwrap(), expected);
}

/// With replay logging a record is written as often as its code runs, which a finished child's does not.
#[test]
fn logs_of_a_replay_can_be_had() {
    let world = World::new("null");
    let lines = Arc::new(Lines::default());
    let options = Options { logger: lines.clone(), replay_logging: true, ..world.options() };
    world.run_with(
        async |_: (), ctx: DurableContext| {
            ctx.logger().info("start");
            let child = |child: DurableContext| {
                child.logger().info("child");
                Ok(())
            };
            ctx.run_in_child_context(child, None).await?;
            ctx.wait(Duration::from_seconds(1), None).await
        },
        options,
    );
    assert_eq!(*lines.0.lock().unwrap(), ["Info start None None", "Info child None None", "Info start None None"]);
}

#[derive(Default)]
struct Witness(Mutex<Vec<String>>);

impl Witness {
    fn note(&self, text: String) -> Result<(), BoxError> {
        self.0.lock().unwrap().push(text);
        Err("plugins may fail".into())
    }
}

impl Plugin for Witness {
    fn on_invocation_start(&self, info: &InvocationInfo) -> Result<(), BoxError> {
        self.note(format!("invocation {}", info.is_first))
    }
    fn on_invocation_end(&self, info: &InvocationEnd) -> Result<(), BoxError> {
        self.note(format!("end {:?}", info.status))
    }
    fn on_operation_start(&self, info: &OperationInfo) -> Result<(), BoxError> {
        self.note(format!("start {:?} {}", info.name, info.is_replay))
    }
    fn on_operation_end(&self, info: &OperationInfo) -> Result<(), BoxError> {
        self.note(format!("done {:?} {:?} {:?}", info.name, info.status, info.result))
    }
    fn on_attempt_start(&self, info: &AttemptInfo) -> Result<(), BoxError> {
        self.note(format!("attempt {}", info.attempt))
    }
    fn on_attempt_end(&self, info: &AttemptInfo) -> Result<(), BoxError> {
        let error = info.error.as_ref().and_then(|error| error.error_message.clone());
        self.note(format!("attempted {} {error:?} {:?}", info.attempt, info.retry_after_seconds))
    }
    fn on_operation_change(&self, _: &OperationInfo) -> Result<(), BoxError> {
        panic!("plugins may panic")
    }
}

/// Hooks see invocations, operations and attempts; what they fail with changes nothing.
#[test]
fn plugins_watch_and_change_nothing() {
    let world = World::new("null");
    let witness = Arc::new(Witness::default());
    let options = Options { plugins: vec![witness.clone(), witness.clone()], ..world.options() };
    let report = world.run_with(
        async |_: (), ctx: DurableContext| {
            let retry = Backoff::fixed(2, std::time::Duration::from_secs(5));
            let config =
                StepConfig { name: Some("s".into()), retry_strategy: Some(Box::new(retry)), ..StepConfig::default() };
            ctx.step(|step| if step.attempt() == 1 { Err("first".into()) } else { Ok(2) }, Some(config)).await
        },
        options,
    );
    assert_eq!(report.status, InvocationStatus::Succeeded);
    let notes = witness.0.lock().unwrap().clone();
    let (one, two): (Vec<_>, Vec<_>) = notes.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).unzip();
    assert_eq!(one, two, "both plugins see everything");
    let expected = [
        "invocation true",
        "start Some(\"s\") false",
        "attempt 1",
        "attempted 1 Some(\"first\") Some(5)",
        "end Some(Pending)",
        "invocation false",
        "start Some(\"s\") false",
        "attempt 2",
        "attempted 2 None None",
        "done Some(\"s\") Some(Succeeded) Some(\"2\")",
        "end Some(Succeeded)",
    ];
    assert_eq!(one, expected);
}

/// DX-018: ids and times that are the same on every replay.
#[test]
fn helpers_are_stable() {
    let uuid = ReplaySafeHelpers::uuid_from_operation("op", 1);
    assert_eq!(uuid, ReplaySafeHelpers::uuid_from_operation("op", 1));
    assert_ne!(uuid, ReplaySafeHelpers::uuid_from_operation("op", 2));
    assert_ne!(uuid, ReplaySafeHelpers::uuid_from_operation("other", 1));
    let world = World::new("null");
    let began = world.clock.millis();
    let report = world.run(async |_: (), ctx: DurableContext| {
        ctx.wait(Duration::from_days(1), None).await?;
        Ok(ReplaySafeHelpers::timestamp_from_execution(ctx.execution_state()))
    });
    assert_eq!(report.result, Some(began.to_string()));
}

/// DX-040: a state in pages, the first of them empty, is read to its end before the handler runs.
#[test]
fn pages_are_read_before_the_handler_runs() {
    let world = World::new("null").paged(2);
    let report = world.run(async |_: (), ctx: DurableContext| {
        let sum = ten_steps((), ctx.clone()).await?;
        ctx.wait(Duration::from_seconds(1), None).await?;
        Ok(sum)
    });
    assert_eq!((report.result.as_deref(), report.invocations), (Some("45"), 2));
    assert_eq!(world.calls().len(), 11, "no step ran twice");
}

/// A task that outlives its invocation learns that it is over, and cannot hold it.
#[test]
fn a_stray_task_is_let_go() {
    let world = World::new("null");
    let stray = Arc::new(Mutex::new(None));
    let handler = async |_: (), ctx: DurableContext| {
        let wait = ctx.wait(Duration::from_seconds(5), None);
        *stray.lock().unwrap() = Some(ctx.clone());
        wait.await
    };
    let answer = world.invoke(&handler, world.options()).unwrap().unwrap();
    assert_eq!(answer.status, InvocationStatus::Pending);
    let ctx = stray.lock().unwrap().take().unwrap();
    let outcome = world.clock.drive(ctx.wait(Duration::from_seconds(1), None), || false);
    assert!(matches!(outcome, Some(Err(DurableError::Suspend { .. }))), "{outcome:?}");
}
