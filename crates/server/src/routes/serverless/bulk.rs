//! One action on all invocations that a filter finds.

use axum::Json as Body;
use axum::extract::State;
use serde_json::{Map, Value, json};
use servo_entrypoint::odata::{Filter, INVOCATIONS};
use servo_entrypoint::validate::requests;
use servo_entrypoint::{BULK_ITEMS_MAX, BulkControl, InvocationListFilter, PageQuery, ValidationIssue};

use super::fields::Fields;
use super::refused::{Answer, Refused};
use super::shown;
use crate::app::App;
use crate::auth::Operator;
use crate::body::Json;

const ITEMS_DEFAULT: u32 = 100;
const PER_SECOND_MAX: u32 = 1_000;
/// Whoever asks waits for the answer.
const SECONDS_MAX: u32 = 600;

pub(super) async fn control(
    State(app): State<App>,
    Operator(ctx): Operator,
    Json(document): Json<Map<String, Value>>,
) -> Answer<Body<Value>> {
    let action = requests::bulk_action(&Value::Object(document.clone()))?;
    let mut fields = Fields::new(document);
    let filter = match fields.needed_text("filter") {
        text if text.is_empty() => None,
        text => Filter::parse(&text, &INVOCATIONS).map_err(|error| fields.wrong("filter", error.to_string())).ok(),
    };
    let max_items = fields.number("max_items", 1..=BULK_ITEMS_MAX).unwrap_or(ITEMS_DEFAULT);
    let per_second = fields.number("per_second", 1..=PER_SECOND_MAX);
    let dry_run = fields.flag("dry_run");
    let cursor = fields.text("cursor");
    if per_second.is_some_and(|rate| max_items / rate > SECONDS_MAX) {
        fields.wrong("per_second", format!("at this rate it takes more than {SECONDS_MAX} s; take fewer max_items"));
    }
    fields.done()?;
    let Some(filter) = filter else {
        let message = "name the invocations, such as `status eq 'failed'`";
        return Err(Refused::invalid(ValidationIssue::new("missing_field", "$.filter", message)));
    };
    let page = PageQuery { filter: Some(filter), cursor, ..PageQuery::default() };
    let name = action.as_str();
    let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
    let request = BulkControl { filter, action, max_items, per_second, dry_run };
    let outcomes = app.serverless.bulk_control(&ctx, request).await?;
    if dry_run {
        ctx.audit.unchanged();
    } else {
        // Each run's own log has the action and who asked for it; here is that somebody asked for all of them.
        let done = outcomes.items.iter().filter(|outcome| outcome.error.is_none()).count();
        ctx.audit.object(&format!("{name}: {done} of {}", outcomes.items.len()));
    }
    Ok(Body(shown::page(&outcomes, |outcome| {
        let error = outcome.error.as_ref().map(|error| shown::error(&ctx, error));
        json!({"id": outcome.invocation_id, "invocation_id": outcome.invocation_id, "error": error})
    })))
}
