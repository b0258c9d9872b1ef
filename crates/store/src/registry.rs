//! The registry: functions with their versions, and the aliases that name one of them.
//!
//! A version is never changed. Numbers of a function begin at 1 and have no gaps; a function that is removed and
//! published again begins at 1 again. Whether a function may be removed while runs of it are open is the caller's
//! question, not the store's (see `RunStore::count_open`).

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::limits::{FUNCTION_DOCUMENT_BYTES_MAX, VERSIONS_PER_FUNCTION_MAX};
use servo_model::{AliasName, FunctionName, TenantId, Timestamp};

use crate::error::{Error, Result};
use crate::runs::Scope;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionVersion {
    pub tenant: TenantId,
    pub name: FunctionName,
    pub version: u64,
    /// Of the document.
    pub digest: Digest,
    /// What the function is, as canonical JSON.
    pub document: String,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasRow {
    pub alias: AliasName,
    pub version: u64,
    pub changed_at: Timestamp,
}

#[async_trait]
pub trait RegistryStore: Send + Sync {
    /// Publishes the next version. If the latest one has the same document, nothing is written and that one is the
    /// answer, so the call can be repeated after an unknown outcome. `Invalid` for a document that is not JSON, `Limit`
    /// for one that is too large or one version too many.
    async fn put_function(&self, tenant: &TenantId, name: &FunctionName, document: &str) -> Result<FunctionVersion>;

    /// A version, or the latest.
    async fn get_function(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        version: Option<u64>,
    ) -> Result<Option<FunctionVersion>>;

    /// The latest version of each function behind `after`, by tenant and name. Pages are limited in bytes, too, so only
    /// an empty one is the end.
    async fn list_functions(
        &self,
        scope: &Scope,
        after: Option<(TenantId, FunctionName)>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>>;

    /// The versions before `before`, newest first. Pages are limited in bytes, too; an unknown function has none.
    async fn list_versions(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<FunctionVersion>>;

    /// Removes a function with all its versions and aliases. `NotFound` if it is not there.
    async fn remove_function(&self, tenant: &TenantId, name: &FunctionName) -> Result<()>;

    /// Makes an alias, or points it elsewhere. `NotFound` if there is no such version, `Limit` for one alias too many.
    async fn put_alias(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        alias: &AliasName,
        version: u64,
    ) -> Result<AliasRow>;

    async fn get_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<Option<AliasRow>>;

    /// All aliases of a function, by name; there are never many.
    async fn list_aliases(&self, tenant: &TenantId, name: &FunctionName) -> Result<Vec<AliasRow>>;

    /// `NotFound` if it is not there.
    async fn remove_alias(&self, tenant: &TenantId, name: &FunctionName, alias: &AliasName) -> Result<()>;
}

/// A document that is fit to be published, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    pub digest: Digest,
    pub document: String,
}

impl Publication {
    pub fn of(document: &str) -> Result<Self> {
        check_size(document)?;
        let document = servo_canon::canonicalize(document)
            .map_err(|error| Error::Invalid { field: "document".to_owned(), reason: error.to_string() })?;
        check_size(&document)?;
        Ok(Self { digest: Digest::of(document.as_bytes()), document })
    }

    /// The version that this document becomes; `None` if it is the latest one already.
    pub fn version(&self, latest: Option<(u64, Digest)>) -> Result<Option<u64>> {
        match latest {
            None => Ok(Some(1)),
            Some((_, digest)) if digest == self.digest => Ok(None),
            Some((version, _)) if version >= VERSIONS_PER_FUNCTION_MAX => {
                Err(Error::Limit { what: "the versions of one function", limit: VERSIONS_PER_FUNCTION_MAX })
            }
            Some((version, _)) => Ok(Some(version + 1)),
        }
    }
}

fn check_size(document: &str) -> Result<()> {
    if document.len() > FUNCTION_DOCUMENT_BYTES_MAX {
        return Err(Error::Limit { what: "a function's document", limit: FUNCTION_DOCUMENT_BYTES_MAX as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_end_at_the_limit() {
        let new = Publication::of("{\"a\":1}").unwrap();
        let old = Digest::of(b"old");
        assert_eq!(new.version(None).unwrap(), Some(1));
        assert_eq!(new.version(Some((7, old))).unwrap(), Some(8));
        assert_eq!(new.version(Some((7, new.digest))).unwrap(), None);
        assert_eq!(new.version(Some((VERSIONS_PER_FUNCTION_MAX - 1, old))).unwrap(), Some(VERSIONS_PER_FUNCTION_MAX));
        assert!(matches!(new.version(Some((VERSIONS_PER_FUNCTION_MAX, old))), Err(Error::Limit { .. })));
        assert_eq!(new.version(Some((VERSIONS_PER_FUNCTION_MAX, new.digest))).unwrap(), None, "it is there already");
    }
}
