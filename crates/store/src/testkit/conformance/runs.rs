//! The `runs` row: how it changes, how it is listed, and that one request starts one run.

use servo_canon::Digest;
use servo_model::{RunStatus, TenantId};

use super::Context;
use crate::error::Error;
use crate::log::{Append, Expected};
use crate::runs::{RunQuery, RunRow, Scope};
use crate::testkit::fixtures::{add, finished_row, fresh_event, run_id, run_row, start_stream, tenant};
use servo_model::invocation::InvocationStatus;

async fn start_with(ctx: &Context, row: RunRow) -> crate::Result<()> {
    let mut stream = start_stream(&row.run_id, &row.tenant);
    stream.row = Some(row);
    ctx.put(stream).await.map(|_| ())
}

pub(super) async fn a_row_comes_back_as_it_went_in(ctx: &Context) {
    let acme = tenant("acme");
    for (index, status) in RunStatus::ALL.into_iter().enumerate() {
        let run = run_id(&format!("inv_{index}"));
        let row = RunRow {
            status,
            visible: InvocationStatus::ALL[index % InvocationStatus::ALL.len()],
            project: "pro/ject".into(),
            environment: "e:1".into(),
            plan_id: format!("plan.{index}").into(),
            plan_version: "2026.1".to_owned(),
            request_key: (index % 2 == 0).then(|| Digest::of(&[index as u8])),
            finished_at: status.is_terminal().then(|| ctx.clock.after(7)),
            name: (index % 3 == 0).then(|| format!("name {index}")),
            outcome: (index % 3 == 1).then(|| "TIMED_OUT".to_owned()),
            ..run_row(&run, &acme, ctx.clock.now())
        };
        start_with(ctx, row.clone()).await.unwrap();
        assert_eq!(ctx.store.get_run(&Scope::System, &run).await.unwrap(), Some(row));
    }
    assert_eq!(ctx.store.get_run(&Scope::System, &run_id("inv_none")).await.unwrap(), None);
}

pub(super) async fn an_append_changes_the_row_with_the_event(ctx: &Context) {
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    let key = Digest::of(b"request");
    let first = RunRow { request_key: Some(key), ..run_row(&run, &acme, ctx.clock.now()) };
    start_with(ctx, first.clone()).await.unwrap();

    ctx.put(add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)])).await.unwrap();
    assert_eq!(ctx.store.get_run(&Scope::System, &run).await.unwrap(), Some(first.clone()), "no row, no change");

    ctx.clock.advance(60_000);
    let mut ended = add(&run, &acme, Expected::Seq(2), vec![fresh_event(&run)]);
    let outcome = Some("STOPPED".to_owned());
    let name = Some("first".to_owned());
    ended.row = Some(RunRow { changed_seq: 3, outcome, name, ..finished_row(&run, &acme, ctx.clock.now()) });
    ctx.put(ended).await.unwrap();
    let row = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!((row.status, row.visible), (RunStatus::Completed, InvocationStatus::Succeeded));
    assert_eq!((row.finished_at, row.changed_seq), (Some(ctx.clock.now()), 3));
    assert_eq!((row.outcome.as_deref(), row.name.as_deref()), (Some("STOPPED"), Some("first")));
    assert_eq!((row.request_key, row.created_at), (Some(key), first.created_at), "these belong to the run's start");
}

pub(super) async fn lists_are_filtered_and_go_both_ways(ctx: &Context) {
    let acme = tenant("acme");
    for number in 1..=6 {
        let run = run_id(&format!("inv_{number}"));
        let visible = if number % 2 == 0 { InvocationStatus::Failed } else { InvocationStatus::Running };
        let plan_id = if number <= 3 { "early" } else { "late" }.into();
        start_with(ctx, RunRow { visible, plan_id, ..run_row(&run, &acme, ctx.clock.now()) }).await.unwrap();
    }
    let all = RunQuery { limit: 100, ..RunQuery::default() };
    let failed = RunQuery { visible: vec![InvocationStatus::Failed], ..all.clone() };
    let both = RunQuery {
        visible: vec![InvocationStatus::Failed, InvocationStatus::Running, InvocationStatus::Failed],
        ..all.clone()
    };
    let late = RunQuery { plan_id: Some("late".to_owned()), ..all.clone() };
    let old = |query: &RunQuery| RunQuery { oldest_first: true, ..query.clone() };
    let behind =
        |number: u32, query: &RunQuery| RunQuery { after: Some(run_id(&format!("inv_{number}"))), ..query.clone() };
    for (query, expected) in [
        (all.clone(), &[6, 5, 4, 3, 2, 1][..]),
        (RunQuery { limit: 2, ..all.clone() }, &[6, 5]),
        (behind(5, &all), &[4, 3, 2, 1]),
        (RunQuery { limit: 1, ..behind(5, &all) }, &[4]),
        (failed.clone(), &[6, 4, 2]),
        (RunQuery { limit: 1, ..behind(5, &failed) }, &[4]),
        (both.clone(), &[6, 5, 4, 3, 2, 1]),
        (RunQuery { limit: 3, ..behind(5, &both) }, &[4, 3, 2]),
        (late.clone(), &[6, 5, 4]),
        (RunQuery { limit: 2, ..late.clone() }, &[6, 5]),
        (RunQuery { visible: vec![InvocationStatus::Failed], ..behind(5, &late) }, &[4]),
        (RunQuery { visible: vec![InvocationStatus::Queued], ..all.clone() }, &[]),
        (RunQuery { plan_id: Some("lat".to_owned()), ..all.clone() }, &[]),
        (old(&all), &[1, 2, 3, 4, 5, 6]),
        (RunQuery { limit: 2, ..old(&all) }, &[1, 2]),
        (behind(5, &old(&all)), &[6]),
        (behind(2, &old(&both)), &[3, 4, 5, 6]),
        (behind(2, &old(&failed)), &[4, 6]),
        (RunQuery { limit: 2, ..old(&late) }, &[4, 5]),
        (behind(4, &old(&late)), &[5, 6]),
    ] {
        assert_lists(ctx, &query, expected).await;
    }
}

/// In both scopes: a tenant's lists are found by other indexes than the engine's.
async fn assert_lists(ctx: &Context, query: &RunQuery, expected: &[u32]) {
    for scope in [Scope::System, Scope::Tenant(tenant("acme"))] {
        let rows = ctx.store.list_runs(&scope, query).await.unwrap();
        let expected: Vec<_> = expected.iter().map(|number| format!("inv_{number}")).collect();
        let listed: Vec<_> = rows.iter().map(|row| row.run_id.as_str()).collect();
        assert_eq!(listed, expected, "{scope:?} {query:?}");
    }
}

pub(super) async fn lists_are_narrowed_by_what_callers_know(ctx: &Context) {
    let acme = tenant("acme");
    for number in 1..=6_u64 {
        let run = run_id(&format!("inv_{number}"));
        let row = RunRow {
            name: (number % 3 != 0).then(|| format!("order-{}", number % 3)),
            outcome: (number > 2).then(|| if number < 5 { "TIMED_OUT" } else { "STOPPED" }.to_owned()),
            plan_version: if number % 2 == 0 { "2" } else { "1" }.to_owned(),
            ..run_row(&run, &acme, ctx.clock.after(number * 10))
        };
        start_with(ctx, row).await.unwrap();
    }
    // The same names elsewhere.
    let globex = tenant("globex");
    let row = RunRow { name: Some("order-1".to_owned()), ..run_row(&run_id("inv_9"), &globex, ctx.clock.after(10)) };
    start_with(ctx, row).await.unwrap();
    let all =
        RunQuery { plan_id: Some("plan".to_owned()), after: Some(run_id("inv_7")), limit: 100, ..RunQuery::default() };
    let named = |name: &str| RunQuery { name: Some(name.to_owned()), ..all.clone() };
    let ended = |outcomes: &[Option<&str>]| RunQuery {
        outcome: Some(outcomes.iter().map(|outcome| outcome.map(str::to_owned)).collect()),
        ..all.clone()
    };
    let created = |from: Option<u64>, until: Option<u64>| RunQuery {
        created_from: from.map(|at| ctx.clock.after(at)),
        created_until: until.map(|at| ctx.clock.after(at)),
        ..all.clone()
    };
    let second = RunQuery { plan_version: Some("2".to_owned()), ..all.clone() };
    for (query, expected) in [
        (named("order-1"), &[4, 1][..]),
        (RunQuery { limit: 1, ..named("order-1") }, &[4]),
        (RunQuery { oldest_first: true, after: None, plan_id: None, ..named("order-2") }, &[2, 5]),
        (RunQuery { visible: vec![InvocationStatus::Failed], ..named("order-1") }, &[]),
        (named("order-"), &[]),
        (second.clone(), &[6, 4, 2]),
        (RunQuery { plan_id: None, ..second }, &[6, 4, 2]),
        (created(Some(20), Some(50)), &[4, 3, 2]),
        (created(Some(50), None), &[6, 5]),
        (created(None, Some(20)), &[1]),
        (created(Some(50), Some(50)), &[]),
        (ended(&[None]), &[2, 1]),
        (ended(&[Some("TIMED_OUT")]), &[4, 3]),
        (ended(&[Some("STOPPED"), None]), &[6, 5, 2, 1]),
        (ended(&[]), &[]),
    ] {
        assert_lists(ctx, &query, expected).await;
    }
    let long = RunRow { name: Some("n".repeat(257)), ..run_row(&run_id("inv_8"), &acme, ctx.clock.now()) };
    refused!(start_with(ctx, long).await, Error::Limit { limit: 256, .. });
}

pub(super) async fn open_runs_below_a_root_are_counted_and_listed(ctx: &Context) {
    let (acme, globex, root) = (tenant("acme"), tenant("globex"), run_id("inv_root"));
    let below = async |run: &str, owner: &TenantId, root: &str, status| {
        let row = RunRow { root: Some(run_id(root)), status, ..run_row(&run_id(run), owner, ctx.clock.now()) };
        start_with(ctx, row).await.unwrap();
    };
    let open = async |after: Option<&str>, limit| {
        let after = after.map(run_id);
        let runs = ctx.store.open_descendants(&acme, &root, after.as_ref(), limit).await.unwrap();
        runs.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    start_with(ctx, run_row(&root, &acme, ctx.clock.now())).await.unwrap();
    assert!(open(None, 10).await.is_empty(), "a root is not below itself");
    for (index, status) in RunStatus::ALL.into_iter().enumerate() {
        below(&format!("inv_{index}"), &acme, "inv_root", status).await;
    }
    below("inv_Z", &acme, "inv_root", RunStatus::Running).await;
    below("inv_other", &acme, "inv_0", RunStatus::Running).await;
    below("inv_foreign", &globex, "inv_root", RunStatus::Running).await;
    let is_open = |(index, status): (usize, &RunStatus)| (!status.is_terminal()).then(|| format!("inv_{index}"));
    let mut expected: Vec<String> = RunStatus::ALL.iter().enumerate().filter_map(is_open).collect();
    expected.push("inv_Z".to_owned());
    assert_eq!(open(None, 10).await, expected, "in the order of the ids' bytes");
    assert_eq!(open(None, 2).await, expected[..2]);
    assert_eq!(open(Some(&expected[1]), 10).await, expected[2..]);
    let all = u32::try_from(expected.len()).unwrap();
    for (most, count) in [(10_000, all), (all, all), (2, 2)] {
        assert_eq!(ctx.store.count_descendants(&acme, &root, most).await.unwrap(), count);
    }
    assert_eq!(ctx.store.count_descendants(&globex, &root, 10).await.unwrap(), 1);
    // A run keeps its root for life, whatever a later row says, and leaves its family when it ends.
    let run = run_id("inv_Z");
    let kept = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!(kept.root.as_ref(), Some(&root));
    for (seq, row) in [(1, run_row(&run, &acme, ctx.clock.now())), (2, finished_row(&run, &acme, ctx.clock.now()))] {
        assert_eq!(ctx.store.count_descendants(&acme, &root, 10).await.unwrap(), all);
        let mut changed = add(&run, &acme, Expected::Seq(seq), vec![fresh_event(&run)]);
        changed.row = Some(RunRow { changed_seq: seq + 1, ..row });
        ctx.put(changed).await.unwrap();
    }
    assert_eq!(ctx.store.count_descendants(&acme, &root, 10).await.unwrap(), all - 1);
    assert_eq!(ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap().root, Some(root.clone()));
    ctx.store.delete_run(&Scope::System, &run_id("inv_0")).await.unwrap();
    assert!(!open(None, 10).await.contains(&"inv_0".to_owned()));
}

pub(super) async fn open_runs_are_counted_by_version(ctx: &Context) {
    let acme = tenant("acme");
    assert_eq!(ctx.store.count_open(&acme, "plan").await.unwrap(), []);
    let put = async |run: &str, owner: &str, plan: &str, version: &str, status| {
        let row = RunRow {
            plan_id: plan.into(),
            plan_version: version.to_owned(),
            status,
            ..run_row(&run_id(run), &tenant(owner), ctx.clock.now())
        };
        start_with(ctx, row).await.unwrap();
    };
    for (index, status) in RunStatus::ALL.into_iter().enumerate() {
        put(&format!("inv_a{index}"), "acme", "plan", "10", status).await;
    }
    put("inv_b", "acme", "plan", "9", RunStatus::Pending).await;
    put("inv_c", "acme", "plan", "B", RunStatus::Paused).await;
    put("inv_d", "acme", "plan", "a", RunStatus::Approved).await;
    put("inv_e", "acme", "other", "1", RunStatus::Running).await;
    put("inv_f", "globex", "plan", "1", RunStatus::Running).await;
    let open = RunStatus::ALL.iter().filter(|status| !status.is_terminal()).count() as u64;
    let expected = [("10", open), ("9", 1), ("B", 1), ("a", 1)].map(|(version, count)| (version.to_owned(), count));
    assert_eq!(ctx.store.count_open(&acme, "plan").await.unwrap(), expected);
    let mut ended = add(&run_id("inv_b"), &acme, Expected::Seq(1), Vec::new());
    ended.row = Some(RunRow { plan_version: "9".to_owned(), ..finished_row(&run_id("inv_b"), &acme, ctx.clock.now()) });
    ctx.put(ended).await.unwrap();
    ctx.store.delete_run(&Scope::System, &run_id("inv_c")).await.unwrap();
    assert_eq!(ctx.store.count_open(&acme, "plan").await.unwrap(), [expected[0].clone(), expected[3].clone()]);
    assert_eq!(ctx.store.count_open(&TenantId::system(), "").await.unwrap(), []);
}

/// Paging by run id works only if every backend sorts alike, whatever language its database speaks.
pub(super) async fn ids_sort_by_byte(ctx: &Context) {
    let sorted = ["0", "A", "Inv_1", "Z", "_b", "a", "inv-1", "inv1", "inv_1", "inv_10", "inv_2", "z"];
    for run in sorted.iter().rev().step_by(2).chain(sorted.iter().rev().skip(1).step_by(2)) {
        ctx.start(run, "acme").await;
    }
    let query = RunQuery { limit: 100, ..RunQuery::default() };
    let rows = ctx.store.list_runs(&Scope::System, &query).await.unwrap();
    let listed: Vec<_> = rows.iter().rev().map(|row| row.run_id.as_str()).collect();
    assert_eq!(listed, sorted);
    for (index, run) in sorted.iter().enumerate() {
        let query = RunQuery { after: Some(run_id(run)), limit: 100, ..RunQuery::default() };
        assert_eq!(ctx.store.list_runs(&Scope::System, &query).await.unwrap().len(), index, "before {run}");
    }
}

pub(super) async fn a_request_starts_one_run(ctx: &Context) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let key = Digest::of(b"acme|project|test|plan|1|request-1");
    let row = |run: &str, tenant| RunRow { request_key: Some(key), ..run_row(&run_id(run), tenant, ctx.clock.now()) };
    assert_eq!(ctx.store.find_request(&acme, key).await.unwrap(), None);
    start_with(ctx, row("inv_1", &acme)).await.unwrap();
    let repeated = start_with(ctx, row("inv_2", &acme)).await;
    refused!(repeated, Error::RequestExists { run_id } if run_id.as_str() == "inv_1");
    assert_eq!(ctx.store.get_run(&Scope::System, &run_id("inv_2")).await.unwrap(), None);
    assert_eq!(ctx.store.find_request(&acme, key).await.unwrap(), Some(run_id("inv_1")));

    start_with(ctx, row("inv_3", &globex)).await.unwrap();
    assert_eq!(ctx.store.find_request(&globex, key).await.unwrap(), Some(run_id("inv_3")));

    // Without a key, nothing is unique.
    for run in ["inv_4", "inv_5"] {
        start_with(ctx, run_row(&run_id(run), &acme, ctx.clock.now())).await.unwrap();
    }
    // Both in one append: the second finds the first, and neither stays.
    let other = Digest::of(b"other");
    let streams = ["inv_6", "inv_7"].map(|run| {
        let mut stream = start_stream(&run_id(run), &acme);
        stream.row = Some(RunRow { request_key: Some(other), ..row(run, &acme) });
        stream
    });
    let both = ctx.store.append(Append { streams: streams.to_vec(), ..Append::default() }).await;
    refused!(both, Error::RequestExists { run_id } if run_id.as_str() == "inv_6");
    assert_eq!(ctx.store.find_request(&acme, other).await.unwrap(), None);
}

pub(super) async fn racing_requests_start_one_run(ctx: &Context) {
    const CALLERS: usize = 8;
    let results = ctx
        .threads(CALLERS, |ctx, index| {
            Box::pin(async move {
                let (run, acme) = (run_id(&format!("inv_{index}")), tenant("acme"));
                let key = Some(Digest::of(b"request"));
                let row = RunRow { request_key: key, ..run_row(&run, &acme, ctx.clock.now()) };
                (run, start_with(&ctx, row).await)
            })
        })
        .await;
    let started: Vec<_> = results.iter().filter(|(_, result)| result.is_ok()).map(|(run, _)| run.clone()).collect();
    assert_eq!(started.len(), 1);
    for (_, result) in results.into_iter().filter(|(_, result)| result.is_err()) {
        refused!(result, Error::RequestExists { run_id } if run_id == started[0]);
    }
    let query = RunQuery { limit: 100, ..RunQuery::default() };
    assert_eq!(ctx.store.list_runs(&Scope::System, &query).await.unwrap().len(), 1);
}

pub(super) async fn active_runs_are_counted_up_to_a_limit(ctx: &Context) {
    let acme = tenant("acme");
    assert_eq!(ctx.store.count_active(&acme, 10).await.unwrap(), 0);
    for (index, status) in RunStatus::ALL.into_iter().chain([RunStatus::Running, RunStatus::Running]).enumerate() {
        let run = run_id(&format!("inv_{index}"));
        start_with(ctx, RunRow { status, ..run_row(&run, &acme, ctx.clock.now()) }).await.unwrap();
    }
    for (most, count) in [(100, 4), (4, 4), (3, 3), (1, 1)] {
        assert_eq!(ctx.store.count_active(&acme, most).await.unwrap(), count);
    }
    let system = TenantId::system();
    assert_eq!(ctx.store.count_active(&system, 10).await.unwrap(), 0, "the system stream is no run");
}
