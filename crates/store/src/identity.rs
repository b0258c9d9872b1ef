//! Keys that callers show. The store knows no secret: of an API key it keeps a digest, of an access key's secret what the
//! server sealed.
//!
//! Times come from the caller, who also judges by them; whether a key may be made or ended is the caller's question.

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::limits::{KEYS_PER_TENANT_MAX, LABEL_CHARS_MAX, fits};
use servo_model::{KeyId, Role, TenantId, Timestamp};

use crate::error::{Error, Result};
use crate::runs::Scope;

/// Use is noted at most this often.
pub const TOUCH_EVERY_MS: i64 = 60_000;

#[derive(Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub id: KeyId,
    pub tenant: TenantId,
    /// What people call it.
    pub name: String,
    pub roles: Vec<Role>,
    /// The beginning of an API key, or the whole id of an access key: enough to tell which one it is.
    pub prefix: String,
    /// Of the API key, or of the access key's id: what it is found by.
    pub digest: Digest,
    /// An access key's secret, sealed; an API key has none.
    pub sealed: Option<String>,
    pub created_at: Timestamp,
    pub created_by: String,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// Coarse: see [`TOUCH_EVERY_MS`].
    pub last_used_at: Option<Timestamp>,
}

impl std::fmt::Debug for KeyRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KeyRow { id, tenant, name, roles, created_at, created_by, expires_at, revoked_at, last_used_at, .. } = self;
        write!(
            f,
            "KeyRow({id} {tenant} {name:?} {roles:?} {created_at} by {created_by:?}, expires {expires_at:?}, \
             revoked {revoked_at:?}, used {last_used_at:?})"
        )
    }
}

impl KeyRow {
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires| now < expires)
    }

    /// When it stopped, or will stop, to be of use.
    pub fn ends_at(&self) -> Option<Timestamp> {
        self.revoked_at.or(self.expires_at)
    }

    /// Whether use at this time is worth a write.
    pub fn is_due_for_touch(&self, now: Timestamp) -> bool {
        self.last_used_at.is_none_or(|last| now.as_millis().saturating_sub(last.as_millis()) >= TOUCH_EVERY_MS)
    }

    /// Limits that hold for every backend, checked before the row is written.
    pub fn check(&self) -> Result<()> {
        for (what, text) in [("a key's name", &self.name), ("a key's maker", &self.created_by)] {
            if !fits(text, LABEL_CHARS_MAX) {
                return Err(Error::Limit { what, limit: LABEL_CHARS_MAX as u64 });
            }
        }
        if self.name.contains('\0') || self.created_by.contains('\0') {
            return Err(Error::Invalid { field: "name".to_owned(), reason: "holds a NUL character".to_owned() });
        }
        if self.roles.is_empty() {
            return Err(Error::Invalid { field: "roles".to_owned(), reason: "is empty".to_owned() });
        }
        Ok(())
    }
}

/// One live key more than a tenant may have.
pub fn too_many() -> Error {
    Error::Limit { what: "the keys of one tenant", limit: KEYS_PER_TENANT_MAX as u64 }
}

/// Roles as they are stored: names with commas between them.
pub fn roles_text(roles: &[Role]) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(",")
}

pub fn parse_roles(text: &str) -> Option<Vec<Role>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(Role::parse).collect()
}

#[async_trait]
pub trait IdentityStore: Send + Sync {
    /// Keeps a new key. If its id is there already nothing is written, so the call can be repeated after an unknown
    /// outcome. `Limit` for one live key too many; live at the time that the key was made.
    async fn put_key(&self, key: KeyRow) -> Result<()>;

    /// The key that has this digest, of any tenant, whether it is still of use or not.
    async fn find_key(&self, digest: Digest) -> Result<Option<KeyRow>>;

    /// Keys before `before`, newest first.
    async fn list_keys(&self, scope: &Scope, before: Option<KeyId>, limit: u32) -> Result<Vec<KeyRow>>;

    async fn get_key(&self, scope: &Scope, id: &KeyId) -> Result<Option<KeyRow>>;

    /// Ends a key. One that was ended stays as it is. `NotFound` if it is not there.
    async fn revoke_key(&self, scope: &Scope, id: &KeyId, at: Timestamp) -> Result<KeyRow>;

    /// Notes that a key was used, unless that was noted a moment ago. A key that is gone is no error.
    async fn touch_key(&self, id: &KeyId, at: Timestamp) -> Result<()>;

    /// Removes keys that ended before a time. Says how many went; fewer than `limit` means that no more are due.
    async fn trim_keys(&self, before: Timestamp, limit: u32) -> Result<u32>;
}
