//! From a function's name to the version that runs.

use servo_canon::Digest;
use servo_model::function::{FunctionRef, FunctionSpec};
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

impl Executions {
    /// `qualifier` counts if the name itself has none. Nothing, `$LATEST`: the newest version.
    pub async fn resolve(
        &self,
        tenant: &TenantId,
        function: &str,
        qualifier: Option<&str>,
    ) -> Result<Resolved, Refused> {
        let reference = FunctionRef::parse(function).map_err(|invalid| Refused::invalid(invalid.to_string()))?;
        let qualifier = reference.qualifier.as_deref().or(qualifier);
        let missing = || {
            let shown = qualifier.map_or(reference.name.clone(), |q| format!("{}:{q}", reference.name));
            Refused::new(ErrorName::ResourceNotFound, format!("Function not found: {shown}"))
        };
        let name = FunctionName::parse(&reference.name).map_err(|_| missing())?;
        let store = self.engine.store();
        let version = match qualifier {
            None => None,
            Some(latest) if latest.starts_with("$LATEST") => None,
            Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(number.parse().map_err(|_| missing())?)
            }
            Some(alias) => {
                let alias = AliasName::parse(alias).map_err(|_| missing())?;
                Some(store.get_alias(tenant, &name, &alias).await?.ok_or_else(missing)?.version)
            }
        };
        let found = store.get_function(tenant, &name, version).await?.ok_or_else(missing)?;
        let spec: FunctionSpec = serde_json::from_str(&found.document).map_err(|error| {
            tracing::error!(function = %name, %error, "a registration cannot be read");
            Refused::new(ErrorName::Service, "the function's registration cannot be read")
        })?;
        Ok(Resolved { name, version: found.version, spec, digest: found.digest })
    }
}
