//! A run's events: a page of them, or all as they come.

mod stream;

use axum::Json as Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::value::RawValue;
use servo_model::codes;
use servo_wire::v1::EventPage;

use stream::RunEvents;

use super::runs::expect_run;
use super::scope;
use crate::app::App;
use crate::auth::Viewer;
use crate::error::{Answer, ApiError};
use crate::opened::Opened;
use crate::params::{Params, RunPath};
use crate::payloads::Payloads;
use crate::sse;

pub(crate) async fn read(
    State(app): State<App>,
    Viewer(principal): Viewer,
    run: RunPath,
    headers: HeaderMap,
    mut params: Params,
    parts: Parts,
) -> Answer<Response> {
    let after = params.number("after")?.unwrap_or(0);
    let limit = params.limit()?;
    params.done()?;
    let run_id = run.seen(&app, &principal).await?;
    let scope = scope(&principal);
    if wants_stream(&headers) {
        expect_run(&app, &principal, &run_id).await?;
        let after = last_event_id(&headers)?.unwrap_or(after);
        let engine = app.runtime.engine().clone();
        let events = RunEvents { engine, scope, run_id, after, shown: Payloads::of(&principal) };
        return sse::follow(&app, Opened::new(parts, &principal), events);
    }
    let page = app.runtime.engine().read_events(&scope, &run_id, after, limit).await?;
    let shown = Payloads::of(&principal);
    let document = |event: &servo_store::StoredEvent| {
        let damaged = |error| ApiError::new(codes::STORE_CORRUPT).cause(error);
        RawValue::from_string(shown.event(event)).map_err(damaged)
    };
    let answer = EventPage {
        next_after: page.events.last().map_or(after, |last| last.run_seq),
        events: page.events.iter().map(document).collect::<Result<_, _>>()?,
        last_event_seq: page.head_seq,
    };
    Ok(Body(answer).into_response())
}

pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    let kinds = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    kinds.flat_map(|kinds| kinds.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}

/// Where a reader that lost its connection was.
pub(super) fn last_event_id(headers: &HeaderMap) -> Answer<Option<u64>> {
    const NAME: &str = "last-event-id";
    let Some(value) = headers.get(NAME) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| ApiError::parameter(NAME, "is the sequence of an event"))
}
