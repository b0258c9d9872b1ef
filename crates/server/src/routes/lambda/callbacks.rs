//! Answers to callbacks.

use axum::Json;
use axum::extract::{Request, State};
use serde_json::{Value, json};
use servo_machine::CallbackAnswer;
use servo_model::Role;
use servo_model::operation::ErrorObject;

use super::{Call, LambdaAnswer, LambdaError, read, read_or};
use crate::app::App;

pub(super) async fn succeed(State(app): State<App>, request: Request) -> LambdaAnswer<Json<Value>> {
    // The API takes any bytes; what is recorded and handed to handlers is text.
    let no_text = || LambdaError::invalid("Result: the result of a callback is UTF-8 text");
    let call = read_or(&app, request, Role::Operator, no_text).await?;
    let result = (!call.body.is_empty()).then(|| call.body.clone());
    answer(&app, &call, CallbackAnswer::Succeed(result)).await
}

pub(super) async fn fail(State(app): State<App>, request: Request) -> LambdaAnswer<Json<Value>> {
    let call = read(&app, request, Role::Operator).await?;
    let error: ErrorObject = if call.body.trim().is_empty() { ErrorObject::default() } else { call.json()? };
    answer(&app, &call, CallbackAnswer::Fail(error)).await
}

pub(super) async fn heartbeat(State(app): State<App>, request: Request) -> LambdaAnswer<Json<Value>> {
    let call = read(&app, request, Role::Operator).await?;
    answer(&app, &call, CallbackAnswer::Heartbeat).await
}

async fn answer(app: &App, call: &Call, answer: CallbackAnswer) -> LambdaAnswer<Json<Value>> {
    if !is_callback_id(&call.subject) {
        return Err(LambdaError::invalid(
            "CallbackId has 1 to 1024 characters of [A-Za-z0-9+/], and up to two = at its end",
        ));
    }
    app.runtime.executions().callback(&call.principal.tenant, &call.subject, answer).await?;
    Ok(Json(json!({})))
}

fn is_callback_id(text: &str) -> bool {
    let bare = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let plain = bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    plain && !bare.is_empty() && text.len() <= 1_024
}
