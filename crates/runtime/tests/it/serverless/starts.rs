//! What a start must pass, in its order, and what a repeated one gets.

use std::time::Duration;

use serde_json::{Value, json};
use servo_entrypoint::rate::RateLimitDecision;
use servo_entrypoint::{
    EntrypointStatusAction, InvocationListFilter, InvocationMode, InvocationRequest, InvocationStatus as S, PageQuery,
    RestRuntime as _, ServerlessRuntime as _, errors,
};
use servo_runtime::Types;
use servo_runtime::serverless::Platform;
use servo_sim::faults::{Fault, Scripted};

use super::support::{Bed, FUNCTION, caller, definition, me, request};

fn echo(bed: &Bed, name: &str, change: impl FnOnce(&mut Value)) -> String {
    bed.entrypoint(FUNCTION, name, change, |call| async move { Ok(call.call.payload.clone()) })
}

fn keyed(address: &str, params: Value, key: &str) -> InvocationRequest {
    InvocationRequest { idempotency_key: Some(key.to_owned()), ..request(address, params) }
}

fn waited_for(address: &str) -> InvocationRequest {
    InvocationRequest { mode: Some(InvocationMode::Sync), ..request(address, json!({})) }
}

fn records(bed: &Bed) -> usize {
    let filter = InvocationListFilter {
        page: PageQuery { limit: Some(200), ..PageQuery::default() },
        ..InvocationListFilter::default()
    };
    bed.run(|serverless| async move { serverless.page_invocations(&me(), filter).await }).unwrap().items.len()
}

/// SR-382, SR-405: the earlier check decides.
#[test]
fn checks_come_in_their_order() {
    let bed = Bed::new(41);
    let params = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    bed.functions.define(&bed.world, "f", |_| async move { Ok("{}".to_owned()) });
    let address = {
        let mut document = definition(FUNCTION, "f");
        document["schema"]["params"] = params;
        let mut spec = servo_model::function::FunctionSpec::new(servo_model::function::Reach::InProcess);
        spec.durable = false;
        bed.functions.define_as(&bed.world, "f", &spec, |_| async move { Ok("{}".to_owned()) });
        bed.register(&document).unwrap().entrypoint_id
    };
    for dry_run in [false, true] {
        let start = |address: &str, params: Value| {
            bed.start_as(&me(), InvocationRequest { dry_run, ..request(address, params) })
        };
        let missing = format!("{FUNCTION}vendor.app.missing.v1~");
        assert_eq!(start(&missing, json!([])).unwrap_err().error_type_id, errors::NOT_FOUND);
        assert_eq!(start(&address, json!({})).unwrap_err().error_type_id, errors::NOT_ACTIVE, "a draft");
    }
    bed.act(&address, EntrypointStatusAction::Activate).unwrap();
    let wrong = bed.start(&address, json!({"n": "x"})).unwrap_err();
    assert_eq!(wrong.error_type_id, errors::VALIDATION);
    assert_eq!(wrong.details["issues"][0]["location"]["path"], "$.params.n");
    assert_eq!(bed.start(&address, Value::Null).unwrap_err().error_type_id, errors::VALIDATION);
    assert_eq!(records(&bed), 0, "nothing is kept of a refused start");
}

/// SR-021, SR-025: nothing is an input only where none is taken.
#[test]
fn null_is_no_input() {
    let bed = Bed::new(55);
    let takes = echo(&bed, "takes", |document| document["schema"]["params"] = json!({"type": "object"}));
    let refused = bed.start(&takes, Value::Null).unwrap_err();
    assert_eq!(refused.details["issues"][0]["location"]["path"], "$.params");
    assert!(bed.start(&takes, json!({})).is_ok());
    let takes_none = echo(&bed, "none", |document| document["schema"]["params"] = Value::Null);
    assert_eq!(bed.start(&takes_none, Value::Null).unwrap().record.params, json!({}));
}

/// R23: params are as large as a payload may be and no larger, and nothing is kept of those that are.
#[test]
fn params_have_a_limit() {
    let bed = Bed::of(51, |cluster| cluster.config.limits.payload_bytes_max = 1_000);
    let address = echo(&bed, "f", |_| {});
    let of = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
    for dry_run in [true, false] {
        let start = |bytes| bed.start_as(&me(), InvocationRequest { dry_run, ..request(&address, of(bytes)) });
        let refused = start(1_001).unwrap_err();
        assert_eq!(refused.error_type_id, errors::VALIDATION);
        let issue = &refused.details["issues"][0];
        assert_eq!((&issue["error_type"], &issue["location"]["path"]), (&json!("limit_exceeded"), &json!("$.params")));
        assert_eq!(records(&bed), 0);
        assert!(start(1_000).is_ok());
    }
}

/// SR-062, SR-400, SR-406, SR-407, SR-409, SR-412, SR-414, SR-416, SR-419: a dry run says what would happen and leaves nothing behind.
#[test]
fn a_dry_run_leaves_nothing() {
    let bed = Bed::new(42);
    let address = echo(&bed, "f", |document| {
        document["traits"]["rate_limit"] = json!({
            "strategy": "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~",
            "config": {"max_requests_per_minute": 1},
        });
    });
    for _ in 0..5 {
        let dry = InvocationRequest { dry_run: true, ..keyed(&address, json!({"a": 1}), "k") };
        let answer = bed.start_as(&me(), dry).unwrap();
        assert!(answer.dry_run && !answer.cached && answer.record.invocation_id.starts_with("dryrun_"));
        assert_eq!((answer.record.status, answer.record.params), (S::Queued, json!({"a": 1})));
        assert!(answer.record.observability.trace_id.is_none());
    }
    assert_eq!((records(&bed), bed.functions.invocations()), (0, 0));
    let real = bed.start_as(&me(), keyed(&address, json!({"a": 2}), "k")).unwrap();
    assert!(!real.dry_run, "neither the key nor the allowance was used");
    let limited = bed.start(&address, json!({})).unwrap_err();
    assert_eq!(limited.error_type_id, errors::RATE_LIMITED);
    assert!(limited.details["retry_after_seconds"].as_u64().unwrap() >= 1);
}

/// SR-376, SR-377, SR-383: the same key is the same run, as long as the tenant's window is.
#[test]
fn a_repeated_start_is_the_same_run() {
    let bed = Bed::with(43, |platform| platform.policy.idempotency.deduplication_window_seconds = 600);
    let address = echo(&bed, "f", |_| {});
    let first = bed.start_as(&me(), keyed(&address, json!({"a": 1}), "k")).unwrap().record;
    let again = bed.start_as(&me(), keyed(&address, json!({"a": 1}), "k")).unwrap();
    assert_eq!((again.record.invocation_id.as_str(), again.cached), (first.invocation_id.as_str(), false));
    let other = bed.start_as(&me(), keyed(&address, json!({"a": 2}), "k")).unwrap_err();
    assert_eq!(other.error_type_id, errors::VALIDATION);
    let colleague = bed.start_as(&caller("bob", "default"), keyed(&address, json!({"a": 1}), "k")).unwrap().record;
    assert_eq!(colleague.invocation_id, first.invocation_id, "the tenant's entrypoint, the tenant's key");
    bed.until(&first.invocation_id, S::Succeeded);
    bed.world.pass(Duration::from_secs(600));
    let later = bed.start_as(&me(), keyed(&address, json!({"a": 1}), "k")).unwrap().record;
    assert_ne!(later.invocation_id, first.invocation_id);
    assert_eq!(records(&bed), 2);
}

/// SR-434, SR-437, SR-438, SR-439, SR-440, SR-441, SR-450: results are served again while they are fresh, without a run.
#[test]
fn a_fresh_result_is_served_again() {
    let bed = Bed::new(44);
    let cached = |document: &mut Value| {
        document["traits"]["is_idempotent"] = true.into();
        document["traits"]["caching"] = json!({"max_age_seconds": 60});
    };
    let address = echo(&bed, "f", cached);
    let sync =
        |key: &str| InvocationRequest { mode: Some(InvocationMode::Sync), ..keyed(&address, json!({"a": 1}), key) };
    let first = bed.start_as(&me(), sync("k")).unwrap();
    assert!(!first.cached);
    let hit = bed.start_as(&me(), sync("k")).unwrap();
    assert!(hit.cached);
    assert_eq!(hit.record, first.record);
    assert_eq!(records(&bed), 1, "a hit is no run");
    assert!(!bed.start_as(&me(), sync("other")).unwrap().cached);
    assert_eq!(bed.functions.invocations(), 2);
    bed.world.pass(Duration::from_secs(61));
    let anew = bed.start_as(&me(), sync("k")).unwrap();
    assert!(!anew.cached);
    assert_ne!(anew.record.invocation_id, first.record.invocation_id);
    assert_eq!(bed.functions.invocations(), 3);
}

/// SR-442: what was done already takes no place.
#[test]
fn a_fresh_result_is_served_at_capacity() {
    let bed = Bed::with(48, |platform| platform.policy.quotas.max_concurrent_executions = 1);
    let address = echo(&bed, "f", |document| {
        document["traits"]["is_idempotent"] = true.into();
        document["traits"]["caching"] = json!({"max_age_seconds": 600});
    });
    let hangs = bed.function("hangs", |_| std::future::pending());
    let sync = || InvocationRequest { mode: Some(InvocationMode::Sync), ..keyed(&address, json!({}), "k") };
    assert!(!bed.start_as(&me(), sync()).unwrap().cached);
    bed.start(&hangs, json!({})).unwrap();
    assert_eq!(bed.start(&address, json!({})).unwrap_err().error_type_id, errors::QUOTA_EXCEEDED);
    assert!(bed.start_as(&me(), sync()).unwrap().cached);
}

/// SR-317: what waits holds no place.
#[test]
fn a_suspended_run_makes_room() {
    use servo_model::operation::{OperationAction, OperationType, OperationUpdate, WaitOptions};
    let bed = Bed::with(49, |platform| platform.policy.quotas.max_concurrent_executions = 1);
    let waits = bed.entrypoint(
        super::support::WORKFLOW,
        "waits",
        |_| {},
        |invocation| async move {
            let mut wait = OperationUpdate::new("w", OperationType::Wait, OperationAction::Start);
            wait.wait_options = Some(WaitOptions { wait_seconds: Some(3_600) });
            invocation.checkpoint(vec![wait]).await.unwrap();
            crate::executions::handler::pending()
        },
    );
    let hangs = bed.function("hangs", |_| std::future::pending());
    for _ in 0..2 {
        let id = bed.start(&waits, json!({})).unwrap().record.invocation_id;
        bed.until(&id, S::Suspended);
    }
    bed.start(&hangs, json!({})).unwrap();
    assert_eq!(bed.start(&waits, json!({})).unwrap_err().error_type_id, errors::QUOTA_EXCEEDED);
}

/// SR-057: without a limiter nobody is told to wait.
#[test]
fn no_rate_limit_is_no_limit() {
    let bed = Bed::with(50, |platform| platform.policy.quotas.max_concurrent_executions = 10_000);
    let address = echo(&bed, "f", |document| document["traits"]["rate_limit"] = Value::Null);
    for _ in 0..1_000 {
        bed.start(&address, json!({})).unwrap();
    }
}

/// Counts what it lets through, and keeps what it was told.
struct Window {
    strategy: String,
    told: std::sync::Arc<std::sync::Mutex<Vec<Value>>>,
}

#[async_trait::async_trait]
impl servo_entrypoint::rate::RateLimiter for Window {
    fn strategy_type(&self) -> &String {
        &self.strategy
    }

    async fn check(&self, _: &servo_model::SecurityContext, _: &String, config: &Value) -> RateLimitDecision {
        let mut told = self.told.lock().unwrap();
        told.push(config.clone());
        if told.len() as u64 <= config["max_requests_per_window"].as_u64().unwrap() {
            return RateLimitDecision::Allow;
        }
        RateLimitDecision::Reject { retry_after_seconds: 7 }
    }
}

const WINDOW: &str = "gts.x.core.serverless.rate_limit.v1~vendor.app.window.sliding.v1~";

/// The type of an operator's own limiter.
fn windows() -> Types {
    let schema = json!({
        "type": "object",
        "required": ["max_requests_per_window"],
        "properties": {"max_requests_per_window": {"type": "integer", "minimum": 1}},
    });
    Types::with_more(std::sync::Arc::new(move |id: &str| (id == WINDOW).then(|| schema.clone())))
}

/// SR-079: a limiter without a word about its configuration still gets one that its type allows, and one whose type nobody
/// registered gets none.
#[test]
fn an_operators_limiter_has_a_type() {
    let limiter = || Window { strategy: WINDOW.to_owned(), told: std::sync::Arc::default() };
    let set = |platform: &mut Platform| platform.limiters.register(std::sync::Arc::new(limiter())).unwrap();
    let typed = Bed::of_platform(56, |cluster| cluster.types = windows(), set);
    let untyped = Bed::of_platform(57, |_| {}, set);
    let at = |bed: &Bed, config: Value| {
        let mut document = definition(FUNCTION, "f");
        bed.functions.define(&bed.world, "f", |_| async move { Ok("{}".to_owned()) });
        document["traits"]["rate_limit"] = json!({"strategy": WINDOW, "config": config});
        let refused = bed.register(&document).unwrap_err();
        assert_eq!(refused.error_type_id, errors::VALIDATION);
        refused.details["issues"][0]["location"]["path"].as_str().unwrap().to_owned()
    };
    assert_eq!(at(&typed, json!({"max_requests_per_window": 0})), "$.traits.rate_limit.config.max_requests_per_window");
    assert_eq!(at(&untyped, json!({"max_requests_per_window": 1})), "$.traits.rate_limit.strategy");
}

/// SR-064: an operator's own limiter decides, on the configuration as it was registered.
#[test]
fn an_operators_limiter_is_asked() {
    let strategy = WINDOW;
    let told = std::sync::Arc::<std::sync::Mutex<Vec<Value>>>::default();
    let limiter = Window { strategy: strategy.to_owned(), told: told.clone() };
    let set = |platform: &mut Platform| platform.limiters.register(std::sync::Arc::new(limiter)).unwrap();
    let bed = Bed::of_platform(51, |cluster| cluster.types = windows(), set);
    let config = json!({"window_size_seconds": 60.0, "max_requests_per_window": 2, "note": {"z": 1, "a": [null]}});
    let address = echo(&bed, "f", |document| {
        document["traits"]["rate_limit"] = json!({"strategy": strategy, "config": config});
    });
    for _ in 0..2 {
        bed.start(&address, json!({})).unwrap();
    }
    let limited = bed.start(&address, json!({})).unwrap_err();
    assert_eq!(
        (limited.error_type_id.as_str(), &limited.details["retry_after_seconds"]),
        (errors::RATE_LIMITED, &json!(7))
    );
    assert_eq!(*told.lock().unwrap(), vec![config; 3]);
}

/// SR-077: a start that was over the limit is the caller's to repeat. Nothing of it is kept, so nothing comes of it later.
#[test]
fn a_start_over_the_limit_is_not_made_up_for() {
    let bed = Bed::new(53);
    let address = echo(&bed, "f", |document| {
        let strategy = "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~";
        let config = json!({"max_requests_per_second": 1.0, "burst_size": 1});
        document["traits"]["rate_limit"] = json!({"strategy": strategy, "config": config});
    });
    let first = bed.start(&address, json!({})).unwrap().record.invocation_id;
    for _ in 0..3 {
        assert_eq!(bed.start(&address, json!({})).unwrap_err().error_type_id, errors::RATE_LIMITED);
    }
    bed.until(&first, S::Succeeded);
    bed.world.pass(Duration::from_secs(3_600));
    assert_eq!((records(&bed), bed.functions.calls.lock().unwrap().len()), (1, 1));
    bed.start(&address, json!({})).unwrap();
}

/// SR-310, SR-404: as many as may be under way, and no more.
#[test]
fn the_quota_counts_what_is_under_way() {
    let bed = Bed::with(45, |platform| platform.policy.quotas.max_concurrent_executions = 1);
    let address = bed.function("hangs", |_| std::future::pending());
    bed.start(&address, json!({})).unwrap();
    for dry_run in [false, true] {
        let full = bed.start_as(&me(), InvocationRequest { dry_run, ..request(&address, json!({})) }).unwrap_err();
        assert_eq!(full.error_type_id, errors::QUOTA_EXCEEDED);
    }
    assert_eq!(records(&bed), 1);
}

/// SR-310: a run that its caller waits for is one run, also when the store counts it meanwhile.
#[test]
fn the_quota_counts_a_run_that_is_waited_for_once() {
    let bed = Bed::with(46, |platform| {
        platform.policy.quotas.max_concurrent_executions = 2;
        platform.sync_wait = Duration::from_secs(10);
    });
    let address = bed.function("hangs", |_| std::future::pending());
    let (clock, waits) = (bed.engine().clock().clone(), waited_for(&address));
    let (first, second) = bed.run(|serverless| async move {
        let later = async {
            clock.sleep(Duration::from_secs(5)).await;
            serverless.start_invocation(&me(), request(&address, json!({}))).await
        };
        let ada = me();
        tokio::join!(serverless.start_invocation(&ada, waits), later)
    });
    assert_eq!((first.unwrap().record.status, second.unwrap().record.status), (S::Running, S::Queued));
}

/// Nothing rings for a run that there is none of.
#[test]
fn a_start_that_cannot_be_recorded_keeps_nobody_waiting() {
    let faults = std::sync::Arc::new(Scripted::default());
    let bed = Bed::of(47, |cluster| {
        cluster.faults = faults.clone();
        cluster.config.poll_ms = 3_600_000;
    });
    let address = echo(&bed, "f", |_| {});
    faults.fail("append", Fault::Full);
    let began = bed.world.now();
    bed.start_as(&me(), waited_for(&address)).unwrap_err();
    assert!(bed.world.now().since(began) < Duration::from_secs(60));
    faults.heal();
    assert_eq!(bed.start_as(&me(), waited_for(&address)).unwrap().record.status, S::Succeeded);
}

/// SR-012, SR-013, SR-016, SR-017, SR-368, SR-536: what belongs to others is not there.
#[test]
fn others_see_only_what_is_theirs() {
    let bed = Bed::new(46);
    let private = echo(&bed, "private", |document| {
        document["owner"] = json!({"owner_type": "user", "id": "ada", "tenant_id": "default"});
    });
    let shared = echo(&bed, "shared", |_| {});
    let id = bed.start(&shared, json!({})).unwrap().record.invocation_id;
    bed.start(&private, json!({})).unwrap();
    let bob = caller("bob", "default");
    assert!(bed.start_as(&bob, request(&shared, json!({}))).is_ok());
    assert_eq!(bed.start_as(&bob, request(&private, json!({}))).unwrap_err().error_type_id, errors::NOT_FOUND);
    let eve = caller("eve", "other");
    assert_eq!(bed.start_as(&eve, request(&shared, json!({}))).unwrap_err().error_type_id, errors::NOT_FOUND);
    use servo_entrypoint::ServerlessRuntime as _;
    let foreign = id.clone();
    let found = bed.run(|serverless| async move { serverless.get_invocation(&eve, &foreign).await });
    assert_eq!(found.unwrap_err().error_type_id, errors::NOT_FOUND);
    let listed = bed.run(|serverless| async move {
        serverless.page_invocations(&caller("eve", "other"), InvocationListFilter::default()).await
    });
    assert!(listed.unwrap().items.is_empty());
}

/// SR-326, SR-327, SR-328, SR-334, SR-336, SR-337, SR-338: pages forth and back, by filter and order, with cursors of their own list.
#[test]
fn invocations_are_listed_in_pages() {
    use servo_entrypoint::odata::{Filter, INVOCATIONS, OrderBy};
    let bed = Bed::new(47);
    let address = echo(&bed, "f", |_| {});
    let ids: Vec<String> = (0..7).map(|n| bed.start(&address, json!({"n": n})).unwrap().record.invocation_id).collect();
    for id in &ids {
        bed.until(id, S::Succeeded);
    }
    let page = |cursor: Option<String>, order: Option<&str>| {
        let order = order.map(|text| OrderBy::parse(text, &INVOCATIONS).unwrap());
        let page = PageQuery { limit: Some(3), cursor, filter: None, order };
        let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
        bed.run(|serverless| async move { serverless.page_invocations(&me(), filter).await })
    };
    let mut newest: Vec<String> = ids.clone();
    newest.sort_by(|left, right| right.cmp(left));
    let (mut seen, mut cursor, mut sizes) = (Vec::new(), None, Vec::new());
    loop {
        let found = page(cursor, None).unwrap();
        sizes.push((found.items.len(), found.page_info.has_more));
        seen.extend(found.items.into_iter().map(|record| record.invocation_id));
        cursor = found.page_info.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((seen, sizes), (newest.clone(), vec![(3, true), (3, true), (1, false)]));
    let first = page(None, None).unwrap();
    let second = page(first.page_info.next_cursor.clone(), None).unwrap();
    let back = page(second.page_info.prev_cursor, None).unwrap();
    assert_eq!(back.items, first.items);
    assert!(back.page_info.prev_cursor.is_none());
    let oldest = page(None, Some("created_at asc")).unwrap();
    assert_eq!(oldest.items[0].invocation_id, newest[6]);
    let mixed = page(first.page_info.next_cursor, Some("created_at asc"));
    assert_eq!(mixed.unwrap_err().error_type_id, errors::BAD_REQUEST, "a cursor of another list");
    assert_eq!(page(Some("x".to_owned()), None).unwrap_err().error_type_id, errors::BAD_REQUEST);

    let found = |text: String| {
        let filter = Some(Filter::parse(&text, &INVOCATIONS).unwrap());
        let page = PageQuery { filter, ..PageQuery::default() };
        let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
        bed.run(|serverless| async move { serverless.page_invocations(&me(), filter).await }).unwrap().items.len()
    };
    assert_eq!(found("status eq 'succeeded'".to_owned()), 7);
    assert_eq!(found("status in ('failed','queued') or mode eq 'sync'".to_owned()), 0);
    assert_eq!(found(format!("not (invocation_id eq '{}')", ids[0])), 6);
    assert_eq!(found(format!("entrypoint_id eq '{address}' and correlation_id eq 'c-ada'")), 7);
    assert_eq!(found("entrypoint_id eq 'gts.none'".to_owned()), 0);
    assert_eq!(found("created_at ge 2001-01-01T00:00:00.000Z".to_owned()), 7);
    let counts =
        bed.run(|serverless| async move { serverless.count_invocations(&me(), InvocationListFilter::default()).await });
    let counts = counts.unwrap();
    assert_eq!(
        counts.iter().map(|count| (count.status, count.count)).filter(|(_, n)| *n > 0).collect::<Vec<_>>(),
        [(S::Succeeded, 7)]
    );
}

/// SR-341: by status, too, page by page, with the id as the tiebreaker.
#[test]
fn invocations_are_ordered_by_status() {
    use servo_entrypoint::odata::{INVOCATIONS, OrderBy};
    let bed = Bed::new(52);
    let works = echo(&bed, "f", |_| {});
    let hangs = bed.function("hangs", |_| std::future::pending());
    for address in [&works, &hangs, &works, &hangs, &works] {
        let id = bed.start(address, json!({})).unwrap().record.invocation_id;
        bed.until(&id, if *address == works { S::Succeeded } else { S::Running });
    }
    let page = |cursor: Option<String>, order: &str| {
        let order = Some(OrderBy::parse(order, &INVOCATIONS).unwrap());
        let page = PageQuery { limit: Some(2), cursor, filter: None, order };
        let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
        bed.run(|serverless| async move { serverless.page_invocations(&me(), filter).await })
    };
    for (order, ascending) in [("status asc", true), ("status desc, created_at desc", false)] {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let found = page(cursor, order).unwrap();
            seen.extend(found.items.into_iter().map(|record| (record.status.as_str(), record.invocation_id)));
            cursor = found.page_info.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let mut sorted = seen.clone();
        sorted.sort();
        if !ascending {
            sorted.reverse();
        }
        assert_eq!((seen.len(), &seen), (5, &sorted), "{order}");
    }
}

/// SR-341: the table of fields promises no comparison and no order that the list refuses.
#[test]
fn whatever_can_be_asked_about_invocations_is_answered() {
    use servo_entrypoint::odata::{FieldKind, Filter, INVOCATIONS, OrderBy};
    let bed = Bed::new(53);
    let ask = |filter: Option<String>, order: Option<String>| {
        let filter = filter.map(|text| Filter::parse(&text, &INVOCATIONS).unwrap());
        let order = order.map(|text| OrderBy::parse(&text, &INVOCATIONS).unwrap());
        let page = PageQuery { filter, order, ..PageQuery::default() };
        let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
        bed.run(|serverless| async move { serverless.page_invocations(&me(), filter).await })
    };
    for field in INVOCATIONS.fields {
        let (name, kind) = (field.name, field.kind);
        let value = match kind {
            FieldKind::Text => "'a'".to_owned(),
            // A short name is looked up, and this one is of nothing.
            FieldKind::Name => {
                "'gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.none.v1~'".to_owned()
            }
            FieldKind::Word(words) => format!("'{}'", words[0]),
            FieldKind::Time => "2026-01-01T00:00:00Z".to_owned(),
        };
        let more: &[&str] = if kind.is_ordered() { &["lt", "le", "gt", "ge"] } else { &[] };
        let compared = ["eq", "ne"].iter().chain(more).map(|operator| format!("{name} {operator} {value}"));
        for filter in compared.chain([format!("{name} in ({value},{value})"), format!("not {name} eq {value}")]) {
            let answer = ask(Some(filter.clone()), None);
            assert!(answer.is_ok(), "{filter}: {answer:?}");
        }
        for order in ["", " asc", " desc"].iter().filter(|_| field.sortable).map(|way| format!("{name}{way}")) {
            let answer = ask(None, Some(order.clone()));
            assert!(answer.is_ok(), "{order}: {answer:?}");
        }
    }
}
