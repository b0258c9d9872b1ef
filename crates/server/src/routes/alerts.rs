//! Alerts of the caller's tenant; who runs the platform sees all of them.

use axum::Json as Body;
use axum::extract::State;
use servo_model::Role;
use servo_store::Scope;
use servo_wire::v1::AlertList;

use super::scope;
use crate::app::App;
use crate::auth::Viewer;
use crate::error::Answer;
use crate::params::Params;

pub(crate) async fn list(
    State(app): State<App>,
    Viewer(principal): Viewer,
    mut params: Params,
) -> Answer<Body<AlertList>> {
    let limit = params.limit()?;
    params.done()?;
    let scope = if principal.allows(Role::PlatformAdmin) { Scope::System } else { scope(&principal) };
    let items = app.runtime.engine().store().alerts(&scope, limit).await?;
    Ok(Body(AlertList { items }))
}
