//! Events that the bus did not take: looking at them, and trying again.

use axum::Json as Body;
use axum::extract::State;
use servo_model::codes;
use servo_store::Position;
use servo_wire::v1::{DeadLetter, DeadLetterList, RedriveRequest, Redriven};

use crate::app::App;
use crate::auth::PlatformAdmin;
use crate::body::{self, Text};
use crate::error::{Answer, ApiError};
use crate::params::Params;

pub(crate) async fn list(
    State(app): State<App>,
    PlatformAdmin(_): PlatformAdmin,
    mut params: Params,
) -> Answer<Body<DeadLetterList>> {
    let after = params.take("after", |text| Position::parse(text).map_err(|invalid| invalid.reason))?;
    let limit = params.limit()?;
    params.done()?;
    let mut rows = app.runtime.engine().store().dead_letters(after.unwrap_or_default(), limit + 1).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_after = rows.last().filter(|_| more).map(|last| last.position.to_string());
    Ok(Body(DeadLetterList { items: rows.into_iter().map(item).collect(), next_after }))
}

fn item(row: servo_store::relay::DeadLetter) -> DeadLetter {
    DeadLetter {
        position: row.position.to_string(),
        run_id: row.run_id,
        run_seq: row.run_seq,
        tenant_id: row.tenant,
        attempts: row.attempts,
        last_error: row.last_error,
        buried_at: row.buried_at,
    }
}

pub(crate) async fn redrive(
    State(app): State<App>,
    PlatformAdmin(principal): PlatformAdmin,
    Text(text): Text,
) -> Answer<Body<Redriven>> {
    // No body means all of them.
    let request: RedriveRequest =
        if text.trim().is_empty() { RedriveRequest::default() } else { body::parse(&text, 8)? };
    let position = request.position.as_deref().map(Position::parse).transpose();
    let position = position.map_err(|mut invalid| {
        invalid.field = "position".to_owned();
        invalid
    })?;
    let engine = app.runtime.engine();
    let redriven = engine.store().redrive(position).await?;
    if redriven == 0 && position.is_some() {
        return Err(ApiError::new(codes::NOT_FOUND).detail("no dead letter has this position"));
    }
    principal.audit.done(request.position.as_deref().unwrap_or("all"));
    engine.wake().log_grew();
    Ok(Body(Redriven { redriven }))
}
