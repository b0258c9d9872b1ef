//! Keys and the audit log.

use reqwest::Method;
use servo_model::KeyId;
use servo_wire::v1::{AuditList, CreateKeyRequest, CreatedKey, KeyItem, KeyList};

use crate::client::{Client, Patience};
use crate::endpoints::Reply;
use crate::path::segment;

/// Which audit entries to list.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub action: Option<String>,
    pub object: Option<String>,
    pub outcome: Option<String>,
    /// Times as RFC 3339.
    pub from: Option<String>,
    pub to: Option<String>,
    pub tenant: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl Client {
    /// The answer holds the secret, and no other does.
    pub async fn create_key(&self, request: &CreateKeyRequest) -> Reply<CreatedKey> {
        self.post("/v1/keys", request, Patience::Usual).await
    }

    /// Newest first.
    pub async fn keys(&self, tenant: Option<&str>, after: Option<&str>, limit: Option<u32>) -> Reply<KeyList> {
        let query = [
            ("tenantId", tenant.map(str::to_owned)),
            ("after", after.map(str::to_owned)),
            ("limit", limit.map(|limit| limit.to_string())),
        ];
        self.get("/v1/keys", &query).await
    }

    /// Ends a key; again is the same.
    pub async fn revoke_key(&self, id: &KeyId) -> Reply<KeyItem> {
        let path = format!("/v1/keys/{}", segment(id.as_str()));
        self.json(self.request(Method::DELETE, &path, &[]), Patience::Usual).await
    }

    /// Newest first.
    pub async fn audit(&self, filter: &AuditFilter) -> Reply<AuditList> {
        let query = [
            ("actor", filter.actor.clone()),
            ("action", filter.action.clone()),
            ("object", filter.object.clone()),
            ("outcome", filter.outcome.clone()),
            ("from", filter.from.clone()),
            ("to", filter.to.clone()),
            ("tenantId", filter.tenant.clone()),
            ("limit", filter.limit.map(|limit| limit.to_string())),
            ("cursor", filter.cursor.clone()),
        ];
        self.get("/v1/audit", &query).await
    }
}
