//! Whom the server takes the caller for.

use servo_model::Role;
use servo_wire::v1::WhoAmI;

use super::{Style, View};
use crate::output::style::clean;

impl View for WhoAmI {
    fn table(&self, _: &Style) -> String {
        let who = clean(&format!("{} of tenant {}", self.subject, self.tenant_id));
        let roles = self.roles.iter().map(|role: &Role| role.as_str()).collect::<Vec<_>>().join(", ");
        let permissions = clean(&self.permissions.join(", "));
        format!("{who}\nroles: {roles}\npermissions: {permissions}\n")
    }
}
