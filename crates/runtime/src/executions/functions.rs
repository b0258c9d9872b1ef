//! From a function's name to the version that runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use servo_canon::Digest;
use servo_model::function::{Foreign, FunctionRef, FunctionSpec, is_latest, is_qualifier};
use servo_model::{AliasName, FunctionName, TenantId};
use servo_wire::lambda::ErrorName;

use super::{Executions, Refused};

/// A function with the version that a run is pinned to.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub name: FunctionName,
    pub version: u64,
    pub spec: FunctionSpec,
    pub digest: Digest,
}

/// Registrations kept in memory.
const KEPT_MAX: usize = 1_000;

/// What a run is pinned to: its tenant, the function and its version, and the digest of the registration.
type Pin = (TenantId, String, String, Digest);

/// Registrations of versions that runs are pinned to. A pin names its content, so nothing here grows stale: a function that
/// was removed and registered anew has another digest, or the same content.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept(Arc<Mutex<BTreeMap<Pin, FunctionSpec>>>);

impl Kept {
    fn get(&self, pin: &Pin) -> Option<FunctionSpec> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(pin).cloned()
    }

    fn put(&self, pin: Pin, spec: FunctionSpec) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(pin, spec);
    }
}

impl Executions {
    /// The registration that a run is pinned to; read once, then kept.
    pub(crate) async fn pinned(
        &self,
        tenant: &TenantId,
        (function, version): (&str, &str),
        digest: Digest,
    ) -> Result<FunctionSpec, Refused> {
        let pin = (tenant.clone(), function.to_owned(), version.to_owned(), digest);
        if let Some(spec) = self.kept.get(&pin) {
            return Ok(spec);
        }
        let found = self.resolve(tenant, function, Some(version)).await?;
        if found.digest == digest {
            self.kept.put(pin, found.spec.clone());
        }
        Ok(found.spec)
    }

    /// A function by its name, which must be one of this place, and the qualifier that stands in the name or beside it.
    pub(super) fn reference(&self, function: &str, qualifier: Option<&str>) -> Result<FunctionRef, Refused> {
        let mut reference = FunctionRef::parse(function).map_err(|invalid| Refused::invalid(invalid.to_string()))?;
        if self.place.foreign(&reference).is_some() {
            let message = format!(
                "Function not found: {function}; functions here are of account {} and region {}",
                self.place.account, self.place.region
            );
            return Err(Refused::new(ErrorName::ResourceNotFound, message));
        }
        let Some(qualifier) = qualifier else { return Ok(reference) };
        if !is_qualifier(qualifier) {
            // A qualifier has at most 128 characters; of a longer one no more is shown.
            let shown: String = qualifier.chars().take(128).collect();
            let message =
                format!("Invalid Qualifier '{shown}': it is the number of a version, the name of an alias, or $LATEST");
            return Err(Refused::invalid(message));
        }
        match &reference.qualifier {
            Some(named) if named != qualifier => Err(Refused::invalid(format!(
                "The qualifier {named} of the function name does not match the Qualifier {qualifier}; give one of them"
            ))),
            _ => {
                reference.qualifier = Some(qualifier.to_owned());
                Ok(reference)
            }
        }
    }

    /// The name of a function, however it is referred to. `None` if that is no reference to one of this place.
    pub fn function_in(&self, function: &str) -> Option<FunctionName> {
        FunctionName::parse(&self.reference(function, None).ok()?.name).ok()
    }

    /// What a chained invoke may not name, in the published words.
    pub(super) fn check_target(&self, function: &str) -> Result<(), Refused> {
        // A name has at most 256 characters; of a longer one no more is shown.
        let shown = || function.chars().take(256).collect::<String>();
        let reference = FunctionRef::parse(function)
            .map_err(|_| Refused::invalid(format!("Invalid function ARN '{}'", shown())))?;
        let place = match self.place.foreign(&reference) {
            None => return Ok(()),
            Some(Foreign::Account) => "account",
            Some(Foreign::Region) => "region",
        };
        Err(Refused::invalid(format!("Cannot start a CHAINED_INVOKE on a function in another {place}.")))
    }

    /// The version that runs. Without a qualifier, and for `$LATEST`: the newest.
    pub async fn resolve(
        &self,
        tenant: &TenantId,
        function: &str,
        qualifier: Option<&str>,
    ) -> Result<Resolved, Refused> {
        let reference = self.reference(function, qualifier)?;
        let qualifier = reference.qualifier.as_deref();
        let name = FunctionName::parse(&reference.name)
            .map_err(|_| Refused::new(ErrorName::ResourceNotFound, not_found(&reference.name, qualifier)))?;
        let store = self.engine.store();
        let version = match qualifier.filter(|qualifier| !is_latest(qualifier)) {
            None => None,
            Some(number) if is_number(number) => match number.parse::<u64>() {
                // Nobody published 007.
                Ok(version) if version.to_string() == number => Some(version),
                _ => return Err(self.missing(tenant, &name, qualifier, None).await),
            },
            Some(alias) => {
                let alias = AliasName::parse(alias).map_err(|invalid| Refused::invalid(invalid.reason))?;
                match store.get_alias(tenant, &name, &alias).await? {
                    Some(row) => Some(row.version),
                    None => return Err(self.missing(tenant, &name, qualifier, None).await),
                }
            }
        };
        let Some(found) = store.get_function(tenant, &name, version).await? else {
            return Err(self.missing(tenant, &name, qualifier, version).await);
        };
        let spec: FunctionSpec = serde_json::from_str(&found.document).map_err(|error| {
            tracing::error!(function = %name, %error, "a registration cannot be read");
            Refused::new(ErrorName::Service, "the function's registration cannot be read")
        })?;
        Ok(Resolved { name, version: found.version, spec, digest: found.digest })
    }

    /// In the published words, and then what it is that the function does not have.
    async fn missing(
        &self,
        tenant: &TenantId,
        name: &FunctionName,
        qualifier: Option<&str>,
        version: Option<u64>,
    ) -> Refused {
        let newest = match self.engine.store().get_function(tenant, name, None).await {
            Ok(newest) => newest,
            Err(error) => return error.into(),
        };
        let mut message = not_found(name.as_str(), qualifier);
        if let (Some(newest), Some(qualifier)) = (newest, qualifier) {
            message.push_str(&match version {
                _ if is_number(qualifier) => format!("; its newest version is {}", newest.version),
                Some(version) => {
                    format!("; the alias {qualifier} points at version {version}, which is not registered")
                }
                None => format!("; the function has no alias {qualifier}"),
            });
        }
        Refused::new(ErrorName::ResourceNotFound, message)
    }
}

fn is_number(qualifier: &str) -> bool {
    qualifier.bytes().all(|byte| byte.is_ascii_digit())
}

fn not_found(name: &str, qualifier: Option<&str>) -> String {
    let shown = qualifier.map_or_else(|| name.to_owned(), |qualifier| format!("{name}:{qualifier}"));
    format!("Function not found: {shown}")
}

#[cfg(test)]
mod tests {
    use servo_model::function::Reach;

    use super::*;

    fn pin(version: usize, text: &str) -> Pin {
        (TenantId::default_tenant(), "f".to_owned(), version.to_string(), Digest::of(text.as_bytes()))
    }

    #[test]
    fn a_registration_is_kept_by_its_content() {
        let (kept, spec) = (Kept::default(), FunctionSpec::new(Reach::Pull));
        kept.put(pin(1, "one"), spec.clone());
        assert_eq!(kept.get(&pin(1, "one")), Some(spec));
        assert_eq!(kept.get(&pin(1, "registered anew")), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let kept = Kept::default();
        for version in 0..3 * KEPT_MAX {
            kept.put(pin(version, ""), FunctionSpec::new(Reach::Pull));
        }
        assert!(kept.0.lock().unwrap().len() <= KEPT_MAX);
    }
}
