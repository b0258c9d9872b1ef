//! Tenants: a foreign run does not exist, and equal names of two tenants never meet.

use servo_canon::Digest;
use servo_model::alert::AlertCode;

use super::Context;
use super::alerts::alert;
use crate::dispatch::{DispatchChange, QueueClaim};
use crate::error::Error;
use crate::log::{Append, Expected, QueueChange, StoredSnapshot, TimerChange};
use crate::runs::{RunQuery, RunRow, Scope};
use crate::testkit::fixtures::{add, fresh_event, run_id, run_row, start_stream, tenant};

pub(super) async fn a_foreign_run_does_not_exist(ctx: &Context) {
    let (acme, globex) = (tenant("acme"), tenant("globex"));
    let run = run_id("inv_1");
    let key = Digest::of(b"request");
    let mut stream = start_stream(&run, &acme);
    stream.row = Some(RunRow { request_key: Some(key), ..run_row(&run, &acme, ctx.clock.now()) });
    stream.snapshot = Some(StoredSnapshot { run_seq: 1, state: "{}".to_owned() });
    ctx.put(stream).await.unwrap();
    ctx.store.raise_alert(alert(AlertCode::RunQuarantined, "acme", "inv_1", "m")).await.unwrap();
    let all = RunQuery { limit: 10, ..RunQuery::default() };

    for own in [Scope::Tenant(acme.clone()), Scope::System] {
        assert!(ctx.store.get_run(&own, &run).await.unwrap().is_some());
        assert_eq!(ctx.store.read_run(&own, &run, 0, 10).await.unwrap().events.len(), 1);
        assert!(ctx.store.snapshot_at(&own, &run, 1).await.unwrap().is_some());
        assert_eq!(ctx.store.list_runs(&own, &all).await.unwrap().len(), 1);
        assert_eq!(ctx.store.alerts(&own, 10).await.unwrap().len(), 1);
    }
    let foreign = Scope::Tenant(globex.clone());
    assert_eq!(ctx.store.get_run(&foreign, &run).await.unwrap(), None);
    refused!(ctx.store.read_run(&foreign, &run, 0, 10).await, Error::NotFound);
    refused!(ctx.store.snapshot_at(&foreign, &run, 1).await, Error::NotFound);
    assert_eq!(ctx.store.list_runs(&foreign, &all).await.unwrap(), []);
    assert_eq!(ctx.store.alerts(&foreign, 10).await.unwrap(), []);
    assert_eq!(ctx.store.find_request(&globex, key).await.unwrap(), None);
    assert_eq!(ctx.store.count_active(&globex, 10).await.unwrap(), 0);
    assert_eq!(ctx.store.count_active(&acme, 10).await.unwrap(), 1);
    refused!(ctx.store.delete_run(&foreign, &run).await, Error::NotFound);
    assert_eq!(ctx.sequences(&run).await, [1], "it is still there");
}

pub(super) async fn a_foreign_run_cannot_be_written(ctx: &Context) {
    let (run, acme) = ctx.start("inv_1", "acme").await;
    let globex = tenant("globex");
    for expected in [Expected::Seq(1), Expected::Seq(9), Expected::Any] {
        let mut stream = add(&run, &globex, expected, vec![fresh_event(&run)]);
        stream.timer = TimerChange::Set(ctx.clock.now());
        stream.queue = QueueChange::Put { not_before: ctx.clock.now() };
        let (request_id, target) = ("r".to_owned(), "mock".to_owned());
        stream.dispatches.push(DispatchChange::Queue { request_id, target, step: None });
        refused!(ctx.put(stream).await, Error::NotFound);
    }
    // Also where every key of the append is in the foreign run's log already: its contents are nobody's business.
    let known = ctx.events(&run).await.remove(0);
    let mut repeated = add(&run, &globex, Expected::Any, vec![fresh_event(&run)]);
    repeated.events[0].idempotency_key = known.idempotency_key;
    refused!(ctx.put(repeated.clone()).await, Error::NotFound);
    let both = Append {
        streams: vec![add(&run, &acme, Expected::Seq(1), vec![fresh_event(&run)]), repeated],
        ..Append::default()
    };
    refused!(ctx.store.append(both).await, Error::NotFound);
    // Nor can it be created again under another tenant.
    let mut stolen = start_stream(&run, &globex);
    refused!(ctx.put(stolen.clone()).await, Error::RunExists { .. } | Error::NotFound);
    stolen.events = vec![fresh_event(&run)];
    refused!(ctx.put(stolen).await, Error::RunExists { .. } | Error::NotFound);

    let snapshot = StoredSnapshot { run_seq: 1, state: "{}".to_owned() };
    ctx.store.put_snapshot(&run, &globex, snapshot).await.unwrap();
    assert_eq!(ctx.store.snapshot_at(&Scope::System, &run, 9).await.unwrap(), None, "kept nowhere");
    assert_eq!(ctx.store.get_timer(&run).await.unwrap(), None);
    assert_eq!(ctx.store.get_dispatch("r").await.unwrap(), None);
    assert_eq!(ctx.store.claim_queue(&QueueClaim::new("node", 1, 10)).await.unwrap(), []);
    assert_eq!(ctx.events(&run).await, [known]);
    let row = ctx.store.get_run(&Scope::System, &run).await.unwrap().unwrap();
    assert_eq!(row.tenant, acme);
}

pub(super) async fn equal_names_of_two_tenants_do_not_meet(ctx: &Context) {
    let owners = [tenant("acme"), tenant("globex")];
    let key = Digest::of(b"request-1");
    for (owner, run) in owners.iter().zip(["inv_1", "inv_2"]) {
        let run = run_id(run);
        let mut stream = start_stream(&run, owner);
        stream.row = Some(RunRow { request_key: Some(key), ..run_row(&run, owner, ctx.clock.now()) });
        ctx.put(stream).await.unwrap();
        ctx.store
            .raise_alert(alert(AlertCode::ProjectorLagHigh, owner.as_str(), "projector", owner.as_str()))
            .await
            .unwrap();
    }
    for (owner, run) in owners.iter().zip(["inv_1", "inv_2"]) {
        let scope = Scope::Tenant(owner.clone());
        let query = RunQuery { plan_id: Some("plan".to_owned()), limit: 10, ..RunQuery::default() };
        let rows = ctx.store.list_runs(&scope, &query).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.run_id.as_str()).collect::<Vec<_>>(), [run]);
        assert_eq!(ctx.store.find_request(owner, key).await.unwrap(), Some(run_id(run)));
        assert_eq!(ctx.store.count_active(owner, 10).await.unwrap(), 1);
        let alerts = ctx.store.alerts(&scope, 10).await.unwrap();
        assert_eq!((alerts.len(), alerts[0].count, alerts[0].message.as_str()), (1, 1, owner.as_str()));
    }
    ctx.store.clear_alert(AlertCode::ProjectorLagHigh, &owners[0], "projector").await.unwrap();
    ctx.store.delete_run(&Scope::Tenant(owners[0].clone()), &run_id("inv_1")).await.unwrap();
    assert_eq!(ctx.store.find_request(&owners[1], key).await.unwrap(), Some(run_id("inv_2")));
    assert_eq!(ctx.store.alerts(&Scope::System, 10).await.unwrap().len(), 1);
}

pub(super) async fn one_append_may_span_tenants(ctx: &Context) {
    let (one, acme) = ctx.start("inv_1", "acme").await;
    let (two, globex) = ctx.start("inv_2", "globex").await;
    let streams = vec![
        add(&one, &acme, Expected::Seq(1), vec![fresh_event(&one)]),
        add(&two, &globex, Expected::Seq(1), vec![fresh_event(&two)]),
    ];
    ctx.store.append(Append { streams, ..Append::default() }).await.unwrap();
    for (run, owner) in [(&one, &acme), (&two, &globex)] {
        let events = ctx.events(run).await;
        assert_eq!(events.len(), 2);
        assert!(events.iter().all(|event| event.tenant == *owner));
    }
    let log = ctx.settled_log(crate::Position::START).await;
    assert_eq!(log.len(), 4, "the engine's reader sees every tenant");
}
