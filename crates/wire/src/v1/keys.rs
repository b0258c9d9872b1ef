//! Keys: making them, looking at them, ending them. A secret is in one answer only, that to its making.

use serde::{Deserialize, Serialize};
use servo_model::{KeyId, Role, TenantId, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Shown as `Authorization: Bearer …`.
    #[default]
    Api,
    /// For AWS signatures: an access key id and its secret.
    Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyStatus {
    Active,
    Expired,
    Revoked,
}

impl KeyStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            KeyStatus::Active => "active",
            KeyStatus::Expired => "expired",
            KeyStatus::Revoked => "revoked",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateKeyRequest {
    /// What people call it.
    pub name: String,
    pub roles: Vec<Role>,
    #[serde(default)]
    pub kind: KeyKind,
    /// Another tenant than the caller's own, for those who run the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<TenantId>,
    /// Without it the key lasts until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyItem {
    /// Also the subject of what is done with it.
    pub id: KeyId,
    pub tenant_id: TenantId,
    pub name: String,
    pub roles: Vec<Role>,
    pub kind: KeyKind,
    pub status: KeyStatus,
    /// The beginning of an API key, or an access key's id.
    pub prefix: String,
    pub created_at: Timestamp,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// To the minute, roughly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

/// The only answer that ever holds the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedKey {
    #[serde(flatten)]
    pub key: KeyItem,
    /// The API key, or the secret of the access key.
    pub secret: String,
}

impl std::fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedKey").field("key", &self.key).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyList {
    /// Newest first.
    pub items: Vec<KeyItem>,
    /// Where to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<KeyId>,
}
