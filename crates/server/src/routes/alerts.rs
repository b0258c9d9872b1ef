//! Alerts of the caller's tenant; who runs the platform sees all of them.

use axum::Json as Body;
use axum::extract::State;
use servo_model::Role;
use servo_model::limits::PAGE_SIZE_MAX;
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
    let engine = app.runtime.engine();
    let mut items = if scope == Scope::System { engine.standing_alerts() } else { Vec::new() };
    let stored = match engine.store().alerts(&scope, PAGE_SIZE_MAX).await {
        // They say why there are no others.
        Err(_) if !items.is_empty() => Vec::new(),
        stored => stored?,
    };
    items.truncate(limit as usize);
    // As many as one may ask for: those of hidden runs are dropped here, and must not take the place of the caller's own.
    for alert in stored {
        if items.len() == limit as usize {
            break;
        }
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
