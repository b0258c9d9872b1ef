//! The published types: JSON Schemas by their GTS ids.

use axum::Json as Body;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use servo_entrypoint::Types;

use super::refused::{Answer, Refused};
use crate::auth::Viewer;
use crate::failures::PREFIX;
use crate::params::Params;

/// There are few, so one page holds them all.
pub(super) async fn list(Viewer(_): Viewer, params: Params) -> Answer<Body<Value>> {
    params.done()?;
    let item = |id: &str| json!({"id": id, "uri": format!("gts://{id}"), "href": format!("{PREFIX}/types/{id}")});
    let items: Vec<Value> = Types::ids().map(item).collect();
    let page_info = json!({"next_cursor": null, "prev_cursor": null, "has_more": false});
    Ok(Body(json!({"items": items, "page_info": page_info})))
}

pub(super) async fn show(Viewer(_): Viewer, Path(id): Path<String>, params: Params) -> Answer<Response> {
    params.done()?;
    let text = Types::text(&id).ok_or_else(|| Refused::not_found("there is no published type of this id"))?;
    let headers = [(CONTENT_TYPE, "application/schema+json"), (CACHE_CONTROL, "max-age=3600")];
    Ok((headers, text).into_response())
}
