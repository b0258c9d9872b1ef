//! How things were in the last hour, for charts: a look every few seconds at the tenants that have lately started something, kept in
//! memory by this node. A restart begins anew; whoever needs more scrapes `/metrics`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_model::invocation::InvocationStatus;
use servo_model::{TenantId, Timestamp};
use servo_runtime::serverless::{Hidden, Sight};
use servo_store::runs::RunQuery;
use servo_store::{Scope, Store};
use servo_wire::v1::{Series, SeriesPoint};

use crate::app::App;

/// An hour, at the usual distance.
const POINTS_MAX: usize = 360;
/// Tenants that are followed; the one that has been quiet for longest makes room.
const TENANTS_MAX: usize = 50;
/// Entrypoints of one user each that are counted apart, so that others' charts can do without them.
const PRIVATE_MAX: usize = 100;
/// Among so many of the newest runs it is looked for tenants that began something.
const RUNS_LOOKED_AT: u32 = 200;

/// A handle: cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Arc<Mutex<BTreeMap<TenantId, Ring>>>);

#[derive(Debug)]
struct Ring {
    points: VecDeque<Point>,
    /// When the tenant last started or asked something.
    used: Timestamp,
}

pub(crate) type Counts = Vec<(InvocationStatus, u64)>;

#[derive(Debug, Clone)]
struct Point {
    at: Timestamp,
    /// Of all the tenant's runs.
    counts: Counts,
    /// Of those that not everybody sees, by entrypoint.
    private: Vec<(String, Counts)>,
    queue_age: Duration,
}

impl Samples {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TenantId, Ring>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows a tenant from now on, if it is not followed already.
    fn follow(&self, tenant: &TenantId, now: Timestamp) {
        let mut rings = self.lock();
        if let Some(ring) = rings.get_mut(tenant) {
            ring.used = ring.used.max(now);
            return;
        }
        if rings.len() >= TENANTS_MAX {
            let quietest = rings.iter().min_by_key(|(_, ring)| ring.used).map(|(tenant, _)| tenant.clone());
            quietest.map(|tenant| rings.remove(&tenant));
        }
        rings.insert(tenant.clone(), Ring { points: VecDeque::new(), used: now });
    }

    /// Those that are followed.
    pub(crate) fn tenants(&self) -> Vec<TenantId> {
        self.lock().keys().cloned().collect()
    }

    fn push(&self, tenant: &TenantId, point: Point) {
        if let Some(ring) = self.lock().get_mut(tenant) {
            if ring.points.len() >= POINTS_MAX {
                ring.points.pop_front();
            }
            ring.points.push_back(point);
        }
    }

    /// What was seen of a tenant, without what is hidden from who asks. Who asks is followed.
    pub(crate) fn of(&self, tenant: &TenantId, hidden: &Hidden, now: Timestamp, every: Duration) -> Series {
        self.follow(tenant, now);
        let rings = self.lock();
        let points = rings.get(tenant).map(|ring| ring.points.iter().map(|point| point.shown(hidden)).collect());
        Series { every_ms: millis(every), now, points: points.unwrap_or_default() }
    }
}

impl Point {
    fn shown(&self, hidden: &Hidden) -> SeriesPoint {
        let kept_back = |asked: InvocationStatus| -> u64 {
            let counts = self.private.iter().filter(|(id, _)| hidden.holds(id)).flat_map(|(_, counts)| counts);
            counts.filter(|(status, _)| *status == asked).map(|(_, count)| count).sum()
        };
        let counts = self.counts.iter().map(|(status, count)| (*status, count.saturating_sub(kept_back(*status))));
        let counts = counts.filter(|(_, count)| *count > 0).map(|(status, count)| (status.as_str().to_owned(), count));
        SeriesPoint { at: self.at, counts: counts.collect(), queue_age_ms: millis(self.queue_age) }
    }
}

/// Looks, until the server stops.
pub(crate) async fn run(app: App) {
    let engine = app.runtime.engine().clone();
    let every = app.config.series_every();
    // The first runs of a new server are worth a chart, too.
    app.samples.follow(&TenantId::default_tenant(), engine.now());
    loop {
        if let Err(error) = look(engine.store().as_ref(), &app.sight, &app.samples, engine.now()).await {
            tracing::debug!(%error, "a point of the series is missing");
        }
        tokio::select! {
            biased;
            () = app.shutdown.triggered() => return,
            () = engine.clock().sleep(every) => {}
        }
    }
}

async fn look(store: &dyn Store, sight: &Sight, samples: &Samples, now: Timestamp) -> Result<(), servo_store::Error> {
    let newest = RunQuery { limit: RUNS_LOOKED_AT, invocations: Some(true), ..RunQuery::default() };
    for row in store.list_runs(&Scope::System, &newest).await?.iter().rev() {
        samples.follow(&row.tenant, row.created_at);
    }
    for tenant in samples.tenants() {
        let mut counts = store.count_by_visible(&tenant, None).await?;
        let (mut private, mut rest) = (Vec::new(), Vec::new());
        for id in sight.private_ids(&tenant).await? {
            let own = store.count_by_visible(&tenant, Some(&id)).await?;
            if own.is_empty() {
                continue;
            }
            if private.len() < PRIVATE_MAX {
                private.push((id, own));
                continue;
            }
            rest.push(own);
        }
        if !(private.is_empty() && rest.is_empty()) {
            counts = smaller(&counts, &store.count_by_visible(&tenant, None).await?);
        }
        // Of any more it is not remembered whose they are, so they are in nobody's charts.
        for (status, count) in rest.into_iter().flatten() {
            counts.iter_mut().filter(|total| total.0 == status).for_each(|total| total.1 -= count.min(total.1));
        }
        let oldest = RunQuery {
            visible: vec![InvocationStatus::Queued],
            invocations: Some(true),
            oldest_first: true,
            limit: 1,
            ..RunQuery::default()
        };
        let oldest = store.list_runs(&Scope::Tenant(tenant.clone()), &oldest).await?;
        let queue_age = oldest.first().map_or(Duration::ZERO, |row| now.since(row.created_at));
        samples.push(&tenant, Point { at: now, counts, private, queue_age });
    }
    Ok(())
}

/// Of totals that were read before and after what is to be taken out of them, in each status the smaller one. A private run that moved
/// on in between would else be taken out where it is now, and show where it was.
pub(crate) fn smaller(before: &Counts, after: &Counts) -> Counts {
    let both = |(status, count): &(InvocationStatus, u64)| {
        let (_, then) = after.iter().find(|(other, _)| other == status)?;
        Some((*status, *count.min(then)))
    };
    before.iter().filter_map(both).collect()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(number: usize) -> TenantId {
        TenantId::parse(&format!("t-{number}")).unwrap()
    }

    fn point(at: i64) -> Point {
        let counts = vec![(InvocationStatus::Queued, 3)];
        Point { at: Timestamp::from_millis(at), counts, private: Vec::new(), queue_age: Duration::from_secs(2) }
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let samples = Samples::default();
        let now = Timestamp::from_millis(0);
        let every = Duration::from_secs(10);
        assert!(samples.of(&tenant(1), &Hidden::default(), now, every).points.is_empty());
        for at in 0..400 {
            samples.push(&tenant(1), point(at));
        }
        let series = samples.of(&tenant(1), &Hidden::default(), now, every);
        assert_eq!((series.points.len(), series.every_ms), (POINTS_MAX, 10_000));
        assert_eq!(series.points[0].at.as_millis(), 40);
        assert_eq!((series.points[0].counts["queued"], series.points[0].queue_age_ms), (3, 2_000));
        assert!(
            samples.of(&tenant(2), &Hidden::default(), now, every).points.is_empty(),
            "another tenant's is another's"
        );
    }

    #[test]
    fn a_run_that_moves_on_while_it_is_counted_is_in_no_status() {
        use InvocationStatus::{Queued, Running, Succeeded};
        let (before, after) = (vec![(Queued, 2), (Running, 3)], vec![(Running, 2), (Succeeded, 9)]);
        assert_eq!(smaller(&before, &after), [(Running, 2)]);
    }

    #[test]
    fn the_quietest_tenant_makes_room() {
        let samples = Samples::default();
        for number in 0..TENANTS_MAX + 1 {
            samples.follow(&tenant(number), Timestamp::from_millis(i64::try_from(number).unwrap()));
        }
        let rings = samples.lock();
        assert_eq!(rings.len(), TENANTS_MAX);
        assert!(!rings.contains_key(&tenant(0)) && rings.contains_key(&tenant(TENANTS_MAX)));
    }
}
