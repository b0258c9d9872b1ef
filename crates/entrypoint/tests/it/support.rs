//! What the tests share: examples, a context, and a validation that can be varied.

use serde_json::{Value, json};
use servo_entrypoint::rate::{Limiters, TokenBucket};
use servo_entrypoint::schemas::Types;
use servo_entrypoint::validate::{Handler, Lookup, SourceIssue, Validated, Validation};
use servo_entrypoint::{DefinitionStatus, TenantRuntimePolicy, ValidationError, ValidationIssue};
use servo_model::invocation::Failure;
use servo_model::{Role, SecurityContext, TenantId, Timestamp};
use std::sync::Arc;

pub(crate) const STARLARK: &str = "gts.x.core.serverless.adapter.starlark.v1~";
pub(crate) const LAMBDA: &str = "gts.x.core.serverless.adapter.lambda.v1~";
pub(crate) const TEMPORAL: &str = "gts.x.core.serverless.adapter.temporal.v1~";
pub(crate) const FUNCTION: &str =
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.namespace.calculate_tax.v1~";
pub(crate) const WORKFLOW: &str =
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~vendor.app.orders.process_order.v1~";
pub(crate) const ROLLBACK: &str =
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.orders.rollback_order.v1~";

pub(crate) fn spec(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/gts").join(path)
}

pub(crate) fn example(name: &str) -> Value {
    let text = std::fs::read_to_string(spec(&format!("examples/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The published example with its address, as it is posted.
pub(crate) fn function() -> Value {
    let mut document = example("function");
    document["entrypoint_id"] = FUNCTION.into();
    document
}

pub(crate) fn workflow() -> Value {
    let mut document = example("workflow");
    document["entrypoint_id"] = WORKFLOW.into();
    document
}

/// The smallest function that is valid.
pub(crate) fn minimal() -> Value {
    json!({
        "entrypoint_id": FUNCTION,
        "version": "1.0.0",
        "owner": {"owner_type": "tenant", "id": "t_123", "tenant_id": "t_123"},
        "title": "Minimal",
        "schema": {},
        "traits": {
            "invocation": {"supported": ["sync"], "default": "sync"},
            "limits": {},
            "retry": {"max_attempts": 3},
        },
        "implementation": {"adapter": STARLARK, "kind": "code", "code": {"language": "starlark", "source": "x"}},
    })
}

pub(crate) fn context(tenant: &str, role: Role) -> SecurityContext {
    SecurityContext {
        subject: "u_456".to_owned(),
        tenant: TenantId::parse(tenant).unwrap(),
        roles: vec![role],
        correlation_id: "c".to_owned(),
        trace: None,
        trace_state: None,
    }
}

pub(crate) struct Registry {
    pub(crate) handler: Option<Handler>,
    pub(crate) taken: bool,
}

impl Lookup for Registry {
    fn handler(&self, address: &str) -> Option<Handler> {
        self.handler.clone().filter(|_| address == ROLLBACK)
    }

    fn is_taken(&self, _address: &str) -> bool {
        self.taken
    }
}

/// Everything a validation needs, with the handler of the example in place.
pub(crate) struct World {
    pub(crate) ctx: SecurityContext,
    pub(crate) policy: TenantRuntimePolicy,
    pub(crate) types: Types,
    pub(crate) adapters: Vec<&'static str>,
    pub(crate) limiters: Limiters,
    pub(crate) registry: Registry,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut limiters = Limiters::default();
        limiters.register(Arc::new(TokenBucket::new(|| Timestamp::EPOCH))).unwrap();
        let params = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
        Self {
            ctx: context("t_123", Role::Operator),
            policy: TenantRuntimePolicy::platform_default("t_123"),
            types: Types::published(),
            adapters: vec![STARLARK, LAMBDA, TEMPORAL],
            limiters,
            registry: Registry { handler: Some(Handler { status: DefinitionStatus::Active, params }), taken: false },
        }
    }

    pub(crate) fn check_with(&self, document: &Value, sources: &[SourceIssue]) -> Result<Validated, Failure> {
        Validation {
            ctx: &self.ctx,
            policy: &self.policy,
            types: &self.types,
            adapters: &self.adapters,
            limiters: &self.limiters,
            lookup: &self.registry,
        }
        .check(document.clone(), sources)
    }

    pub(crate) fn check(&self, document: &Value) -> Result<Validated, Failure> {
        self.check_with(document, &[])
    }

    /// The normalised form, as it is answered.
    pub(crate) fn normal(&self, document: &Value) -> Value {
        match self.check(document) {
            Ok(valid) => serde_json::to_value(valid.entrypoint).unwrap(),
            Err(failure) => panic!("{failure:#?}"),
        }
    }

    pub(crate) fn issues(&self, document: &Value) -> Vec<ValidationIssue> {
        match self.check(document) {
            Ok(valid) => panic!("valid: {:#?}", valid.entrypoint),
            Err(failure) => ValidationError::of(&failure).unwrap().issues,
        }
    }

    /// `path kind`, in the order of the answer.
    pub(crate) fn faults(&self, document: &Value) -> Vec<String> {
        self.issues(document).iter().map(|issue| format!("{} {}", issue.location.path, issue.error_type)).collect()
    }
}

/// A document with a value put at a pointer; `null` by `json!(null)`, removal by [`without`].
pub(crate) fn with(mut document: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
    document
}

pub(crate) fn without(mut document: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    document
}
