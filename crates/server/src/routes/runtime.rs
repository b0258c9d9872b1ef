//! The runtime contract over HTTP, in its own JSON.

use axum::Json as Body;
use axum::extract::State;
use serde_json::Value;
use servo_model::contract::{RuntimeCommand, RuntimeSnapshot, json_schema};
use servo_model::limits::JSON_DEPTH_MAX;
use servo_store::Position;
use servo_wire::v1::{Executed, RuntimeEventPage};

use crate::app::App;
use crate::auth::{PlatformAdmin, Viewer};
use crate::body::{Text, check_depth, check_members};
use crate::error::Answer;
use crate::params::Params;

/// Executes a command under this node's authority, where it has it.
pub(crate) async fn execute(
    State(app): State<App>,
    PlatformAdmin(principal): PlatformAdmin,
    Text(text): Text,
) -> Answer<Body<Executed>> {
    check_depth(&text, JSON_DEPTH_MAX)?;
    let command = RuntimeCommand::parse(&text)?;
    check_members(&text)?;
    let executed = app.runtime.contract().execute(command, app.runtime.fence()).await?;
    let names: Vec<_> = executed.events.iter().map(|event| event.name()).collect();
    principal.audit.done(&names.join(","));
    Ok(Body(Executed { events: executed.events, snapshot: executed.snapshot }))
}

pub(crate) async fn snapshot(State(app): State<App>, Viewer(_): Viewer) -> Answer<Body<RuntimeSnapshot>> {
    Ok(Body(app.runtime.snapshot().await?))
}

pub(crate) async fn events(
    State(app): State<App>,
    PlatformAdmin(_): PlatformAdmin,
    mut params: Params,
) -> Answer<Body<RuntimeEventPage>> {
    let after = params.take("after", |text| Position::parse(text).map_err(|invalid| invalid.reason))?;
    let limit = params.limit()?;
    params.done()?;
    let (events, next) = app.runtime.contract().events(after.unwrap_or_default(), limit).await?;
    Ok(Body(RuntimeEventPage { events, next: next.to_string() }))
}

pub(crate) async fn schema(PlatformAdmin(_): PlatformAdmin) -> Body<Value> {
    Body(json_schema())
}
