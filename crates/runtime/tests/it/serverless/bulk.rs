//! One action on many runs.

use serde_json::json;
use servo_adapter::{FailureKind, HandlerFailure};
use servo_entrypoint::odata::{Filter, INVOCATIONS};
use servo_entrypoint::{
    BulkControl, BulkOutcome, InvocationControlAction as Action, InvocationListFilter, InvocationStatus as S, Page,
    PageQuery, RestRuntime as _, RuntimeErrorCategory, errors,
};
use servo_model::invocation::Failure;

use super::support::{Bed, me};

fn bulk(bed: &Bed, action: Action, filter: &str, cursor: Option<String>) -> Page<BulkOutcome> {
    bulk_as(bed, action, filter, cursor, false)
}

fn bulk_as(bed: &Bed, action: Action, filter: &str, cursor: Option<String>, dry_run: bool) -> Page<BulkOutcome> {
    let filter = Some(Filter::parse(filter, &INVOCATIONS).unwrap());
    let page = PageQuery { filter, cursor, ..PageQuery::default() };
    let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
    let request = BulkControl { filter, action, max_items: 2, per_second: None, dry_run };
    bed.run(|serverless| async move { serverless.bulk_control(&me(), request).await }).unwrap()
}

/// What a replay makes is in the same list: with the cursor, each of the old ones is met once.
#[test]
fn a_bulk_replay_comes_to_an_end() {
    let bed = Bed::new(71);
    let address = bed.function("f", |_| async move { Ok("{}".to_owned()) });
    let mut ids: Vec<String> = (0..5).map(|_| bed.start(&address, json!({})).unwrap().record.invocation_id).collect();
    for id in &ids {
        bed.until(id, S::Succeeded);
    }
    // Ids are ordered by time, which stood still while these were made.
    ids.sort();
    ids.reverse();
    bed.world.pass(std::time::Duration::from_secs(1));
    let (mut met, mut cursor) = (Vec::new(), None);
    for _ in 0..10 {
        let page = bulk(&bed, Action::Replay, "status eq 'succeeded'", cursor);
        met.extend(page.items.into_iter().map(|outcome| outcome.invocation_id));
        bed.world.pass(std::time::Duration::from_secs(1));
        cursor = page.page_info.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(met, ids);
}

/// Dead letters are taken back by a retry that names them, not by one that merely finds them.
#[test]
fn a_redrive_names_the_dead_letters() {
    let bed = Bed::with(72, |platform| platform.dead_letter_grace = std::time::Duration::from_secs(1));
    let broken = || {
        let failure = Failure::new(errors::EXECUTION, RuntimeErrorCategory::NonRetryable, "no");
        HandlerFailure::new(FailureKind::Failed, failure.to_error())
    };
    let address = bed.function("f", move |_| async move { Err(broken()) });
    let id = bed.start(&address, json!({})).unwrap().record.invocation_id;
    bed.until(&id, S::DeadLettered);
    for filter in ["status ne 'succeeded'", "not (status eq 'failed')", "mode eq 'async'"] {
        let page = bulk(&bed, Action::Retry, filter, None);
        assert_eq!(page.items.len(), 1, "{filter}");
        assert_eq!(page.items[0].error.as_ref().unwrap().error_type_id, errors::CONFLICT, "{filter}");
    }
    assert!(bulk(&bed, Action::Retry, "status eq 'dead_lettered'", None).items[0].error.is_none());
    assert_ne!(bed.get(&id).status, S::DeadLettered);
}

/// A dry run says of each run what the call would, and does none of it.
#[test]
fn a_dry_run_foretells() {
    let bed = Bed::new(73);
    let works = bed.function("works", |_| async move { Ok("{}".to_owned()) });
    let hangs = bed.function("hangs", |_| std::future::pending());
    let done = bed.start(&works, json!({})).unwrap().record.invocation_id;
    bed.until(&done, S::Succeeded);
    let canceled = bed.start(&hangs, json!({})).unwrap().record.invocation_id;
    bed.control(&canceled, Action::Cancel).unwrap();
    bed.until(&canceled, S::Canceled);
    let step_id = "s".to_owned();
    for (action, filter) in [
        (Action::Retry, "status eq 'canceled'"),
        (Action::SkipStep { step_id }, "status eq 'canceled'"),
        (Action::Cancel, "status eq 'succeeded'"),
        (Action::Replay, "status eq 'succeeded'"),
    ] {
        let foretold = bulk_as(&bed, action.clone(), filter, None, true).items;
        assert_eq!(bulk_as(&bed, action.clone(), filter, None, true).items, foretold, "nothing is done");
        assert_eq!(foretold.len(), 1);
        assert_eq!(bulk(&bed, action.clone(), filter, None).items, foretold, "{action:?} {filter}");
    }
    bed.act(&works, servo_entrypoint::EntrypointStatusAction::Disable).unwrap();
    let foretold = bulk_as(&bed, Action::Replay, "status eq 'succeeded'", None, true).items;
    assert_eq!(foretold[0].error.as_ref().unwrap().error_type_id, errors::NOT_ACTIVE);
}
