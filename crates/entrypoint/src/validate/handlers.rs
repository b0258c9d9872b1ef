//! Entrypoints that undo a workflow: they are there, can be called, and take what they are started with.

use serde_json::{Value, json};

use super::{Validation, kinds};
use crate::gts;
use crate::schemas::Types;
use crate::types::{DefinitionStatus, ValidationIssue};

/// An entrypoint that a definition refers to.
#[derive(Debug, Clone, PartialEq)]
pub struct Handler {
    pub status: DefinitionStatus,
    /// Its `schema.params`.
    pub params: Value,
}

/// What the registry knows, as the caller's tenant sees it.
pub trait Lookup {
    fn handler(&self, address: &str) -> Option<Handler>;

    /// Whether a new definition cannot have this address. The store has the last word.
    fn is_taken(&self, _address: &str) -> bool {
        false
    }
}

impl<F: Fn(&str) -> Option<Handler>> Lookup for F {
    fn handler(&self, address: &str) -> Option<Handler> {
        self(address)
    }
}

pub(super) fn check(all: &Validation<'_>, document: &Value, issues: &mut Vec<ValidationIssue>) {
    for name in ["on_failure", "on_cancel"] {
        let pointer = format!("/traits/workflow/compensation/{name}");
        let Some(address) = document.pointer(&pointer).and_then(Value::as_str) else { continue };
        // The schema has said so already.
        if gts::Address::parse(address).is_err() {
            if gts::Gts::parse(address).is_ok_and(|id| id.derives_from(gts::ENTRYPOINT)) {
                issues.push(issue(
                    name,
                    kinds::UNKNOWN_REFERENCE,
                    "the handler names neither a function nor a workflow",
                ));
            }
            continue;
        }
        match all.lookup.handler(address) {
            None => issues.push(
                issue(name, kinds::UNKNOWN_REFERENCE, "there is no such entrypoint")
                    .suggest("register and activate the handler first, or use null"),
            ),
            Some(handler) => {
                if handler.status != DefinitionStatus::Active {
                    let message = format!("the handler is `{}`", handler.status.as_str());
                    issues.push(issue(name, kinds::NOT_ALLOWED, &message).suggest("activate the handler first"));
                }
                if !takes_context(all.types, &handler.params) {
                    issues.push(
                        issue(
                            name,
                            kinds::INCOMPATIBLE,
                            "the handler's `schema.params` does not accept a CompensationContext",
                        )
                        .suggest(format!(
                            "give the handler `\"params\": {{\"$ref\": \"{}{}\"}}`",
                            gts::SCHEME,
                            gts::COMPENSATION_CONTEXT
                        )),
                    );
                }
            }
        }
    }
}

fn issue(name: &str, kind: &str, message: &str) -> ValidationIssue {
    ValidationIssue::new(kind, format!("$.traits.workflow.compensation.{name}"), message)
}

/// The schema accepts both a full context and a minimal one, as the published type does. A reference to that type alone does not
/// say so: what stands beside it may ask for more than a context has.
fn takes_context(types: &Types, params: &Value) -> bool {
    params.is_object()
        && types.compile(params).is_ok_and(|validator| contexts().iter().all(|context| validator.is_valid(context)))
}

fn contexts() -> [Value; 2] {
    let address = format!("{}vendor.app.orders.process_order.v1~", gts::WORKFLOW);
    [
        json!({
            "trigger": "failure",
            "original_workflow_invocation_id": "inv_1",
            "failed_step_id": "charge",
            "failed_step_error": {"error_type": "timeout", "message": "too slow", "error_metadata": {"attempts": 3}},
            "workflow_state_snapshot": {"reservation": "r1"},
            "timestamp": "2026-01-01T00:00:00.000Z",
            "invocation_metadata": {
                "entrypoint_id": address, "original_input": {"order_id": "o1"}, "tenant_id": "t1",
                "correlation_id": "c1", "started_at": "2026-01-01T00:00:00.000Z",
            },
        }),
        json!({
            "trigger": "cancellation",
            "original_workflow_invocation_id": "inv_2",
            "failed_step_id": "unknown",
            "workflow_state_snapshot": {},
            "timestamp": "2026-01-01T00:00:00.000Z",
            "invocation_metadata": {"entrypoint_id": address, "original_input": {}, "tenant_id": "t1"},
        }),
    ]
}
