//! Signals. What becomes of one is decided and recorded by the machine; that a caller may not send it is recorded, too.

use axum::Json as Body;
use axum::extract::State;
use servo_machine::{Command, Signal, SignalKind};

use servo_model::codes::{self, Code};
use servo_model::event::SignalType;
use servo_model::{Invalid, Permission, RunSnapshot, SecurityContext};
use servo_runtime::engine::Order;
use servo_wire::v1::{SignalAnswer, SignalRequest};

use super::scope;
use crate::app::App;
use crate::auth::{Viewer, needs};
use crate::body::Json;
use crate::error::{Answer, ApiError};
use crate::params::RunPath;

pub(crate) async fn send(
    State(app): State<App>,
    Viewer(principal): Viewer,
    run: RunPath,
    Json(request): Json<SignalRequest>,
) -> Answer<Body<SignalAnswer>> {
    let kind = kind_of(&request)?;
    let run_id = run.seen(&app, &principal).await?;
    let permission = permission(&kind);
    let denied = (!principal.may(permission)).then(|| needs(permission.role()));
    let signal = Signal {
        signal_id: request.signal_id.clone(),
        kind: kind.clone(),
        by: principal.subject.clone(),
        reason: request.reason,
        denied: denied.map(str::to_owned),
    };
    let order = Order::new(scope(&principal), run_id.clone(), Command::Signal(signal), "api");
    let outcome = app.runtime.engine().execute_with(order, RunSnapshot::whole).await;
    if let Some(reason) = denied {
        return Err(refused_sender(outcome, reason));
    }
    let outcome = outcome?;
    if let Some(refusal) = outcome.refusal {
        return Err(servo_runtime::Error::from(refusal).into());
    }
    if outcome.recorded == 0 {
        earlier_answer(&app, &principal, &run_id, &request.signal_id, &kind).await?;
        principal.audit.unchanged();
    }
    Ok(Body(SignalAnswer { accepted: true, snapshot: outcome.view }))
}

/// The same as for the actions of the serverless runtime API.
fn permission(kind: &SignalKind) -> Permission {
    match kind {
        SignalKind::Cancel => Permission::RunsCancel,
        SignalKind::RetryStep(_) | SignalKind::RetryRun => Permission::RunsRetry,
        _ => Permission::RunsControl,
    }
}

fn kind_of(request: &SignalRequest) -> Result<SignalKind, Invalid> {
    let takes_step = matches!(request.signal_type, SignalType::RetryStep | SignalType::SkipStep);
    let step = match (&request.step_id, takes_step) {
        (None, true) => return Err(Invalid::new("stepId", "is missing; this signal is about a step")),
        (Some(_), false) => return Err(Invalid::new("stepId", "is not for this signal, which is about the whole run")),
        (step, _) => step.clone(),
    };
    Ok(match (request.signal_type, step) {
        (SignalType::RetryStep, Some(step)) => SignalKind::RetryStep(step),
        (SignalType::SkipStep, Some(step)) => SignalKind::SkipStep(step),
        (SignalType::Pause, _) => SignalKind::Pause,
        (SignalType::Resume, _) => SignalKind::Resume,
        (SignalType::Cancel, _) => SignalKind::Cancel,
        (SignalType::Approve, _) => SignalKind::Approve,
        (SignalType::Message, _) => {
            let detail = "messages go to POST /api/serverless-runtime/v1/invocations/{id}:signal";
            return Err(Invalid::new("signalType", detail));
        }
        (SignalType::RetryRun | SignalType::RetryStep | SignalType::SkipStep, _) => SignalKind::RetryRun,
    })
}

/// 403 whatever the run thinks of the signal, unless there is no run or no answer.
fn refused_sender(
    outcome: Result<servo_runtime::engine::Outcome<RunSnapshot>, servo_runtime::Error>,
    reason: &'static str,
) -> ApiError {
    match outcome {
        Ok(_) | Err(servo_runtime::Error::Refused(_)) => ApiError::forbidden(reason),
        Err(error) => error.into(),
    }
}

/// The signal's id is known: the same signal gets the answer it got before, another one under its id gets none.
async fn earlier_answer(
    app: &App,
    principal: &SecurityContext,
    run_id: &servo_model::RunId,
    signal_id: &servo_model::SignalId,
    kind: &SignalKind,
) -> Answer<()> {
    let state = app.runtime.engine().state(&scope(principal), run_id).await?;
    let Some(record) = state.signals.get(signal_id) else { return Ok(()) };
    if record.signal_type != kind.signal_type() || record.step_id.as_ref() != kind.step_id() {
        return Err(ApiError::new(codes::SIGNAL_REJECTED).detail("this signalId was used for another signal"));
    }
    match &record.rejection {
        None => Ok(()),
        // The answer of a caller who might not send it is not this caller's.
        Some((code, _)) if code == codes::FORBIDDEN.code => {
            Err(ApiError::new(codes::SIGNAL_REJECTED)
                .detail("this signalId was refused to another sender; take a new one"))
        }
        Some((code, reason)) => Err(ApiError::new(code_of(code)).detail(reason.clone())),
    }
}

fn code_of(name: &str) -> Code {
    codes::ALL.iter().find(|code| code.code == name).copied().unwrap_or(codes::SIGNAL_REJECTED)
}
