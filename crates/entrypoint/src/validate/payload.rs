//! What each adapter runs. An adapter that is not among these decides itself.

use serde_json::Value;

use super::kinds;
use crate::gts::{LAMBDA, STARLARK};
use crate::types::{ImplementationKind, ValidationIssue};

/// The one language that Starlark's adapter runs.
const LANGUAGE: &str = "starlark";

/// The kind of implementation that an adapter can run; `None` if nothing is known about it.
fn kind_of(adapter: &str) -> Option<ImplementationKind> {
    match adapter {
        STARLARK => Some(ImplementationKind::Code),
        LAMBDA => Some(ImplementationKind::AdapterRef),
        _ => None,
    }
}

/// Whether an adapter could run code of this language, so that it is worth reading.
pub(super) fn runs_code(adapter: &str, language: &str) -> bool {
    match kind_of(adapter) {
        Some(kind) => kind == ImplementationKind::Code && language == LANGUAGE,
        None => true,
    }
}

/// What could never run is not registered.
pub(super) fn check(document: &Value, issues: &mut Vec<ValidationIssue>) {
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    let Some(runs) = text("/implementation/adapter").and_then(kind_of) else { return };
    let named = text("/implementation/kind");
    let Some(kind) = ImplementationKind::ALL.into_iter().find(|kind| Some(kind.as_str()) == named) else { return };
    if kind != runs {
        let message = format!("the adapter does not run `{}`", kind.as_str());
        let issue = ValidationIssue::new(kinds::INCOMPATIBLE, "$.implementation.kind", message);
        issues.push(issue.suggest(format!("use `{}`, or the adapter that runs it", runs.as_str())));
    } else if let Some(language) = text("/implementation/code/language")
        && kind == ImplementationKind::Code
        && language != LANGUAGE
    {
        let message = format!("nothing here runs `{}`", servo_model::limits::clip(language));
        let issue = ValidationIssue::new(kinds::INVALID_VALUE, "$.implementation.code.language", message);
        issues.push(issue.suggest(format!("use `{LANGUAGE}`")));
    }
}
