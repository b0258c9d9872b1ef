//! What happened to an invocation: a page of it, or all as it comes.

use axum::Json as Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use super::refused::Answer;
use super::stream::Timeline;
use super::{query, shown};
use crate::app::App;
use crate::auth::Viewer;
use crate::opened::Opened;
use crate::params::Params;
use crate::routes::events::{last_event_id, wants_stream};
use crate::sse;

pub(super) async fn read(
    State(app): State<App>,
    Viewer(ctx): Viewer,
    Path(id): Path<String>,
    headers: HeaderMap,
    mut params: Params,
    parts: Parts,
) -> Answer<Response> {
    let page = query::cut(&mut params)?;
    params.done()?;
    if wants_stream(&headers) {
        let seen = last_event_id(&headers)?.unwrap_or(0);
        let timeline = Timeline::new(&app, &ctx, id, seen).await?;
        return Ok(sse::follow(&app, Opened::new(parts, &ctx), timeline)?);
    }
    let page = app.serverless.page_timeline(&ctx, &id, page).await?;
    let show = |event: &_| serde_json::to_value(event).unwrap_or_default();
    Ok(Body(shown::page(&page, show)).into_response())
}
