//! The `runs` row: how it changes, how it is listed, and that one request starts one run.

use servo_canon::Digest;
use servo_model::RunStatus;

use super::Context;
use crate::error::Error;
use crate::log::{Append, Expected};
use crate::runs::{RunQuery, RunRow, Scope, Visible};
use crate::testkit::fixtures::{add, finished_row, fresh_event, run_id, run_row, start_stream, tenant};

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
            visible: Visible::ALL[index % Visible::ALL.len()],
            project: "pro/ject".to_owned(),
            environment: "e:1".to_owned(),
            plan_id: format!("plan.{index}"),
            plan_version: "2026.1".to_owned(),
            request_key: (index % 2 == 0).then(|| Digest::of(&[index as u8])),
            finished_at: status.is_terminal().then(|| ctx.clock.after(7)),
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
    ended.row = Some(RunRow { changed_seq: 3, ..finished_row(&run, &acme, ctx.clock.now()) });
    ctx.put(ended).await.unwrap();
    let row = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!((row.status, row.visible), (RunStatus::Completed, Visible::Succeeded));
    assert_eq!((row.finished_at, row.changed_seq), (Some(ctx.clock.now()), 3));
    assert_eq!((row.request_key, row.created_at), (Some(key), first.created_at), "these belong to the run's start");
}

pub(super) async fn lists_are_filtered_and_newest_first(ctx: &Context) {
    let acme = tenant("acme");
    for number in 1..=6 {
        let run = run_id(&format!("inv_{number}"));
        let visible = if number % 2 == 0 { Visible::Failed } else { Visible::Running };
        let plan_id = if number <= 3 { "early" } else { "late" }.to_owned();
        start_with(ctx, RunRow { visible, plan_id, ..run_row(&run, &acme, ctx.clock.now()) }).await.unwrap();
    }
    let all = RunQuery { limit: 100, ..RunQuery::default() };
    let failed = RunQuery { visible: Some(Visible::Failed), ..all.clone() };
    let late = RunQuery { plan_id: Some("late".to_owned()), ..all.clone() };
    let before_five = Some(run_id("inv_5"));
    for (query, expected) in [
        (all.clone(), &[6, 5, 4, 3, 2, 1][..]),
        (RunQuery { limit: 2, ..all.clone() }, &[6, 5]),
        (RunQuery { before: before_five.clone(), ..all.clone() }, &[4, 3, 2, 1]),
        (RunQuery { before: before_five.clone(), limit: 1, ..all.clone() }, &[4]),
        (failed.clone(), &[6, 4, 2]),
        (RunQuery { before: before_five.clone(), limit: 1, ..failed.clone() }, &[4]),
        (late.clone(), &[6, 5, 4]),
        (RunQuery { visible: Some(Visible::Failed), before: before_five, ..late }, &[4]),
        (RunQuery { visible: Some(Visible::Queued), ..all.clone() }, &[]),
        (RunQuery { plan_id: Some("lat".to_owned()), ..all }, &[]),
    ] {
        let rows = ctx.store.list_runs(&Scope::System, &query).await.unwrap();
        let expected: Vec<_> = expected.iter().map(|number| format!("inv_{number}")).collect();
        let listed: Vec<_> = rows.iter().map(|row| row.run_id.as_str()).collect();
        assert_eq!(listed, expected, "{query:?}");
    }
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
        let query = RunQuery { before: Some(run_id(run)), limit: 100, ..RunQuery::default() };
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
    let system = servo_model::TenantId::system();
    assert_eq!(ctx.store.count_active(&system, 10).await.unwrap(), 0, "the system stream is no run");
}
