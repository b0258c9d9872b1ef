//! Keys and audit entries, one row each.

use serde::Serialize;
use servo_model::{Role, TenantId};
use servo_wire::v1::{AuditList, CreatedKey, KeyItem, KeyKind, KeyList};

use super::{Style, View};
use crate::output::style::clean;
use crate::output::table::{Cell, table};

const HEADERS: [&str; 9] = ["KEY", "NAME", "TENANT", "ROLES", "BEGINS", "STATUS", "MADE", "EXPIRES", "USED"];

fn roles(roles: &[Role]) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

fn row(key: &KeyItem, style: &Style) -> Vec<Cell> {
    vec![
        Cell::whole(key.id.as_str()),
        Cell::new(&key.name),
        Cell::new(key.tenant_id.as_str()),
        Cell::new(&roles(&key.roles)),
        Cell::whole(&key.prefix),
        Cell::status(key.status.as_str()),
        Cell::new(&style.time(key.created_at)),
        Cell::from(key.expires_at.map(|at| style.time(at))),
        Cell::from(key.last_used_at.map(|at| style.time(at))),
    ]
}

/// A key that was made here, and what a configuration says about it.
#[derive(Debug, Serialize)]
pub(crate) struct GeneratedKey {
    pub(crate) name: String,
    pub(crate) tenant: TenantId,
    pub(crate) roles: Vec<Role>,
    pub(crate) sha256: String,
    pub(crate) key: String,
}

impl View for GeneratedKey {
    fn table(&self, _: &Style) -> String {
        let quoted = |text: &str| serde_json::to_string(&clean(text)).unwrap_or_default();
        let roles: Vec<_> = self.roles.iter().map(|role| quoted(role.as_str())).collect();
        format!(
            "[[auth.keys]]\nname = {}\ntenant = {}\nroles = [{}]\nsha256 = {}\n\nSERVO_TOKEN={}\n",
            quoted(&self.name),
            quoted(self.tenant.as_str()),
            roles.join(", "),
            quoted(&self.sha256),
            self.key,
        )
    }

    fn ids(&self) -> Vec<String> {
        vec![self.key.clone()]
    }
}

impl View for KeyItem {
    fn table(&self, style: &Style) -> String {
        table(style.paint(), &HEADERS, &[row(self, style)])
    }

    fn ids(&self) -> Vec<String> {
        vec![self.id.to_string()]
    }
}

impl View for KeyList {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self.items.iter().map(|key| row(key, style)).collect();
        table(style.paint(), &HEADERS, &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|key| key.id.to_string()).collect()
    }

    fn more(&self) -> Option<String> {
        self.after.as_ref().map(|after| format!("--after {after}"))
    }
}

impl View for CreatedKey {
    /// As variables of the environment, ready to be copied.
    fn table(&self, style: &Style) -> String {
        let secret = match self.key.kind {
            KeyKind::Api => format!("SERVO_TOKEN={}\n", self.secret),
            KeyKind::Access => {
                format!("AWS_ACCESS_KEY_ID={}\nAWS_SECRET_ACCESS_KEY={}\n", self.key.prefix, self.secret)
            }
        };
        format!("{}\n{secret}", self.key.table(style))
    }

    /// The id: what pipes on must not be the secret.
    fn ids(&self) -> Vec<String> {
        self.key.ids()
    }
}

impl View for AuditList {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self
            .items
            .iter()
            .map(|entry| {
                let times = if entry.count > 1 { entry.count.to_string() } else { String::new() };
                vec![
                    Cell::new(&style.log_time(entry.at)),
                    Cell::new(entry.tenant_id.as_str()),
                    Cell::whole(&entry.actor),
                    Cell::new(&entry.action),
                    Cell::new(&entry.object_id),
                    Cell::status(entry.outcome.as_str()),
                    Cell::from(entry.reason.clone()),
                    Cell::from(entry.source.clone()),
                    Cell::new(&times),
                ]
            })
            .collect();
        let headers = ["AT", "TENANT", "ACTOR", "ACTION", "OBJECT", "OUTCOME", "REASON", "FROM", "TIMES"];
        table(style.paint(), &headers, &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|entry| entry.id.to_string()).collect()
    }

    fn more(&self) -> Option<String> {
        self.next_cursor.as_ref().map(|cursor| format!("--cursor {cursor}"))
    }
}
