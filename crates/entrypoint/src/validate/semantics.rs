//! What the types cannot say: adapters that exist and are allowed, limiters, schemas that compile, modes that agree.

use serde::Deserialize as _;
use serde_json::Value;
use servo_model::TenantId;
use servo_model::invocation::EntrypointKind;
use servo_model::limits::{INTEGER_MAX, LABEL_CHARS_MAX, TEXT_CHARS_MAX, fits};

use super::issue::{Place, join};
use super::suggest::nearest;
use super::{CompiledEntrypoint, TAG_CHARS_MAX, TAGS_MAX, TITLE_CHARS_MAX, Validation, kinds, payload};
use crate::gts;
use crate::types::{RetryPolicy, ValidationIssue};

pub(super) fn check(
    all: &Validation<'_>,
    kind: Option<EntrypointKind>,
    document: &Value,
    issues: &mut Vec<ValidationIssue>,
) -> CompiledEntrypoint {
    adapter(all, document, issues);
    payload::check(document, issues);
    modes(document, issues);
    rate_limit(all, document, issues);
    sizes(document, issues);
    tenants(document, issues);
    numbers(document, issues);
    checkpointing(document, issues);
    retry(kind, document, issues);
    let workflow = document.pointer("/traits/workflow").filter(|value| !value.is_null());
    if kind == Some(EntrypointKind::Function) && workflow.is_some() {
        let message = "a function has no workflow traits; it never waits and is never undone";
        issues.push(
            ValidationIssue::new(kinds::NOT_ALLOWED, "$.traits.workflow", message)
                .suggest("leave them out, or register a workflow"),
        );
    }
    let mut compile = |name: &str| {
        let schema = document.pointer(&format!("/schema/{name}")).filter(|schema| schema.is_object())?;
        match all.types.compile(schema) {
            Ok(validator) => Some((schema.clone(), validator)),
            Err(fault) => {
                let message = if fault.pointer.is_empty() {
                    fault.message
                } else {
                    format!("{} (at `{}` of the schema)", fault.message, fault.pointer)
                };
                issues.push(ValidationIssue::new(kinds::INVALID_SCHEMA, join("$.schema", name), message));
                None
            }
        }
    };
    let (params, returns) = (compile("params"), compile("returns"));
    CompiledEntrypoint::new(all.types.clone(), params, returns)
}

/// A handler that others run decides itself what it records. A strategy for it would be believed, so it is refused.
fn checkpointing(document: &Value, issues: &mut Vec<ValidationIssue>) {
    const PATH: &str = "$.traits.workflow.checkpointing.strategy";
    let strategy = document.pointer("/traits/workflow/checkpointing/strategy").and_then(Value::as_str);
    let adapter = document.pointer("/implementation/adapter").and_then(Value::as_str);
    if let Some(strategy @ ("manual" | "disabled")) = strategy.filter(|_| adapter != Some(gts::STARLARK)) {
        let message = format!("`{strategy}` works with Starlark only: other handlers record each step as they see fit");
        let issue = ValidationIssue::new(kinds::NOT_ALLOWED, PATH, message);
        issues.push(issue.suggest("use `automatic`, or leave it out"));
    }
}

/// The steps of a durable function are tried again by its own code. A policy for them would be believed, so it is refused; the
/// default has to be said, and says nothing.
fn retry(kind: Option<EntrypointKind>, document: &Value, issues: &mut Vec<ValidationIssue>) {
    let adapter = document.pointer("/implementation/adapter").and_then(Value::as_str);
    if kind != Some(EntrypointKind::Workflow) || adapter != Some(gts::LAMBDA) {
        return;
    }
    // What is no policy at all, its type has said.
    let policy = document.pointer("/traits/retry").and_then(|policy| RetryPolicy::deserialize(policy).ok());
    if policy.is_some_and(|policy| policy != RetryPolicy::default()) {
        let message = "a durable function tries its steps again by its own rules, and not by this policy";
        let issue = ValidationIssue::new(kinds::NOT_ALLOWED, "$.traits.retry", message);
        issues.push(
            issue.suggest("put a retry strategy into the handler's steps, and here the default: {\"max_attempts\": 3}"),
        );
    }
}

fn adapter(all: &Validation<'_>, document: &Value, issues: &mut Vec<ValidationIssue>) {
    const PATH: &str = "$.implementation.adapter";
    let Some(adapter) = document.pointer("/implementation/adapter").and_then(Value::as_str) else { return };
    if gts::limits_of(adapter).is_none() {
        // Not an adapter's id at all, as its type has said.
    } else if !all.adapters.contains(&adapter) {
        let known = all.adapters.join(", ");
        let suggestion = match nearest(adapter, all.adapters.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("registered are: {known}"),
        };
        let message = "no such adapter is registered";
        issues.push(ValidationIssue::new(kinds::UNKNOWN_REFERENCE, PATH, message).suggest(suggestion));
    } else if !all.policy.policies.allows(adapter) {
        let allowed = all.policy.policies.allowed_runtimes.as_deref().unwrap_or_default();
        let suggestion = match allowed {
            [] => "the tenant's policy allows no adapter at all".to_owned(),
            some => format!("the tenant's policy allows: {}", some.join(", ")),
        };
        let message = "the tenant's policy does not allow this adapter";
        issues.push(ValidationIssue::new(kinds::NOT_ALLOWED, PATH, message).suggest(suggestion));
    }
}

fn modes(document: &Value, issues: &mut Vec<ValidationIssue>) {
    let Some(supported) = document.pointer("/traits/invocation/supported").and_then(Value::as_array) else { return };
    if supported.is_empty() {
        let message = "an entrypoint supports at least one mode";
        issues.push(
            ValidationIssue::new(kinds::INVALID_VALUE, "$.traits.invocation.supported", message)
                .suggest("use one of: sync, async"),
        );
    } else if let Some(default) = document.pointer("/traits/invocation/default")
        && !supported.contains(default)
    {
        let modes: Vec<_> = supported.iter().filter_map(Value::as_str).collect();
        let message = "the default mode is not among the supported ones";
        issues.push(
            ValidationIssue::new(kinds::INVALID_VALUE, "$.traits.invocation.default", message)
                .suggest(format!("use one of: {}", modes.join(", "))),
        );
    }
}

fn rate_limit(all: &Validation<'_>, document: &Value, issues: &mut Vec<ValidationIssue>) {
    const CONFIG: &str = "$.traits.rate_limit.config";
    let Some(limit) = document.pointer("/traits/rate_limit") else { return };
    let Some(strategy) = limit.get("strategy").and_then(Value::as_str) else { return };
    let Some(limiter) = all.limiters.find(strategy) else {
        let known: Vec<_> = all.limiters.strategies().collect();
        let path = "$.traits.rate_limit.strategy";
        issues.push(
            ValidationIssue::new(kinds::UNKNOWN_REFERENCE, path, "no rate limiter has this strategy")
                .suggest(format!("registered are: {}", known.join(", "))),
        );
        return;
    };
    let Some(config) = limit.get("config").filter(|config| config.is_object()) else { return };
    // A configuration that nobody can check is not taken.
    let Some(schema) = all.types.get(strategy) else {
        let message = "the type of this strategy's configuration is not registered";
        let issue = ValidationIssue::new(kinds::UNKNOWN_REFERENCE, "$.traits.rate_limit.strategy", message);
        issues.push(issue.suggest("have the operator register the type beside its limiter"));
        return;
    };
    match all.types.compile(&schema) {
        Ok(validator) => {
            Place { types: all.types, schema: &schema, document: config, base: CONFIG }.collect(&validator, issues);
        }
        Err(fault) => issues.push(ValidationIssue::new(kinds::INVALID_SCHEMA, CONFIG, fault.message)),
    }
    issues.extend(limiter.validate_config(config).into_iter().map(|mut issue| {
        let inner = issue.location.path.strip_prefix('$').unwrap_or(&issue.location.path);
        issue.location.path = format!("{CONFIG}{inner}");
        issue
    }));
}

/// Texts and lists that end up in rows and answers.
fn sizes(document: &Value, issues: &mut Vec<ValidationIssue>) {
    let mut too_long = |path: String, max: usize, what: &str| {
        issues.push(ValidationIssue::new(kinds::LIMIT_EXCEEDED, path, format!("at most {max} {what}")));
    };
    let texts = [
        ("/title", TITLE_CHARS_MAX),
        ("/description", TEXT_CHARS_MAX),
        ("/version", 64),
        ("/owner/id", LABEL_CHARS_MAX),
    ];
    for (pointer, max) in texts {
        if document.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !fits(text, max)) {
            too_long(path(pointer), max, "characters");
        }
    }
    let tags = document.get("tags").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if tags.len() > TAGS_MAX {
        too_long("$.tags".to_owned(), TAGS_MAX, "tags");
    }
    for (index, tag) in tags.iter().enumerate().take(TAGS_MAX) {
        if tag.as_str().is_some_and(|tag| !fits(tag, TAG_CHARS_MAX)) {
            too_long(format!("$.tags[{index}]"), TAG_CHARS_MAX, "characters");
        }
    }
    // What the registry keeps beside the document is text of a database, which may not hold this character.
    let mut holds_nul = |at: String, value: Option<&Value>| {
        if value.and_then(Value::as_str).is_some_and(|text| text.contains('\0')) {
            let issue = ValidationIssue::new(kinds::INVALID_VALUE, at, "the text holds a NUL character");
            issues.push(issue.suggest("leave it out"));
        }
    };
    for pointer in ["/title", "/owner/id"] {
        holds_nul(path(pointer), document.pointer(pointer));
    }
    for (index, tag) in tags.iter().enumerate().take(TAGS_MAX) {
        holds_nul(format!("$.tags[{index}]"), Some(tag));
    }
}

/// Only the platform names tenants other than its own, so only it can name what is none.
fn tenants(document: &Value, issues: &mut Vec<ValidationIssue>) {
    for pointer in ["/tenant_id", "/owner/tenant_id"] {
        if let Some(Err(invalid)) = document.pointer(pointer).and_then(Value::as_str).map(TenantId::parse) {
            issues.push(ValidationIssue::new(kinds::INVALID_FORMAT, path(pointer), invalid.reason));
        }
    }
}

fn path(pointer: &str) -> String {
    format!("${}", pointer.replace('/', "."))
}

/// Numbers that the types leave open and that must fit what keeps them.
fn numbers(document: &Value, issues: &mut Vec<ValidationIssue>) {
    const EXACT: u64 = INTEGER_MAX;
    let bounds = [
        ("/traits/retry/max_attempts", u64::from(u32::MAX)),
        ("/traits/retry/initial_delay_ms", EXACT),
        ("/traits/retry/max_delay_ms", EXACT),
        ("/traits/retry/backoff_multiplier", 1_000_000),
        ("/traits/caching/max_age_seconds", EXACT),
        ("/traits/limits/timeout_seconds", EXACT),
        ("/traits/limits/max_concurrent", EXACT),
        ("/traits/workflow/max_suspension_days", 36_500),
    ];
    for (pointer, max) in bounds {
        #[expect(clippy::cast_precision_loss, reason = "at most 2^53 - 1")]
        let is_over = document.pointer(pointer).and_then(Value::as_f64).is_some_and(|value| value > max as f64);
        if is_over {
            issues.push(ValidationIssue::new(
                kinds::LIMIT_EXCEEDED,
                path(pointer),
                format!("the value is at most {max}"),
            ));
        }
    }
}
