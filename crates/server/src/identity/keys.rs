//! Keys of the store, made and ended while the server runs. They are remembered for a moment, so that not every request
//! asks the store; a key that another node ends is of use here for no longer than that moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::{KeyId, Role, TenantId, Timestamp};
use servo_runtime::Ids;
use servo_store::identity::KeyRow;
use servo_store::{Error, Scope, Store};
use tokio::sync::mpsc;

use super::seal::SecretSeal;
use super::{Authenticator, Credentials, Principal, text};
use crate::auth::same;
use servo_wire::key::{api_key, is_api_key};

/// How long what the store said about a key is believed.
const REMEMBERED_MS: i64 = 5_000;
/// Keys remembered at once, unknown ones among them.
const REMEMBERED_MAX: usize = 10_000;
/// Uses that wait to be noted. What does not fit is noted at a later use.
const USES_MAX: usize = 1_024;

/// What the key of `servo dev` is called. Nobody else's key has this name.
pub const DEV_KEY_NAME: &str = "servo dev";

/// Who makes it: the development principal.
const DEV_KEY_BY: &str = "dev";

fn is_dev_key(key: &KeyRow) -> bool {
    key.name == DEV_KEY_NAME && key.created_by == DEV_KEY_BY
}

/// Keys that were used, and when.
pub type KeyUses = mpsc::Receiver<(KeyId, Timestamp)>;

/// What somebody asks for.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub tenant: TenantId,
    pub name: String,
    pub roles: Vec<Role>,
    pub created_by: String,
    pub expires_at: Option<Timestamp>,
    /// For AWS signatures.
    pub access: bool,
}

/// The keys of the store. Clones share what they remember.
#[derive(Clone)]
pub struct StoredKeys {
    store: Arc<dyn Store>,
    seal: Arc<SecretSeal>,
    remembered: Arc<Mutex<HashMap<Digest, Remembered>>>,
    uses: mpsc::Sender<(KeyId, Timestamp)>,
    /// Whether the key of `servo dev` is of use here.
    takes_dev_key: bool,
}

struct Remembered {
    at: Timestamp,
    key: Option<Arc<KeyRow>>,
    /// A use is on its way to the store.
    noted: bool,
}

impl std::fmt::Debug for StoredKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredKeys")
    }
}

impl StoredKeys {
    /// With the uses that somebody should write down.
    pub async fn new(store: Arc<dyn Store>) -> Result<(Self, KeyUses), Error> {
        let seal = Arc::new(SecretSeal::new(&store.secret().await?));
        let (uses, noted) = mpsc::channel(USES_MAX);
        Ok((Self { store, seal, remembered: Arc::default(), uses, takes_dev_key: false }, noted))
    }

    /// For `servo dev` on loopback. Its key lies beside the data for as long as these do, so it must be of no use to a server that
    /// is started on them later, for others to reach.
    #[must_use]
    pub fn with_dev_key(self) -> Self {
        Self { takes_dev_key: true, ..self }
    }

    /// Makes a key. The second value is its secret, which nobody can read again.
    pub async fn create(&self, ids: &Ids, now: Timestamp, new: NewKey) -> Result<(KeyRow, String), Error> {
        self.create_as(ids.key_id(now), ids, now, new).await
    }

    /// The same with an id that is known before: whatever becomes of the call, it can be said which key it was about.
    pub async fn create_as(
        &self,
        id: KeyId,
        ids: &Ids,
        now: Timestamp,
        new: NewKey,
    ) -> Result<(KeyRow, String), Error> {
        let (secret, shown, found_by) = if new.access {
            let id = text::access_key_id(ids.secret());
            (text::access_secret(ids.secret()), id.clone(), id)
        } else {
            let key = api_key(ids.secret());
            (key.clone(), text::shown(&key), key)
        };
        let sealed = new.access.then(|| self.seal.close(ids.nonce(), &new.tenant, &shown, &secret));
        let mut roles = new.roles;
        roles.sort_unstable();
        roles.dedup();
        let row = KeyRow {
            id,
            tenant: new.tenant,
            name: new.name,
            roles,
            prefix: shown,
            digest: Digest::of(found_by.as_bytes()),
            sealed,
            created_at: now,
            created_by: new.created_by,
            expires_at: new.expires_at,
            revoked_at: None,
            last_used_at: None,
        };
        self.store.put_key(row.clone()).await?;
        Ok((row, secret))
    }

    /// Ends a key; on this node at once.
    pub async fn revoke(&self, scope: &Scope, id: &KeyId, now: Timestamp) -> Result<KeyRow, Error> {
        let row = self.store.revoke_key(scope, id, now).await?;
        self.lock().remove(&row.digest);
        Ok(row)
    }

    /// Whether this text is a key of the store that is of use now.
    pub async fn is_live(&self, key: &str, now: Timestamp) -> Result<bool, Error> {
        Ok(self.authenticate(&Credentials::Bearer(key), now).await?.is_some())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Remembered>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key with this digest, if it is of use now.
    async fn live(&self, digest: Digest, now: Timestamp) -> Result<Option<Arc<KeyRow>>, Error> {
        let is_fresh = |at: Timestamp| (0..REMEMBERED_MS).contains(&(now.as_millis() - at.as_millis()));
        let known = self.lock().get(&digest).filter(|known| is_fresh(known.at)).map(|known| known.key.clone());
        let key = match known {
            Some(key) => key,
            None => {
                let found = self.store.find_key(digest).await?;
                // The index has found it; that it is the same is said by a comparison that takes the same time for all.
                let found = found.filter(|key| same(key.digest.as_bytes(), digest.as_bytes())).map(Arc::new);
                let mut remembered = self.lock();
                if remembered.len() >= REMEMBERED_MAX {
                    remembered.retain(|_, known| is_fresh(known.at));
                    if remembered.len() >= REMEMBERED_MAX {
                        remembered.clear();
                    }
                }
                remembered.insert(digest, Remembered { at: now, key: found.clone(), noted: false });
                found
            }
        };
        let key = key.filter(|key| key.is_live(now) && (self.takes_dev_key || !is_dev_key(key)));
        if let Some(key) = key.as_ref().filter(|key| key.is_due_for_touch(now)) {
            self.note_use(key, now);
        }
        Ok(key)
    }

    fn note_use(&self, key: &KeyRow, now: Timestamp) {
        let mut remembered = self.lock();
        let Some(known) = remembered.get_mut(&key.digest).filter(|known| !known.noted) else { return };
        known.noted = self.uses.try_send((key.id.clone(), now)).is_ok();
    }
}

#[async_trait]
impl Authenticator for StoredKeys {
    async fn authenticate(&self, credentials: &Credentials<'_>, now: Timestamp) -> Result<Option<Principal>, Error> {
        let key = match credentials {
            Credentials::Bearer(token) if is_api_key(token) => {
                // A key for signatures is no bearer token.
                self.live(Digest::of(token.as_bytes()), now).await?.filter(|key| key.sealed.is_none())
            }
            Credentials::Bearer(_) => None,
            Credentials::Signature(request) => {
                let key = self.live(Digest::of(request.access_key().as_bytes()), now).await?;
                key.filter(|key| {
                    let sealed = key.sealed.as_deref();
                    let secret = sealed.and_then(|sealed| self.seal.open(&key.tenant, &key.prefix, sealed));
                    secret.is_some_and(|secret| request.is_by(&secret, now))
                })
            }
        };
        Ok(key.map(|key| Principal {
            subject: key.id.to_string(),
            tenant: key.tenant.clone(),
            roles: key.roles.clone(),
        }))
    }

    async fn access_key_tenant(&self, id: &str, now: Timestamp) -> Result<Option<TenantId>, Error> {
        let key = self.live(Digest::of(id.as_bytes()), now).await?.filter(|key| key.sealed.is_some());
        Ok(key.map(|key| key.tenant.clone()))
    }
}

/// Writes down that keys were used, until nobody can use one any more.
pub(crate) async fn note_uses(store: Arc<dyn Store>, mut uses: KeyUses) {
    while let Some((id, at)) = uses.recv().await {
        if let Err(error) = store.touch_key(&id, at).await {
            tracing::debug!(%error, "the use of a key was not noted");
        }
    }
}

#[cfg(test)]
mod tests;
