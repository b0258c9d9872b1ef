//! How things were, for the charts of the caller's tenant.

use axum::Json as Body;
use axum::extract::State;
use servo_wire::v1::Series;

use crate::app::App;
use crate::auth::Viewer;
use crate::error::Answer;
use crate::params::Params;

pub(crate) async fn read(State(app): State<App>, Viewer(principal): Viewer, params: Params) -> Answer<Body<Series>> {
    params.done()?;
    let hidden = app.sight.hidden(&principal).await?;
    let now = app.runtime.engine().now();
    Ok(Body(app.samples.of(&principal.tenant, &hidden, now, app.config.series_every())))
}
