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
    let mut items = Vec::new();
    for alert in app.runtime.engine().store().alerts(&scope, limit).await? {
        let is_hidden = match &alert.run_id {
            Some(run_id) => app.sight.hides(&principal, run_id).await?,
            None => false,
        };
        if !is_hidden {
            items.push(alert);
        }
    }
    Ok(Body(AlertList { items }))
}
