//! Whom a server takes a caller for.

use serde::{Deserialize, Serialize};
use servo_model::{Role, TenantId};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WhoAmI {
    pub subject: String,
    pub tenant_id: TenantId,
    pub roles: Vec<Role>,
    /// Such as `payloads:read`: what the roles come to.
    pub permissions: Vec<String>,
}
