//! Random plans and requests. Small, because small programs find the same bugs and can be read.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use servo_canon::fingerprint;
use servo_machine::{Command, Signal, SignalKind};
use servo_model::ids::Name;
use servo_model::plan::RunContext;
use servo_model::{PlanId, PlanRef, RunId, SignalId, StepId, TenantId, Timestamp};
use servo_runtime::engine::{Order, StartRequest};
use servo_runtime::executions::{Executions, Refused, StartFunction};
use servo_store::Scope;

use crate::dice::Dice;
use crate::workers::{FUNCTION, Program};

const TENANTS: [&str; 2] = ["acme", "bolt"];

/// A request to start a random plan. Request ids come from a small set, so that some come twice.
pub(super) fn request(dice: &mut Dice, now: Timestamp) -> StartRequest {
    let id = dice.percent(60).then(|| dice.below(30));
    // What an id asks for is always the same, as with a client that repeats itself.
    let mut own = Dice::new(id.unwrap_or_else(|| dice.below(u64::MAX)));
    let steps = steps(&mut own);
    let document = json!({"planId": "plan", "planVersion": "1", "schemaVersion": "v1", "steps": steps});
    let approval_required = own.percent(15);
    let delayed = id.is_none() && dice.percent(15);
    StartRequest {
        plan_ref: PlanRef {
            uri: "inline:plan".to_owned(),
            sha256: fingerprint(&document).expect("a plan of strings and small numbers has a digest"),
            schema_version: "v1".to_owned(),
            plan_id: PlanId::parse("plan").expect("a plain word is a plan id"),
            plan_version: "1".to_owned(),
        },
        plan: RawValue::from_string(document.to_string()).expect("a JSON document is JSON"),
        context: RunContext {
            tenant_id: TenantId::parse(own.pick::<&str>(&TENANTS)).expect("a plain word is a tenant id"),
            project_id: Name::parse("default").expect("a plain word is a name"),
            environment_id: Name::parse("default").expect("a plain word is a name"),
            triggered_by: None,
            trigger_source: None,
        },
        run_request_id: id.map(|id| format!("request-{id}")),
        approval_required,
        not_before: delayed.then(|| now.plus(std::time::Duration::from_millis(dice.below(20_000)))),
        subject: "simulator".to_owned(),
    }
}

/// One to six steps, each depending on some before it.
fn steps(dice: &mut Dice) -> Value {
    let count = dice.between(1, 6);
    let steps: Vec<Value> = (0..count)
        .map(|number| {
            let depends: Vec<String> = (0..number).filter(|_| dice.percent(40)).map(|on| format!("s{on}")).collect();
            let sleep = if dice.percent(20) { dice.below(8_000) } else { dice.below(400) };
            let mut with = json!({"sleepMs": sleep});
            if dice.percent(25) {
                with["failAttempts"] = json!(dice.between(1, 2));
            }
            let mut step = json!({"stepId": format!("s{number}"), "dependsOn": depends, "with": with});
            if dice.percent(70) {
                step["retry"] =
                    json!({"maxAttempts": dice.between(2, 5), "delayMs": dice.below(4) * dice.below(1_500)});
            }
            if dice.percent(10) {
                step["timeoutMs"] = json!(dice.between(100, 5_000));
            }
            step
        })
        .collect();
    Value::Array(steps)
}

/// A random signal to a run. The number makes its id.
pub(super) fn signal(dice: &mut Dice, run_id: &RunId, number: u64) -> Order {
    let step = || StepId::parse("s0").expect("a plain word is a step id");
    let kind = match dice.below(100) {
        0..35 => SignalKind::Pause,
        35..65 => SignalKind::Resume,
        65..72 => SignalKind::Cancel,
        72..82 => SignalKind::Approve,
        82..88 => SignalKind::RetryRun,
        88..94 => SignalKind::RetryStep(step()),
        _ => SignalKind::SkipStep(step()),
    };
    order(run_id, &format!("signal-{number}"), kind)
}

pub(super) fn order(run_id: &RunId, id: &str, kind: SignalKind) -> Order {
    let signal = Signal {
        signal_id: SignalId::parse(id).expect("a plain word is a signal id"),
        kind,
        by: "simulator".to_owned(),
        reason: None,
        denied: None,
    };
    Order::new(Scope::System, run_id.clone(), Command::Signal(signal), "api")
}

/// Starts an execution under its name, as a client of the API does.
pub(super) async fn start(executions: &Executions, program: &Program) -> Result<RunId, Refused> {
    let tenant = TenantId::default_tenant();
    let function = executions.resolve(&tenant, FUNCTION, None).await?;
    let call = StartFunction {
        tenant,
        subject: "simulator".to_owned(),
        function,
        name: Some(program.name.clone()),
        input: Some(program.input()),
        tenant_id: None,
        client_context: None,
        trace: None,
        synchronous: false,
    };
    Ok(executions.start(call).await?.run_id)
}
