//! Updates that break a rule: the service's own message, and nothing recorded.

use servo_machine::Refusal;
use servo_model::operation::{
    ErrorObject, OperationAction as A, OperationType as T, OperationUpdate, StepOptions, WaitOptions,
};

use super::world::{World, callback, cancel, context, ending, inside, invoke, step, wait};

fn with(mut update: OperationUpdate, change: impl FnOnce(&mut OperationUpdate)) -> OperationUpdate {
    change(&mut update);
    update
}

/// A world in which an operation of every type and state exists.
fn world() -> World {
    let mut world = World::running();
    let updates = vec![
        step("started", A::Start),
        step("done", A::Start),
        step("done", A::Succeed),
        step("pending", A::Start),
        step("pending", A::Retry),
        wait("wait", 100),
        wait("cancelled", 100),
        callback("callback", None, None),
        invoke("invoke", "g"),
        context("context", A::Start),
        context("closed", A::Start),
        context("closed", A::Succeed),
        with(inside(step("child", A::Start), "context"), |u| {
            u.name = Some("name".to_owned());
            u.sub_type = Some("Step".to_owned());
        }),
    ];
    world.checkpoint(updates).unwrap();
    world.checkpoint(vec![cancel("cancelled")]).unwrap();
    world
}

#[test]
fn every_broken_rule_has_its_message() {
    let table: Vec<(&str, Vec<OperationUpdate>)> = vec![
        ("Cannot checkpoint multiple EXECUTION updates.", vec![ending(A::Succeed), ending(A::Succeed)]),
        ("EXECUTION checkpoint must be the last update.", vec![ending(A::Succeed), step("n", A::Start)]),
        ("Invalid action for the given operation type.", vec![ending(A::Start)]),
        ("Cannot checkpoint multiple operations with the same ID.", vec![step("n", A::Start), step("n", A::Start)]),
        ("Cannot checkpoint multiple operations with the same ID.", vec![wait("n", 1), cancel("n")]),
        (
            "Cannot checkpoint multiple operations with the same ID.",
            vec![step("n", A::Start), step("n", A::Retry), step("n", A::Succeed)],
        ),
        (
            "Cannot checkpoint multiple operations with the same ID.",
            vec![step("started", A::Succeed), step("started", A::Fail)],
        ),
        (
            "Cannot checkpoint multiple operations with the same ID.",
            vec![step("started", A::Retry), step("started", A::Succeed)],
        ),
        (
            "Cannot checkpoint multiple operations with the same ID.",
            vec![context("context", A::Succeed), context("context", A::Fail)],
        ),
        ("Invalid parent operation id.", vec![inside(step("n", A::Start), "nowhere")]),
        ("Invalid parent operation id.", vec![inside(step("n", A::Start), "started")]),
        ("Inconsistent operation type.", vec![wait("started", 1)]),
        ("Inconsistent operation type.", vec![step("inv_1", A::Start)]),
        ("Inconsistent operation type.", vec![callback("inv_1", None, None)]),
        ("Invalid parent operation id.", vec![inside(step("n", A::Start), "inv_1")]),
        ("Inconsistent operation type.", vec![with(ending(A::Succeed), |u| u.id = "started".to_owned())]),
        (
            "Inconsistent operation name.",
            vec![with(ending(A::Succeed), |u| {
                u.id = "inv_1".to_owned();
                u.name = Some("other".to_owned());
            })],
        ),
        (
            "Inconsistent operation subtype.",
            vec![with(step("child", A::Succeed), |u| u.sub_type = Some("X".to_owned()))],
        ),
        ("Inconsistent operation name.", vec![with(step("child", A::Succeed), |u| u.name = Some("x".to_owned()))]),
        ("Inconsistent parent operation id.", vec![inside(step("child", A::Succeed), "closed")]),
        ("Invalid current STEP state to start.", vec![step("started", A::Start)]),
        ("Invalid current STEP state to start.", vec![step("pending", A::Start)]),
        ("Invalid current STEP state to close.", vec![step("done", A::Fail)]),
        ("Invalid current STEP state to close.", vec![step("new", A::Succeed)]),
        ("Invalid current STEP state to re-attempt.", vec![step("pending", A::Retry)]),
        ("Invalid action for the given operation type.", vec![step("started", A::Cancel)]),
        ("Invalid StepOptions for the given action.", vec![with(step("started", A::Retry), |u| u.step_options = None)]),
        (
            "Invalid StepOptions for the given action.",
            vec![with(step("started", A::Succeed), |u| {
                u.step_options = Some(StepOptions::after_seconds(1));
            })],
        ),
        (
            "Cannot provide both error and payload to RETRY a STEP.",
            vec![with(step("started", A::Retry), |u| u.payload = Some("1".to_owned()))],
        ),
        (
            "Cannot provide a Payload for FAIL action.",
            vec![with(step("started", A::Fail), |u| u.payload = Some(String::new()))],
        ),
        (
            "Cannot provide an Error for SUCCEED action.",
            vec![with(step("started", A::Succeed), |u| u.error = Some(ErrorObject::default()))],
        ),
        ("Cannot start a WAIT that already exist.", vec![wait("wait", 1)]),
        ("Cannot cancel a WAIT that does not exist or has already completed.", vec![cancel("new")]),
        ("Cannot cancel a WAIT that does not exist or has already completed.", vec![cancel("cancelled")]),
        ("Cannot start a CALLBACK that already exist.", vec![callback("callback", None, None)]),
        ("Cannot start a CHAINED_INVOKE operation that already exists.", vec![invoke("invoke", "g")]),
        (
            "Update for CHAINED_INVOKE operation requires ChainedInvokeOptions.",
            vec![OperationUpdate::new("n", T::ChainedInvoke, A::Start)],
        ),
        ("Cannot start a CONTEXT that already exist.", vec![context("context", A::Start)]),
        ("Invalid current CONTEXT state to close.", vec![context("closed", A::Fail)]),
        ("Invalid current CONTEXT state to close.", vec![context("new", A::Succeed)]),
        (
            "Invalid action for the given operation type.",
            vec![OperationUpdate::new("callback", T::Callback, A::Succeed)],
        ),
        ("Id has 1 to 64 characters of [a-zA-Z0-9-_].", vec![step("no spaces", A::Start)]),
        ("Id has 1 to 64 characters of [a-zA-Z0-9-_].", vec![step(&"x".repeat(65), A::Start)]),
        (
            "SubType has 1 to 32 characters of [a-zA-Z0-9-_].",
            vec![with(step("n", A::Start), |u| u.sub_type = Some("x".repeat(33)))],
        ),
        (
            "Name has 1 to 256 printable ASCII characters.",
            vec![with(step("n", A::Start), |u| u.name = Some("ü".to_owned()))],
        ),
        ("WaitSeconds is from 1 to 31622400.", vec![wait("n", 0)]),
        (
            "WaitSeconds is from 1 to 31622400.",
            vec![with(wait("n", 1), |u| u.wait_options = Some(WaitOptions::default()))],
        ),
        ("TimeoutSeconds is from 0 to 99999999.", vec![callback("n", Some(100_000_000), None)]),
        (
            "NextAttemptDelaySeconds is from 1 to 31622400.",
            vec![with(step("started", A::Retry), |u| {
                u.step_options = Some(StepOptions::after_seconds(0));
            })],
        ),
        (
            "NextAttemptDelayMillis rounds up to NextAttemptDelaySeconds.",
            vec![with(step("started", A::Retry), |u| {
                let options = StepOptions::after_seconds(1);
                u.step_options = Some(StepOptions { next_attempt_delay_millis: Some(u64::MAX), ..options });
            })],
        ),
        (
            "NextAttemptDelayMillis rounds up to NextAttemptDelaySeconds.",
            vec![with(step("started", A::Retry), |u| {
                let options = StepOptions::after_seconds(2);
                u.step_options = Some(StepOptions { next_attempt_delay_millis: Some(999), ..options });
            })],
        ),
        (
            "STEP output payload size must be less than or equal to 1048576 bytes.",
            vec![with(step("started", A::Succeed), |u| u.payload = Some("x".repeat(1_048_577)))],
        ),
        (
            "CHAINED_INVOKE input payload size must be less than or equal to 1048576 bytes.",
            vec![with(invoke("n", "g"), |u| u.payload = Some("x".repeat(1_048_577)))],
        ),
    ];
    for (message, updates) in table {
        let mut world = world();
        let before = world.state.clone();
        let refused = world.checkpoint(updates.clone()).unwrap_err();
        assert_eq!(refused, Refusal::Invalid(message.to_owned()), "{updates:?}");
        assert_eq!(world.state, before, "nothing was recorded");
        // One bad update spoils its whole call.
        let mut batch = vec![step("innocent", A::Start)];
        batch.extend(updates);
        assert!(world.checkpoint(batch).is_err());
        assert!(world.execution().operation("innocent").is_none());
    }
}

#[test]
fn ten_thousand_characters_of_error_are_fine_and_more_than_a_megabyte_is_not() {
    let mut world = world();
    let large =
        |size: usize| with(step("started", A::Fail), |u| u.error = Some(ErrorObject::new("E", "x".repeat(size))));
    assert!(world.checkpoint(vec![large(1_048_576)]).is_err());
    assert!(world.checkpoint(vec![large(10_000)]).is_ok());
}

/// API: an execution may be ended by its own id, or by one that SDKs make up.
#[test]
fn an_execution_is_ended_under_its_own_id_or_a_new_one() {
    for id in ["inv_1", "execution-result-1"] {
        let mut world = world();
        world.checkpoint(vec![with(ending(A::Succeed), |u| u.id = id.to_owned())]).unwrap();
        assert!(world.execution().head.ended.is_some(), "{id}");
    }
}

/// API: what the model says about the tenant and the trace of a chained invoke.
#[test]
fn a_chained_invoke_says_what_can_be_passed_on() {
    let call = |tenant: Option<&str>, trace: Option<&str>| {
        with(invoke("n", "g"), |u| {
            let options = u.chained_invoke_options.as_mut().unwrap();
            options.tenant_id = tenant.map(str::to_owned);
            options.trace_id = trace.map(str::to_owned);
        })
    };
    let (long_tenant, long_trace) = ("t".repeat(256), "t".repeat(8_192));
    for tenant in ["a", "Az09._:/=+-@ b", " ", &long_tenant] {
        assert_eq!(world().checkpoint(vec![call(Some(tenant), None)]).map(|_| ()), Ok(()), "{tenant}");
    }
    let message = "TenantId has 1 to 256 characters of [a-zA-Z0-9._:/=+-@ ].";
    for tenant in ["", "a!b#", "a\nb", "\t", "ü", "a,b", &format!("{long_tenant}t")] {
        let refused = world().checkpoint(vec![call(Some(tenant), None)]).unwrap_err();
        assert_eq!(refused, Refusal::Invalid(message.to_owned()), "{tenant}");
    }
    for trace in ["", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1", &long_trace] {
        assert_eq!(world().checkpoint(vec![call(None, Some(trace))]).map(|_| ()), Ok(()), "{trace}");
    }
    let message = "XAmznTraceId has at most 8192 printable ASCII characters.";
    for trace in ["a\nb", "a\r\nX: y", "ü", &format!("{long_trace}t")] {
        let refused = world().checkpoint(vec![call(None, Some(trace))]).unwrap_err();
        assert_eq!(refused, Refusal::Invalid(message.to_owned()), "{trace}");
    }
}
