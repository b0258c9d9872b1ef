//! Alerts: one per code, tenant and subject, counted up while it stands.

use servo_model::alert::AlertCode;

use super::Context;
use crate::relay::NewAlert;
use crate::runs::Scope;
use crate::testkit::fixtures::tenant;

pub(super) fn alert(code: AlertCode, owner: &str, subject: &str, message: &str) -> NewAlert {
    let (subject, message) = (subject.to_owned(), message.to_owned());
    NewAlert { code, subject, run_id: None, tenant: tenant(owner), message }
}

pub(super) async fn the_same_alert_counts_up(ctx: &Context) {
    let (run, _) = ctx.start("inv_1", "acme").await;
    let lag = AlertCode::ProjectorLagHigh;
    ctx.store.raise_alert(alert(lag, "acme", "projector", "6 s behind")).await.unwrap();
    let first_at = ctx.clock.now();
    ctx.clock.advance(1_000);
    let again = NewAlert { run_id: Some(run.clone()), ..alert(lag, "acme", "projector", "7 s behind") };
    ctx.store.raise_alert(again).await.unwrap();
    let alerts = ctx.store.alerts(&Scope::System, 10).await.unwrap();
    assert_eq!(alerts.len(), 1);
    let raised = &alerts[0];
    assert_eq!((raised.code, raised.severity), (lag, lag.severity()));
    assert_eq!((raised.subject.as_str(), raised.tenant_id.as_str()), ("projector", "acme"));
    assert_eq!((raised.message.as_str(), raised.run_id.as_ref()), ("7 s behind", Some(&run)), "the latest");
    assert_eq!((raised.first_at, raised.last_at, raised.count), (first_at, ctx.clock.now(), 2));
}

pub(super) async fn alerts_differ_by_code_tenant_and_subject(ctx: &Context) {
    let (lag, gap) = (AlertCode::ProjectorLagHigh, AlertCode::ProjectorNonContiguous);
    for (code, owner, subject) in
        [(lag, "acme", "x"), (lag, "acme", "y"), (lag, "globex", "x"), (gap, "acme", "x"), (lag, "acme", "x")]
    {
        ctx.clock.advance(1);
        ctx.store.raise_alert(alert(code, owner, subject, "m")).await.unwrap();
    }
    let told = |alerts: Vec<servo_model::alert::Alert>| {
        let rows = alerts.into_iter().map(|row| (row.code, row.tenant_id.as_str().to_owned(), row.subject, row.count));
        rows.collect::<Vec<_>>()
    };
    let row = |code, owner: &str, subject: &str, count| (code, owner.to_owned(), subject.to_owned(), count);
    let all =
        [row(lag, "acme", "x", 2), row(gap, "acme", "x", 1), row(lag, "globex", "x", 1), row(lag, "acme", "y", 1)];
    assert_eq!(told(ctx.store.alerts(&Scope::System, 10).await.unwrap()), all, "latest first");
    assert_eq!(told(ctx.store.alerts(&Scope::System, 2).await.unwrap()), all[..2]);
    let globex = Scope::Tenant(tenant("globex"));
    assert_eq!(told(ctx.store.alerts(&globex, 10).await.unwrap()), all[2..3]);
    assert_eq!(told(ctx.store.alerts(&Scope::Tenant(tenant("initech")), 10).await.unwrap()), []);

    ctx.store.clear_alert(lag, &tenant("acme"), "x").await.unwrap();
    assert_eq!(told(ctx.store.alerts(&Scope::System, 10).await.unwrap()), all[1..]);
    ctx.store.clear_alert(lag, &tenant("acme"), "x").await.unwrap();
    // Raised again after it was cleared, it counts from one.
    ctx.clock.advance(1);
    ctx.store.raise_alert(alert(lag, "acme", "x", "m")).await.unwrap();
    let alerts = ctx.store.alerts(&Scope::System, 1).await.unwrap();
    assert_eq!((alerts[0].count, alerts[0].first_at), (1, ctx.clock.now()));
}

pub(super) async fn every_code_can_be_raised(ctx: &Context) {
    for code in AlertCode::ALL {
        ctx.clock.advance(1);
        ctx.store.raise_alert(alert(*code, "acme", "it's \u{fc}ber", "m \u{1f6a8}")).await.unwrap();
    }
    let alerts = ctx.store.alerts(&Scope::System, 100).await.unwrap();
    let codes: Vec<_> = alerts.iter().map(|alert| alert.code).collect();
    assert_eq!(codes, AlertCode::ALL.iter().rev().copied().collect::<Vec<_>>());
    assert!(alerts.iter().all(|alert| alert.subject == "it's \u{fc}ber" && alert.message == "m \u{1f6a8}"));
}

pub(super) async fn raising_at_once_loses_no_count(ctx: &Context) {
    ctx.threads(6, |ctx, _| {
        Box::pin(async move {
            for _ in 0..5 {
                let raised = alert(AlertCode::EventBusUnavailable, "acme", "bus", "down");
                ctx.store.raise_alert(raised).await.unwrap();
            }
        })
    })
    .await;
    let alerts = ctx.store.alerts(&Scope::System, 10).await.unwrap();
    assert_eq!((alerts.len(), alerts[0].count), (1, 30));
}
