//! What goes wrong and what becomes of it: panics, refusals, sizes, retries.

use std::sync::atomic::{AtomicUsize, Ordering};

use servo_sdk::{
    Backoff, DurableContext, DurableError, Duration, ErrorObject, InvocationStatus, OperationStatus, RetryContext,
    RetryDecision, ServiceError, StepConfig, TerminationReason, Verdict,
};

use crate::service::{Fault, World};

fn once(name: &str) -> Option<StepConfig> {
    let retry_strategy: Option<Box<dyn servo_sdk::RetryStrategy>> = Some(Box::new(Backoff::none()));
    Some(StepConfig { name: Some(name.into()), retry_strategy, ..StepConfig::default() })
}

/// DX-072: a panic in a step is a failed step, with message and place; the handler can catch it.
#[test]
fn a_panic_in_a_step_is_its_error() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let print = |_| {
            let paper: Result<u32, String> = "none".parse().map_err(|_| "out of paper".to_owned());
            Ok(paper.unwrap())
        };
        let outcome = ctx.step(print, once("print")).await;
        ctx.wait(Duration::from_seconds(1), None).await?;
        let Err(DurableError::UserCode { message, error_type, .. }) = outcome else {
            return Ok("caught nothing".to_owned());
        };
        Ok(format!("{error_type}: {message}"))
    });
    let shown = report.result.unwrap();
    assert!(shown.starts_with("\"Panic: panicked at ") && shown.contains("failures.rs:"), "{shown}");
    assert!(shown.contains("out of paper"), "{shown}");
    assert_eq!(world.named("print").status, OperationStatus::Failed);
}

/// DX-072: a panic outside of steps fails the execution and no more.
#[test]
fn a_panic_in_the_handler_fails_the_execution() {
    async fn handler(text: String, _: DurableContext) -> Result<(), DurableError> {
        panic!("no {text}")
    }
    let error = World::new("\"coffee\"").run(handler).error.unwrap();
    assert_eq!(error.error_type.as_deref(), Some("Panic"));
    let message = error.error_message.unwrap();
    assert!(message.contains("failures.rs:") && message.contains("no coffee"), "{message}");
}

/// DX-023: a retry is a record with a delay, and the execution is suspended meanwhile.
#[test]
fn a_retry_suspends_and_keeps_its_rule() {
    let world = World::new("null");
    let report = world.run(async |_: (), ctx: DurableContext| {
        let rule = |context: &RetryContext<'_>| {
            assert_eq!((context.failure.error_type, context.failure.message), ("Busy", "line is busy"));
            if context.attempt < 3 {
                RetryDecision::Retry(std::time::Duration::from_secs(3600))
            } else {
                RetryDecision::GiveUp
            }
        };
        let config =
            StepConfig { retry_strategy: Some(Box::new(rule)), name: Some("call".into()), ..StepConfig::default() };
        ctx.step::<(), _, _, _>(|_| Err(DurableError::user("Busy", "line is busy").into()), Some(config)).await
    });
    assert_eq!((report.status, report.invocations), (InvocationStatus::Failed, 3));
    let error = report.error.unwrap();
    assert_eq!((error.error_type.as_deref(), error.error_message.as_deref()), (Some("Busy"), Some("line is busy")));
    let delays: Vec<_> =
        world.calls().iter().flat_map(|call| call.updates.clone()).filter_map(|update| update.step_options).collect();
    assert_eq!(delays.iter().map(|options| options.next_attempt_delay_seconds).collect::<Vec<_>>(), [Some(3600); 2]);
    assert_eq!(world.calls().last().unwrap().at - world.calls()[0].at, 2 * 3_600_000);
}

/// DX-073: a step's result over the limit fails the step, with what to do; it is not tried again.
#[test]
fn a_result_that_is_too_large_fails_the_step() {
    let world = World::new("null");
    let runs = AtomicUsize::new(0);
    let report = world.run(async |_: (), ctx: DurableContext| {
        ctx.step(
            |_| {
                runs.fetch_add(1, Ordering::SeqCst);
                Ok("x".repeat(1024 * 1024))
            },
            None,
        )
        .await
    });
    assert_eq!((report.status, runs.load(Ordering::SeqCst)), (InvocationStatus::Failed, 1));
    let error = report.error.unwrap();
    assert_eq!(error.error_type.as_deref(), Some("SizeLimitError"));
    assert!(error.error_message.unwrap().contains("store it elsewhere"));
}

/// DX-073: a result over the response limit is recorded on the execution, and the answer stays small.
#[test]
fn a_large_answer_is_recorded() {
    let world = World::new("null");
    let report = world.run(async |_: (), _: DurableContext| Ok("x".repeat(6 * 1024 * 1024)));
    assert_eq!(report.output.result.as_deref(), Some(""));
    assert_eq!(report.result.map(|text| text.len()), Some(6 * 1024 * 1024 + 2));
    let small = World::new("null");
    small.run(async |_: (), _: DurableContext| Ok("x".repeat(6 * 1024 * 1024 - 60)));
    assert_eq!(small.attempts(), 0, "just under the limit nothing is recorded");
}

/// DX-071: what each refusal does to the execution.
#[test]
fn refusals_repeat_reinvoke_or_fail() {
    async fn handler(_: (), ctx: DurableContext) -> Result<u32, DurableError> {
        ctx.step(|_| Ok(1), None).await
    }
    let refused = World::new("null").fault(1, Fault::Refused).run(handler);
    assert_eq!((refused.status, refused.invocations), (InvocationStatus::Failed, 1));
    assert_eq!(refused.error.unwrap().error_type.as_deref(), Some("CheckpointError"));

    for spelling in ["Invalid checkpoint token", "Invalid Checkpoint Token: x"] {
        let stale = World::new("null").fault(1, Fault::StaleToken(spelling)).run(handler);
        assert_eq!((stale.result.as_deref(), stale.reinvocations), (Some("1"), 1));
    }
    for fault in [Fault::Throttled, Fault::Unavailable, Fault::LostAnswer] {
        let world = World::new("null").fault(1, fault).fault(2, fault);
        let repeated = world.run(handler);
        assert_eq!((repeated.result.as_deref(), repeated.invocations), (Some("1"), 1), "{fault:?}");
        assert_eq!(world.calls().len(), 1, "a repeated call is carried out once");
    }
    // A service that stays away ends the invocation, not the execution.
    let mut world = World::new("null");
    for call in 1..=8 {
        world = world.fault(call, Fault::Unavailable);
    }
    let waited = world.run(handler);
    assert_eq!((waited.result.as_deref(), waited.reinvocations), (Some("1"), 1));
}

/// A service that takes back the right to record ends the invocation as pending, and nothing else is sent.
#[test]
fn a_withdrawn_token_is_a_pause() {
    let world = World::new("null").fault(2, Fault::Withdrawn);
    let handler = async |_: (), ctx: DurableContext| {
        for _ in 0..4 {
            ctx.step(|_| Ok(()), None).await?;
        }
        Ok(())
    };
    let answer = world.invoke(&handler, world.options()).unwrap().unwrap();
    assert_eq!((answer.status, world.attempts()), (InvocationStatus::Pending, 2));
    assert_eq!(world.run(handler).status, InvocationStatus::Succeeded);
}

/// DX-071: errors that never help by waiting, and errors that do.
#[test]
fn verdicts_on_service_errors() {
    let refused = |status, code: &str, message: &str| ServiceError::Refused {
        status,
        code: code.into(),
        message: message.into(),
    };
    let cases = [
        (refused(429, "TooManyRequestsException", ""), Verdict::Retry),
        (refused(503, "ServiceException", ""), Verdict::Retry),
        (refused(502, "KMSDisabledException", ""), Verdict::Fail),
        (refused(400, "InvalidParameterValueException", "Invalid checkpoint token"), Verdict::Reinvoke),
        (refused(400, "InvalidParameterValueException", "Invalid Checkpoint Token"), Verdict::Reinvoke),
        (refused(400, "InvalidParameterValueException", "Invalid marker"), Verdict::Fail),
        (refused(404, "ResourceNotFoundException", ""), Verdict::Fail),
        (ServiceError::Unreachable("reset".into()), Verdict::Retry),
        (ServiceError::Unreadable("unknown variant `PAUSED`".into()), Verdict::Fail),
    ];
    for (error, verdict) in cases {
        assert_eq!(error.verdict(), verdict, "{error}");
    }
}

/// DX-070: every variant that can be recorded reads back as itself.
#[test]
fn recorded_errors_read_back() {
    let message = || "m".to_owned();
    let reasons = [
        TerminationReason::UnhandledError,
        TerminationReason::InvocationError,
        TerminationReason::ExecutionError,
        TerminationReason::CheckpointFailed,
        TerminationReason::NonDeterministicExecution,
        TerminationReason::StepInterrupted,
        TerminationReason::CallbackError,
        TerminationReason::SerializationError,
        TerminationReason::SizeLimitExceeded,
    ];
    let mut errors = vec![
        DurableError::Checkpoint { message: message(), is_retriable: true, aws_error: None },
        DurableError::Callback {
            message: message(),
            callback_id: Some("c".into()),
            status: Some(OperationStatus::TimedOut),
        },
        DurableError::NonDeterministic { message: message(), operation_id: Some("o".into()) },
        DurableError::Validation { message: message() },
        DurableError::SerDes { message: message() },
        DurableError::OrphanedChild { message: message(), operation_id: "o".into() },
        DurableError::UserCode { message: message(), error_type: "T".into(), stack_trace: Some("a\nb".into()) },
        DurableError::SizeLimit { message: message() },
        DurableError::Throttling { message: message() },
        DurableError::ResourceNotFound { message: message() },
    ];
    errors.extend(reasons.map(|termination_reason| DurableError::Execution { message: message(), termination_reason }));
    errors
        .extend(reasons.map(|termination_reason| DurableError::Invocation { message: message(), termination_reason }));
    for error in errors {
        assert_eq!(DurableError::from_error_object(&error.to_error_object()), error);
    }
    assert_eq!(DurableError::from_error_object(&ErrorObject::default()), DurableError::user("Error", ""));
}

/// DX-015: names are checked before anything is recorded.
#[test]
fn names_are_printable_and_short() {
    for name in ["", "tab\there", "ü", &"x".repeat(257)] {
        let world = World::new("null");
        let name = name.to_owned();
        let report =
            world.run(async |_: (), ctx: DurableContext| ctx.wait(Duration::from_seconds(1), Some(&name)).await);
        assert_eq!(report.error.unwrap().error_type.as_deref(), Some("ValidationError"));
        assert_eq!(world.attempts(), 0);
    }
}

/// An event that does not have the handler's type fails the execution; another attempt would not help.
#[test]
fn a_wrong_event_fails() {
    let report = World::new("\"text\"").run(async |number: u32, _: DurableContext| Ok(number));
    assert_eq!(report.error.unwrap().error_type.as_deref(), Some("SerDesError"));
}

/// DX-080: nobody goes on before the service has accepted his record, and nobody at all when it refuses.
#[test]
fn nobody_goes_on_without_the_record() {
    let world = World::new("null").fault(2, Fault::Refused);
    let (behind, bodies) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let report = world.run(async |_: (), ctx: DurableContext| {
        let one = async |number: usize| {
            let recorded: usize = ctx
                .step(
                    |_| {
                        bodies.fetch_add(1, Ordering::SeqCst);
                        Ok(number)
                    },
                    None,
                )
                .await?;
            assert!(!world.calls().is_empty(), "released before the call was carried out");
            behind.fetch_add(1, Ordering::SeqCst);
            let _: usize = ctx.step(|_| Ok(recorded), None).await?;
            behind.fetch_add(100, Ordering::SeqCst);
            Ok::<_, DurableError>(())
        };
        futures_util::future::try_join3(one(1), one(2), one(3)).await.map(|_| ())
    });
    assert_eq!((report.status, bodies.load(Ordering::SeqCst)), (InvocationStatus::Failed, 3));
    assert_eq!(behind.load(Ordering::SeqCst), 3, "all three passed the first call and none the second");
}

/// DX-020: the defaults of every configuration.
#[test]
fn configurations_have_defaults() {
    use servo_sdk::{
        CallbackConfig, CheckpointBatcherConfig, CheckpointingMode, CompletionConfig, ContextConfig, InvokeConfig,
        MapConfig, Options, ParallelConfig, StepSemantics,
    };
    let step = StepConfig::default();
    assert!(step.retry_strategy.is_none() && step.serdes.is_none() && step.name.is_none());
    assert_eq!(step.step_semantics, StepSemantics::AtLeastOncePerRetry);
    let callback = CallbackConfig::default();
    assert!(callback.timeout_seconds.is_none() && callback.heartbeat_timeout_seconds.is_none());
    let invoke = InvokeConfig::<u32, u32>::default();
    assert!(invoke.serdes_payload.is_none() && invoke.serdes_result.is_none() && invoke.tenant_id.is_none());
    let map = MapConfig::default();
    assert!(map.max_concurrency.is_none() && map.item_batcher.is_none() && map.serdes.is_none());
    assert_eq!(map.completion_config, CompletionConfig::all_completed());
    assert!(ParallelConfig::default().max_concurrency.is_none() && !ContextConfig::default().replay_children);
    let options = Options::default();
    assert_eq!(options.checkpointing_mode, CheckpointingMode::Batched);
    let batcher = CheckpointBatcherConfig::default();
    assert_eq!((batcher.max_batch_size_bytes, batcher.max_batch_operations), (750 * 1024, usize::MAX));
    assert_eq!(batcher.max_batch_time, std::time::Duration::from_secs(1));
}
