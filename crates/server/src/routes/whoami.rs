//! Whom the server takes the caller for. Pages that people use show no button that would only be refused.

use axum::Json as Body;
use servo_model::Permission;
use servo_wire::v1::WhoAmI;

use crate::auth::Viewer;
use crate::error::Answer;
use crate::params::Params;

pub(crate) async fn show(Viewer(caller): Viewer, params: Params) -> Answer<Body<WhoAmI>> {
    params.done()?;
    let permissions = Permission::ALL.into_iter().filter(|permission| caller.may(*permission));
    Ok(Body(WhoAmI {
        subject: caller.subject.clone(),
        tenant_id: caller.tenant.clone(),
        roles: caller.roles.clone(),
        permissions: permissions.map(|permission| permission.as_str().to_owned()).collect(),
    }))
}
