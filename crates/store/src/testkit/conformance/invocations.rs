//! Runs of entrypoints: lists that hold only them, conditions put together by callers, numbers by status, and requests
//! that can be freed.

use servo_canon::Digest;
use servo_model::RunStatus;
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::limits::{JSON_DEPTH_MAX, PLANS_PER_QUERY_MAX, RUN_FILTER_TERMS_MAX};

use super::Context;
use crate::error::Error;
use crate::log::Expected;
use crate::runs::{CompareOp, RunField, RunFilter, RunOrder, RunQuery, RunRow, RunValue, Scope};
use crate::testkit::fixtures::{add, fresh_event, invocation_row, run_id, run_row, start_stream, tenant};

async fn start(ctx: &Context, row: RunRow) -> crate::Result<()> {
    let mut stream = start_stream(&row.run_id, &row.tenant);
    stream.row = Some(row);
    ctx.put(stream).await.map(|_| ())
}

async fn change(ctx: &Context, seq: u64, row: RunRow) {
    let mut stream = add(&row.run_id, &row.tenant, Expected::Seq(seq), vec![fresh_event(&row.run_id)]);
    stream.row = Some(row);
    ctx.put(stream).await.unwrap();
}

/// Six runs: 1 and 4 are no invocations.
async fn fill(ctx: &Context) {
    use InvocationStatus as S;
    let acme = tenant("acme");
    for (number, visible, plan, mode, correlation) in [
        (1, S::Running, "a", None, None),
        (2, S::Running, "a", Some(InvocationMode::Sync), Some("t1")),
        (3, S::Succeeded, "b", Some(InvocationMode::Async), Some("t2")),
        (4, S::Succeeded, "b", None, None),
        (5, S::Failed, "a", Some(InvocationMode::Async), Some("t1")),
        (6, S::Running, "c", Some(InvocationMode::Sync), None),
    ] {
        let ended = visible != S::Running;
        let row = RunRow {
            visible,
            status: if ended { RunStatus::Completed } else { RunStatus::Running },
            finished_at: ended.then(|| ctx.clock.after(100 + number)),
            plan_id: plan.into(),
            invocation: mode.is_some(),
            mode,
            correlation_id: correlation.map(str::to_owned),
            // Against the order of the ids.
            ..run_row(&run_id(&format!("inv_{number}")), &acme, ctx.clock.after(10 - number))
        };
        start(ctx, row.clone()).await.unwrap();
        assert_eq!(ctx.store.get_run(&Scope::System, &row.run_id).await.unwrap(), Some(row));
    }
    start(ctx, invocation_row(&run_id("inv_9"), &tenant("globex"), ctx.clock.now())).await.unwrap();
}

async fn numbers(ctx: &Context, query: &RunQuery) -> Vec<u32> {
    let found = ctx.store.list_runs(&Scope::Tenant(tenant("acme")), query).await.unwrap();
    found.iter().map(|row| row.run_id.as_str()["inv_".len()..].parse().unwrap()).collect()
}

fn all() -> RunQuery {
    RunQuery { limit: 100, ..RunQuery::default() }
}

fn invocations() -> RunQuery {
    RunQuery { invocations: Some(true), ..all() }
}

pub(super) async fn lists_of_invocations_hold_no_other_runs(ctx: &Context) {
    use InvocationStatus as S;
    fill(ctx).await;
    let plans = |plans: &[&str]| plans.iter().map(|plan| (*plan).to_owned()).collect::<Vec<_>>();
    for (query, expected) in [
        (all(), &[6, 5, 4, 3, 2, 1][..]),
        (invocations(), &[6, 5, 3, 2]),
        (RunQuery { invocations: Some(false), ..all() }, &[4, 1]),
        (RunQuery { limit: 2, after: Some(run_id("inv_6")), ..invocations() }, &[5, 3]),
        (RunQuery { oldest_first: true, limit: 2, ..invocations() }, &[2, 3]),
        (RunQuery { visible: vec![S::Running], ..invocations() }, &[6, 2]),
        (RunQuery { visible: vec![S::Running], ..all() }, &[6, 2, 1]),
        (RunQuery { visible: vec![S::Running, S::Failed], ..invocations() }, &[6, 5, 2]),
        (RunQuery { plan_id: Some("a".to_owned()), ..invocations() }, &[5, 2]),
        (RunQuery { plan_id: Some("a".to_owned()), visible: vec![S::Failed], ..invocations() }, &[5]),
        (RunQuery { plan_ids: plans(&["c", "a", "a"]), ..invocations() }, &[6, 5, 2]),
        (RunQuery { plan_ids: plans(&["c", "a"]), visible: vec![S::Running], ..all() }, &[6, 2, 1]),
        (RunQuery { plan_ids: plans(&["c"]), plan_id: Some("a".to_owned()), ..all() }, &[]),
        (RunQuery { mode: Some(InvocationMode::Sync), ..invocations() }, &[6, 2]),
        (RunQuery { correlation_id: Some("t1".to_owned()), ..invocations() }, &[5, 2]),
        (RunQuery { correlation_id: Some("t1".to_owned()), visible: vec![S::Failed], ..all() }, &[5]),
        (RunQuery { correlation_id: Some("T1".to_owned()), ..invocations() }, &[]),
    ] {
        assert_eq!(numbers(ctx, &query).await, expected, "{query:?}");
    }
    let every = ctx.store.list_runs(&Scope::System, &invocations()).await.unwrap();
    assert_eq!(every.len(), 5, "of all tenants");
    let many = RunQuery { plan_ids: vec!["a".to_owned(); PLANS_PER_QUERY_MAX + 1], ..all() };
    refused!(ctx.store.list_runs(&Scope::System, &many).await, Error::Limit { .. });
}

pub(super) async fn lists_come_in_several_orders(ctx: &Context) {
    fill(ctx).await;
    // Failed, running, running, succeeded; the earlier the id, the later the time.
    let created: fn(&RunRow) -> RunOrder = |row| RunOrder::Created { after: Some(row.created_at) };
    let visible: fn(&RunRow) -> RunOrder = |row| RunOrder::Visible { after: Some(row.visible) };
    for (first, next, expected) in [
        (RunOrder::RunId, (|_| RunOrder::RunId) as fn(&RunRow) -> RunOrder, [2, 3, 5, 6]),
        (RunOrder::Created { after: None }, created, [6, 5, 3, 2]),
        (RunOrder::Visible { after: None }, visible, [5, 2, 6, 3]),
    ] {
        for oldest_first in [true, false] {
            let mut expected = expected;
            if !oldest_first {
                expected.reverse();
            }
            for limit in [1, 3, 100] {
                let mut query = RunQuery { order: first, oldest_first, limit, ..invocations() };
                let mut seen = Vec::new();
                loop {
                    let page = ctx.store.list_runs(&Scope::Tenant(tenant("acme")), &query).await.unwrap();
                    let Some(last) = page.last() else { break };
                    (query.order, query.after) = (next(last), Some(last.run_id.clone()));
                    seen.extend(page.iter().map(|row| row.run_id.as_str()["inv_".len()..].parse::<u32>().unwrap()));
                }
                assert_eq!(seen, expected, "{first:?} {oldest_first} {limit}");
            }
        }
    }
    let order = RunOrder::Created { after: None };
    let old = RunQuery { order, created_until: Some(ctx.clock.after(7)), ..invocations() };
    assert_eq!(numbers(ctx, &old).await, [5, 6]);
    let others = RunQuery { order, invocations: None, oldest_first: true, ..old };
    assert_eq!(numbers(ctx, &others).await, [6, 5, 4]);
}

pub(super) async fn filters_are_put_together(ctx: &Context) {
    use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
    use RunField as F;
    fill(ctx).await;
    let text = |text: &str| RunValue::Text(text.to_owned());
    let is = |field: RunField, op: CompareOp, value: RunValue| RunFilter::Compare { field, op, value };
    let time = |ms: u64| RunValue::Time(ctx.clock.after(ms));
    for (filter, expected) in [
        (is(F::RunId, Gt, text("inv_3")), &[6, 5][..]),
        (is(F::RunId, Le, text("inv_3")), &[3, 2]),
        (is(F::PlanId, Ne, text("a")), &[6, 3]),
        (is(F::Visible, Eq, text("running")), &[6, 2]),
        (is(F::Visible, Lt, text("running")), &[5]),
        (is(F::Mode, Eq, text("sync")), &[6, 2]),
        (is(F::CorrelationId, Eq, RunValue::Null), &[6]),
        (is(F::CorrelationId, Ne, RunValue::Null), &[5, 3, 2]),
        // What is absent differs from every value, and is neither less nor greater.
        (is(F::CorrelationId, Ne, text("t1")), &[6, 3]),
        (is(F::CorrelationId, Ge, text("")), &[5, 3, 2]),
        (is(F::CorrelationId, Lt, RunValue::Null), &[]),
        (RunFilter::Not(Box::new(is(F::CorrelationId, Ge, text("")))), &[6]),
        (is(F::CreatedAt, Lt, time(6)), &[6, 5]),
        (is(F::FinishedAt, Gt, time(103)), &[5]),
        (is(F::FinishedAt, Eq, RunValue::Null), &[6, 2]),
        (RunFilter::In { field: F::CorrelationId, values: vec![RunValue::Null, text("t2")] }, &[6, 3]),
        (RunFilter::In { field: F::Visible, values: vec![] }, &[]),
        (RunFilter::And(vec![]), &[6, 5, 3, 2]),
        (RunFilter::Or(vec![]), &[]),
        (
            RunFilter::Or(vec![
                RunFilter::And(vec![is(F::PlanId, Eq, text("a")), is(F::Visible, Eq, text("failed"))]),
                is(F::PlanId, Eq, text("b")),
            ]),
            &[5, 3],
        ),
        // Values are never part of the statement.
        (is(F::PlanId, Eq, text("a\' OR \'1\'=\'1")), &[]),
    ] {
        let query = RunQuery { filter: Some(filter), ..invocations() };
        assert_eq!(numbers(ctx, &query).await, expected, "{query:?}");
        let first = RunQuery { limit: 1, ..query };
        assert_eq!(numbers(ctx, &first).await, expected[..expected.len().min(1)]);
    }
    let refused = async |filter: RunFilter| {
        let query = RunQuery { filter: Some(filter), ..all() };
        ctx.store.list_runs(&Scope::System, &query).await
    };
    refused!(refused(is(F::PlanId, Eq, time(1))).await, Error::Invalid { field, .. } if field == "filter");
    refused!(refused(is(F::CreatedAt, Eq, text("1"))).await, Error::Invalid { field, .. } if field == "filter");
    refused!(refused(is(F::PlanId, Eq, text("\0"))).await, Error::Invalid { field, .. } if field == "filter");
    let mut deep = is(F::PlanId, Eq, text("a"));
    for _ in 0..=JSON_DEPTH_MAX {
        deep = RunFilter::Not(Box::new(deep));
    }
    refused!(refused(deep).await, Error::Limit { .. });
    let values = vec![text("x"); RUN_FILTER_TERMS_MAX - 1];
    assert_eq!(refused(RunFilter::In { field: F::PlanId, values: values.clone() }).await.unwrap(), []);
    let long = RunFilter::In { field: F::PlanId, values: [values, vec![text("y")]].concat() };
    refused!(refused(long).await, Error::Limit { .. });
}

pub(super) async fn how_it_was_called_stays(ctx: &Context) {
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    let correlation_id = Some("t1".to_owned());
    let row = RunRow { correlation_id, ..invocation_row(&run, &acme, ctx.clock.now()) };
    start(ctx, row.clone()).await.unwrap();
    change(ctx, 1, run_row(&run, &acme, ctx.clock.now())).await;
    assert_eq!(ctx.store.get_run(&Scope::System, &run).await.unwrap(), Some(row));
}

pub(super) async fn invocations_are_counted_by_status(ctx: &Context) {
    use InvocationStatus as S;
    fill(ctx).await;
    let acme = tenant("acme");
    let counts = async |plan: Option<&str>| ctx.store.count_by_visible(&acme, plan).await.unwrap();
    assert_eq!(counts(None).await, [(S::Running, 2), (S::Succeeded, 1), (S::Failed, 1)]);
    assert_eq!(counts(Some("a")).await, [(S::Running, 1), (S::Failed, 1)]);
    assert_eq!(counts(Some("none")).await, []);
    // A change moves it, an event without a row does not.
    let ended =
        RunRow { visible: S::Succeeded, plan_id: "a".into(), ..run_row(&run_id("inv_2"), &acme, ctx.clock.now()) };
    change(ctx, 1, ended.clone()).await;
    change(ctx, 2, ended.clone()).await;
    ctx.put(add(&ended.run_id, &acme, Expected::Seq(3), vec![fresh_event(&ended.run_id)])).await.unwrap();
    assert_eq!(counts(None).await, [(S::Running, 1), (S::Succeeded, 2), (S::Failed, 1)]);
    assert_eq!(counts(Some("a")).await, [(S::Succeeded, 1), (S::Failed, 1)]);
    // A refused append counts nothing.
    let mut stream = start_stream(&run_id("inv_8"), &acme);
    stream.row = Some(invocation_row(&run_id("inv_8"), &acme, ctx.clock.now()));
    let conflict = add(&ended.run_id, &acme, Expected::Seq(1), vec![fresh_event(&ended.run_id)]);
    let both = crate::log::Append { streams: vec![stream, conflict], ..Default::default() };
    refused!(ctx.store.append(both).await, Error::Conflict { .. });
    assert_eq!(counts(None).await, [(S::Running, 1), (S::Succeeded, 2), (S::Failed, 1)]);
    // What leaves, by either way, counts no more; what comes in does.
    ctx.store.delete_run(&Scope::System, &run_id("inv_6")).await.unwrap();
    assert_eq!(counts(None).await, [(S::Succeeded, 2), (S::Failed, 1)]);
    let (row, events) = (
        ctx.store.get_run(&Scope::System, &run_id("inv_2")).await.unwrap().unwrap(),
        ctx.events(&run_id("inv_2")).await,
    );
    assert_eq!(ctx.store.retire(ctx.clock.after(1_000), 100).await.unwrap(), 3);
    assert_eq!(counts(None).await, [(S::Succeeded, 1)]);
    ctx.store.delete_run(&Scope::System, &run_id("inv_2")).await.unwrap();
    assert_eq!(counts(None).await, []);
    ctx.store.import_run(row, events).await.unwrap();
    assert_eq!(counts(Some("a")).await, [(S::Succeeded, 1)]);
    assert_eq!(ctx.store.count_by_visible(&tenant("globex"), None).await.unwrap(), [(S::Running, 1)]);
}

/// The counters against a full count, after many writers at once.
pub(super) async fn racing_writers_lose_no_count(ctx: &Context) {
    const CALLERS: usize = 8;
    ctx.threads(CALLERS, |ctx, index| {
        Box::pin(async move {
            let acme = tenant("acme");
            for number in 0..12_usize {
                let run = run_id(&format!("inv_{index}_{number}"));
                let row = RunRow {
                    plan_id: format!("plan-{}", number % 2).into(),
                    ..invocation_row(&run, &acme, ctx.clock.now())
                };
                start(&ctx, row.clone()).await.unwrap();
                let visible = InvocationStatus::ALL[(index + number) % InvocationStatus::ALL.len()];
                change(&ctx, 1, RunRow { visible, ..row }).await;
                if number % 4 == 0 {
                    ctx.store.delete_run(&Scope::System, &run).await.unwrap();
                }
            }
        })
    })
    .await;
    let rows = ctx.store.list_runs(&Scope::System, &RunQuery { limit: 1_000, ..all() }).await.unwrap();
    assert_eq!(rows.len(), CALLERS * 9);
    for plan in [None, Some("plan-0"), Some("plan-1")] {
        let is_asked = |row: &&RunRow| plan.is_none_or(|plan| *plan == *row.plan_id);
        let counted =
            |status: &InvocationStatus| rows.iter().filter(is_asked).filter(|row| row.visible == *status).count();
        let expected: Vec<_> = InvocationStatus::ALL.iter().map(|status| (*status, counted(status) as u64)).collect();
        let expected: Vec<_> = expected.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(ctx.store.count_by_visible(&tenant("acme"), plan).await.unwrap(), expected, "{plan:?}");
    }
}

pub(super) async fn a_freed_request_starts_another_run(ctx: &Context) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let key = Digest::of(b"request");
    let row = |run: &str| RunRow { request_key: Some(key), ..invocation_row(&run_id(run), &acme, ctx.clock.now()) };
    start(ctx, row("inv_1")).await.unwrap();
    for (tenant, key, run) in
        [(&globex, key, "inv_1"), (&acme, Digest::of(b"other"), "inv_1"), (&acme, key, "inv_2"), (&acme, key, "inv_x")]
    {
        assert!(!ctx.store.release_request(tenant, key, &run_id(run)).await.unwrap());
    }
    assert_eq!(ctx.store.find_request(&acme, key).await.unwrap(), Some(run_id("inv_1")));
    assert!(ctx.store.release_request(&acme, key, &run_id("inv_1")).await.unwrap());
    assert!(!ctx.store.release_request(&acme, key, &run_id("inv_1")).await.unwrap(), "once");
    assert_eq!(ctx.store.find_request(&acme, key).await.unwrap(), None);
    let first = ctx.store.get_run(&Scope::System, &run_id("inv_1")).await.unwrap().unwrap();
    assert_eq!(first.request_key, None, "the run stays, without it");
    start(ctx, row("inv_2")).await.unwrap();
    assert!(!ctx.store.release_request(&acme, key, &run_id("inv_1")).await.unwrap(), "it is another run's now");
    assert_eq!(ctx.store.find_request(&acme, key).await.unwrap(), Some(run_id("inv_2")));
    refused!(start(ctx, row("inv_3")).await, Error::RequestExists { run_id } if run_id.as_str() == "inv_2");
    // A later change of the first run does not take it back.
    change(ctx, 1, row("inv_1")).await;
    assert_eq!(ctx.store.find_request(&acme, key).await.unwrap(), Some(run_id("inv_2")));
}

/// Many find an expired request at once: each frees it and starts anew, and one run comes of it.
pub(super) async fn racing_releases_start_one_run(ctx: &Context) {
    const CALLERS: usize = 8;
    let (acme, key) = (tenant("acme"), Digest::of(b"request"));
    let old = RunRow { request_key: Some(key), ..invocation_row(&run_id("inv_old"), &acme, ctx.clock.now()) };
    start(ctx, old).await.unwrap();
    let results = ctx
        .threads(CALLERS, |ctx, index| {
            Box::pin(async move {
                let (acme, key) = (tenant("acme"), Digest::of(b"request"));
                let freed = ctx.store.release_request(&acme, key, &run_id("inv_old")).await.unwrap();
                let run = run_id(&format!("inv_{index}"));
                let row = RunRow { request_key: Some(key), ..invocation_row(&run, &acme, ctx.clock.now()) };
                (freed, run, start(&ctx, row).await)
            })
        })
        .await;
    assert_eq!(results.iter().filter(|(freed, ..)| *freed).count(), 1);
    let started: Vec<_> = results.iter().filter(|(.., result)| result.is_ok()).map(|(_, run, _)| run.clone()).collect();
    assert_eq!(started.len(), 1);
    for (.., result) in results.into_iter().filter(|(.., result)| result.is_err()) {
        refused!(result, Error::RequestExists { run_id } if run_id == started[0] || run_id.as_str() == "inv_old");
    }
    assert_eq!(ctx.store.find_request(&acme, key).await.unwrap().as_ref(), Some(&started[0]));
}
