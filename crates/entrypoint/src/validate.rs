//! From a document that somebody sent to a normalised definition, or to everything that is wrong with it.
//!
//! What needs a store or a running adapter is asked for beforehand: read the [`Outline`], look up what it names, and hand the
//! findings in. Nothing is looked up twice, and one answer names all faults.

mod compiled;
mod handlers;
mod issue;
mod limits;
mod outline;
mod payload;
pub mod requests;
mod semantics;
mod suggest;

use std::sync::LazyLock;

use serde_json::{Map, Value};
use servo_model::invocation::{EntrypointKind, Failure};
use servo_model::{Role, SecurityContext};

pub use compiled::{CompiledEntrypoint, mode};
pub use handlers::{Handler, Lookup};
pub use outline::{Outline, SourceIssue};

use crate::errors;
use crate::gts::{self, Address};
use crate::rate::Limiters;
use crate::schemas::{Schema, Types, fill_defaults};
use crate::types::{Entrypoint, OwnerType, TenantRuntimePolicy, ValidationError, ValidationIssue};

/// Largest definition, its source code included.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Issues in one answer; who has more of them starts with these.
pub const ISSUES_MAX: usize = 100;
pub const TAGS_MAX: usize = 50;
pub const TAG_CHARS_MAX: usize = 128;
pub const TITLE_CHARS_MAX: usize = 256;

/// Names of the kinds of issues.
pub mod kinds {
    pub const MISSING_FIELD: &str = "missing_field";
    pub const SCHEMA_MISMATCH: &str = "schema_mismatch";
    pub const INVALID_FORMAT: &str = "invalid_format";
    pub const INVALID_VALUE: &str = "invalid_value";
    pub const UNKNOWN_FIELD: &str = "unknown_field";
    pub const UNKNOWN_REFERENCE: &str = "unknown_reference";
    pub const INVALID_SCHEMA: &str = "invalid_schema";
    pub const LIMIT_EXCEEDED: &str = "limit_exceeded";
    pub const NOT_ALLOWED: &str = "not_allowed";
    pub const INCOMPATIBLE: &str = "incompatible";
    pub const SYNTAX_ERROR: &str = "syntax_error";
}

/// What a definition is checked against.
#[derive(Clone, Copy)]
pub struct Validation<'a> {
    pub ctx: &'a SecurityContext,
    pub policy: &'a TenantRuntimePolicy,
    pub types: &'a Types,
    /// Ids of the adapters that are there.
    pub adapters: &'a [&'a str],
    pub limiters: &'a Limiters,
    pub lookup: &'a dyn Lookup,
}

impl std::fmt::Debug for Validation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validation").field("adapters", &self.adapters).finish_non_exhaustive()
    }
}

/// A definition that may be registered.
#[derive(Debug, Clone)]
pub struct Validated {
    /// With all defaults, as a draft, without an id and times.
    pub entrypoint: Entrypoint,
    pub kind: EntrypointKind,
    pub compiled: CompiledEntrypoint,
}

/// Members that the registry keeps; what a document says about them does not matter.
const MANAGED: [&str; 4] = ["id", "status", "created_at", "updated_at"];

static FUNCTION: LazyLock<Option<Schema>> = LazyLock::new(|| Types::published().compile_type(gts::FUNCTION).ok());
static WORKFLOW: LazyLock<Option<Schema>> = LazyLock::new(|| Types::published().compile_type(gts::WORKFLOW).ok());

impl Validation<'_> {
    /// `sources` is what the adapter says about the code that the outline names.
    pub fn check(&self, document: Value, sources: &[SourceIssue]) -> Result<Validated, Failure> {
        let mut document = object(document)?;
        self.authorise(&document)?;
        let mut issues: Vec<_> = sources.iter().map(SourceIssue::issue).collect();
        let kind = address(&document, &mut issues);
        for name in MANAGED {
            document.remove(name);
        }
        document.insert("status".to_owned(), "draft".into());
        // The platform registers for others: whose it is, its owner says.
        let owner = document.get("owner").and_then(|owner| owner.get("tenant_id")).filter(|id| id.is_string()).cloned();
        document.entry("tenant_id").or_insert_with(|| owner.unwrap_or_else(|| self.ctx.tenant.as_str().into()));

        let type_id = kind.map_or(gts::ENTRYPOINT, gts::type_of);
        let document = Value::Object(document);
        self.check_type(kind, type_id, &document, &mut issues)?;
        let compiled = semantics::check(self, kind, &document, &mut issues);
        let mut document = document;
        limits::check(self, &mut document, &mut issues);
        handlers::check(self, &document, &mut issues);

        let Some(schema) = self.types.get(type_id) else { return Err(errors::internal("a published type is missing")) };
        fill_defaults(self.types, &schema, &mut document);
        let entrypoint = finish(issues, document)?;
        if self.lookup.is_taken(&entrypoint.entrypoint_id) {
            return Err(errors::conflict(format!(
                "`{}` is registered already; register the next version of the address{}",
                entrypoint.entrypoint_id,
                crate::names::next_of(&entrypoint.entrypoint_id)
            )));
        }
        let Some(kind) = kind else { return Err(errors::internal("a definition without a kind passed")) };
        Ok(Validated { entrypoint, kind, compiled })
    }

    fn authorise(&self, document: &Map<String, Value>) -> Result<(), Failure> {
        if !self.policy.enabled {
            return Err(errors::forbidden("the serverless runtime is disabled for this tenant"));
        }
        let owner = |name: &str| document.get("owner").and_then(|owner| owner.get(name)).and_then(Value::as_str);
        let owner_type = owner("owner_type").and_then(OwnerType::parse);
        let tenants = [document.get("tenant_id").and_then(Value::as_str), owner("tenant_id")];
        if self.ctx.allows(Role::PlatformAdmin) {
            return match tenants {
                [Some(tenant), Some(owner)] if tenant != owner && owner_type != Some(OwnerType::System) => {
                    Err(errors::forbidden(
                        "`tenant_id` and `owner.tenant_id` name different tenants; leave `tenant_id` out",
                    ))
                }
                _ => Ok(()),
            };
        }
        if tenants.into_iter().flatten().any(|tenant| tenant != self.ctx.tenant.as_str()) {
            return Err(errors::forbidden(
                "the definition names another tenant; leave `tenant_id` out or name your own",
            ));
        }
        match owner_type {
            Some(OwnerType::System) => {
                Err(errors::forbidden("only the platform registers entrypoints of the owner type `system`"))
            }
            Some(OwnerType::User) if owner("id").is_some_and(|id| id != self.ctx.subject) => {
                let subject = &self.ctx.subject;
                Err(errors::forbidden(format!(
                    "an entrypoint of a user is registered by that user: `owner.id` is {subject}"
                )))
            }
            Some(OwnerType::User | OwnerType::Tenant) | None => Ok(()),
        }
    }

    fn check_type(
        &self,
        kind: Option<EntrypointKind>,
        type_id: &str,
        document: &Value,
        issues: &mut Vec<ValidationIssue>,
    ) -> Result<(), Failure> {
        let compiled = match kind {
            Some(EntrypointKind::Workflow) => WORKFLOW.as_ref(),
            Some(EntrypointKind::Function) | None => FUNCTION.as_ref(),
        };
        let (Some(validator), Some(schema)) = (compiled, self.types.get(type_id)) else {
            return Err(errors::internal("a published type is missing"));
        };
        let place = issue::Place { types: self.types, schema: &schema, document, base: "$" };
        place.collect(validator, issues);
        Ok(())
    }
}

fn object(document: Value) -> Result<Map<String, Value>, Failure> {
    let refuse = |message: String| {
        Failure::from(ValidationError::new(vec![ValidationIssue::new(kinds::LIMIT_EXCEEDED, "$", message)]))
    };
    if serde_json::to_vec(&document).map_or(true, |bytes| bytes.len() > DOCUMENT_BYTES_MAX) {
        return Err(refuse(format!("a definition has at most {DOCUMENT_BYTES_MAX} bytes")));
    }
    if crate::depth::is_deeper_than(&document, servo_model::limits::JSON_DEPTH_MAX) {
        let max = servo_model::limits::JSON_DEPTH_MAX;
        return Err(refuse(format!("a definition is nested at most {max} levels deep")));
    }
    match document {
        Value::Object(members) => Ok(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let issue = ValidationIssue::new(kinds::SCHEMA_MISMATCH, "$", "a definition is a JSON object");
            Err(ValidationError::new(vec![issue]).into())
        }
    }
}

/// The address of a definition decides which type it has.
fn address(document: &Map<String, Value>, issues: &mut Vec<ValidationIssue>) -> Option<EntrypointKind> {
    const PATH: &str = "$.entrypoint_id";
    let example = || format!("such as {}vendor.app.name.v1~", gts::FUNCTION);
    let Some(value) = document.get("entrypoint_id") else {
        let message = "a definition says its address";
        issues.push(ValidationIssue::new(kinds::MISSING_FIELD, PATH, message).suggest(example()));
        return None;
    };
    let Some(text) = value.as_str() else {
        issues.push(ValidationIssue::new(kinds::SCHEMA_MISMATCH, PATH, "the address is a text").suggest(example()));
        return None;
    };
    match Address::parse(text) {
        Ok(address) => Some(address.kind),
        Err(error) => {
            let message = error.map_or_else(
                || "the address names neither a function nor a workflow".to_owned(),
                |error| error.to_string(),
            );
            issues.push(ValidationIssue::new(kinds::INVALID_FORMAT, PATH, message).suggest(example()));
            None
        }
    }
}

/// All issues, in the order of their places, each once.
fn finish(mut issues: Vec<ValidationIssue>, document: Value) -> Result<Entrypoint, Failure> {
    if issues.is_empty() {
        match serde_json::from_value(document) {
            Ok(entrypoint) => return Ok(entrypoint),
            // Numbers that the schema allows and no machine can hold.
            Err(error) => issues.push(ValidationIssue::new(kinds::SCHEMA_MISMATCH, "$", error.to_string())),
        }
    }
    Err(ValidationError::new(issue::tidy(issues)).into())
}
