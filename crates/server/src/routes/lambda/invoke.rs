//! Invoke: starts an execution, and waits for it if asked to.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use servo_model::execution::Ended;
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::{Role, TraceContext, trace};
use servo_runtime::executions::{Begun, StartFunction};
use servo_wire::lambda::ErrorName;

use super::{LambdaAnswer, LambdaError, read};
use crate::app::App;

const ARN: HeaderName = HeaderName::from_static("x-amz-durable-execution-arn");
const VERSION: HeaderName = HeaderName::from_static("x-amz-executed-version");
const FUNCTION_ERROR: HeaderName = HeaderName::from_static("x-amz-function-error");
/// The longest a caller waits for an execution, as in the published API.
const WAIT_MAX: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    RequestResponse,
    Event,
    DryRun,
}

pub(super) async fn invoke(State(app): State<App>, request: Request) -> LambdaAnswer<Response> {
    let mut call = read(&app, request, Role::Operator).await?;
    let kind = match call.header("x-amz-invocation-type")? {
        None | Some("RequestResponse") => Kind::RequestResponse,
        Some("Event") => Kind::Event,
        Some("DryRun") => Kind::DryRun,
        Some(_) => return Err(LambdaError::invalid("X-Amz-Invocation-Type is RequestResponse, Event or DryRun")),
    };
    // It may be waited for a quarter of an hour, in which nobody needs the input here.
    let input = std::mem::take(&mut call.body);
    let executions = app.runtime.executions();
    let tenant = &call.principal.tenant;
    let function = executions.resolve(tenant, &call.subject, call.text("Qualifier")).await?;
    if !input.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(&input).is_err() {
        let message = "Could not parse request body into json";
        return Err(LambdaError::new(ErrorName::InvalidRequestContent, message));
    }
    let text = |name: &str| call.header(name).map(|value| value.map(str::to_owned));
    // Below the request's own span, where spans are recorded; else what the caller said goes on as it is.
    let own = call.principal.trace.filter(|_| app.runtime.engine().spans().is_some()).map(TraceContext::traceparent);
    // Behind a space would be what is recorded as `tracestate`, which has a header of its own.
    let said = text("traceparent")?.filter(|text| !text.trim().contains(' ') && TraceContext::parse(text).is_some());
    let w3c = own.or(said).map(|parent| trace::with_state(parent, call.principal.trace_state.as_deref()));
    let start = StartFunction {
        tenant: tenant.clone(),
        subject: call.principal.subject.clone(),
        function,
        name: text("x-amz-durable-execution-name")?,
        input: (!input.is_empty()).then_some(input),
        tenant_id: text("x-amz-tenant-id")?,
        client_context: text("x-amz-client-context")?,
        trace: w3c.or(text("x-amzn-trace-id")?),
        synchronous: kind != Kind::Event,
    };
    if kind == Kind::DryRun {
        start.check()?;
        call.principal.audit.unchanged();
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let begun = executions.start(start).await?;
    if begun.created {
        call.principal.audit.done(begun.run_id.as_str());
    } else {
        call.principal.audit.object(begun.run_id.as_str());
        call.principal.audit.unchanged();
    }
    // One that waits for its execution must not keep the handler's own calls out.
    call.principal.seat.leave();
    let response = match kind {
        Kind::Event => StatusCode::ACCEPTED.into_response(),
        Kind::RequestResponse | Kind::DryRun => match executions.wait(tenant, &begun.run_id, WAIT_MAX).await? {
            Some(ended) => result(ended),
            None => {
                let message = "the execution did not end within 15 minutes; it goes on";
                return Err(LambdaError::new(ErrorName::Service, message));
            }
        },
    };
    Ok(named(response, &begun))
}

fn named(mut response: Response, begun: &Begun) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [(ARN, &begun.arn), (VERSION, &begun.version)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    response
}

/// The result as the function gave it, or the document that its runtime wrote about its error.
fn result(ended: Ended) -> Response {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    if ended.status == ExecutionStatus::Succeeded {
        return (StatusCode::OK, json, Body::from(ended.result.unwrap_or_else(|| "null".to_owned()))).into_response();
    }
    let document = ended.document.unwrap_or_else(|| document(ended.status, ended.error.unwrap_or_default()));
    let failed = [(FUNCTION_ERROR, HeaderValue::from_static("Unhandled"))];
    (StatusCode::OK, json, failed, Body::from(document)).into_response()
}

/// Of an error that no runtime of the function wrote about: what is known of it, as runtimes would write it.
fn document(status: ExecutionStatus, error: ErrorObject) -> String {
    let mut document = json!({
        "errorType": error.error_type.unwrap_or_else(|| status.as_str().to_owned()),
        "errorMessage": error.error_message.unwrap_or_else(|| {
            format!("the execution ended with the status {} and without a message", status.as_str())
        }),
    });
    if let Some(data) = error.error_data {
        document["errorData"] = data.into();
    }
    if let Some(frames) = error.stack_trace.filter(|frames| !frames.is_empty()) {
        document["stackTrace"] = frames.into();
    }
    document.to_string()
}
