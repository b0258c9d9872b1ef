//! Where principals come from: sources that are asked one after another, and the keys of the store among them.
//!
//! What a caller shows is looked at by nobody else. A source that is added later (tokens of an identity provider, say)
//! implements [`Authenticator`] and is put into the list; nothing else changes.

pub(crate) mod keys;
mod seal;
mod text;

use async_trait::async_trait;
use axum::http::request::Parts;
use servo_model::{Role, TenantId, Timestamp};

use crate::sigv4::Signed;

pub use keys::{DEV_KEY_NAME, KeyUses, NewKey, StoredKeys};

/// Somebody whose credentials are good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Names the principal in events, logs and the audit log.
    pub subject: String,
    pub tenant: TenantId,
    pub roles: Vec<Role>,
}

/// What a request shows.
pub enum Credentials<'a> {
    /// `Authorization: Bearer …`
    Bearer(&'a str),
    /// An AWS signature.
    Signature(SignedRequest<'a>),
}

impl std::fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Credentials::Bearer(_) => "Bearer",
            Credentials::Signature(_) => "Signature",
        })
    }
}

/// A request with the signature that it carries.
pub struct SignedRequest<'a> {
    pub(crate) signed: Signed<'a>,
    pub(crate) parts: &'a Parts,
    pub(crate) body: &'a [u8],
    /// Whether the connection is.
    pub(crate) encrypted: bool,
}

impl std::fmt::Debug for SignedRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SignedRequest({})", self.access_key())
    }
}

impl SignedRequest<'_> {
    pub fn access_key(&self) -> &str {
        self.signed.access_key
    }

    /// Whether the signature was made with this secret, for this request, about now.
    pub fn is_by(&self, secret: &str, now: Timestamp) -> bool {
        self.signed.is_by(secret, self.parts, self.encrypted, self.body, now)
    }
}

/// A source of principals.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Who shows these credentials. `None` if they are not of this source, or not good any more: callers are told no more
    /// than that. An error only where the source itself cannot say.
    async fn authenticate(
        &self,
        credentials: &Credentials<'_>,
        now: Timestamp,
    ) -> Result<Option<Principal>, servo_store::Error>;

    /// Whose access key it is, if signatures could be made with it now. Asked before a body is read, and proves nothing.
    async fn access_key_tenant(&self, id: &str, now: Timestamp) -> Result<Option<TenantId>, servo_store::Error>;
}
