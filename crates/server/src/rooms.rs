//! What is under way, and whose it is: requests, bodies, streams, channels, connections. Each kind has so much room for all and a
//! share of it for each tenant, so that what one tenant does keeps no other out (ADR 31).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use servo_model::TenantId;
use servo_sched::{Bounds, Counter, Full, Held};

use crate::config::ServerConfig;
use crate::error::{Answer, ApiError};

/// Whose room it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    Tenant(TenantId),
    /// A request whose signature covers a body that was not read yet: it names an access key of the tenant.
    Claimed(TenantId),
}

pub(crate) struct Rooms {
    /// Requests under way.
    pub requests: Counter<TenantId>,
    /// Calls of the Lambda API under way.
    pub calls: Counter<TenantId>,
    /// Bytes of bodies.
    pub bodies: Counter<Whose>,
    /// Run files that are imported: one of each tenant.
    pub imports: Counter<TenantId>,
    /// Open event streams.
    pub streams: Counter<TenantId>,
    /// Open channels.
    pub channels: Counter<TenantId>,
    /// Connections on which a tenant has asked.
    pub connections: Counter<Whose>,
    /// The same two for requests of which only the head says whose they are: whoever knows the ids of access keys takes nothing from
    /// those who have shown a key.
    claimed_bodies: Counter<Whose>,
    claimed_connections: Counter<Whose>,
}

/// A room of one of so many parts is there for claims besides, and for a few of the largest calls at least.
const CLAIMED_PART: usize = 4;
const CLAIMED_BYTES_MIN: usize = 16 * 1024 * 1024;
const CLAIMED_CONNECTIONS_MIN: usize = 4;

impl Rooms {
    /// True by sabotage (`one-room`): a tenant may have all there is.
    pub(crate) fn new(config: &ServerConfig, is_one: bool) -> Self {
        let of = |bounds: Bounds| if is_one { bounds.with_scope(Some(bounds.total)) } else { bounds };
        let [requests, streams, channels, connections, bodies] = config.shares().map(|(_, bounds, _)| of(bounds));
        Self {
            requests: Counter::new(requests),
            calls: Counter::new(requests),
            bodies: Counter::new(bodies),
            imports: Counter::new(Bounds { total: config.imports_max, scope: 1 }),
            streams: Counter::new(streams),
            channels: Counter::new(channels),
            connections: Counter::new(connections),
            claimed_bodies: Counter::new(claimed(bodies, CLAIMED_BYTES_MIN)),
            claimed_connections: Counter::new(claimed(connections, CLAIMED_CONNECTIONS_MIN)),
        }
    }

    pub(crate) fn bodies_of(&self, whose: &Whose) -> &Counter<Whose> {
        match whose {
            Whose::Tenant(_) => &self.bodies,
            Whose::Claimed(_) => &self.claimed_bodies,
        }
    }

    pub(crate) fn connections_of(&self, whose: &Whose) -> &Counter<Whose> {
        match whose {
            Whose::Tenant(_) => &self.connections,
            Whose::Claimed(_) => &self.claimed_connections,
        }
    }
}

fn claimed(of: Bounds, at_least: usize) -> Bounds {
    Bounds::shared((of.total / CLAIMED_PART).max(at_least).min(of.total))
}

/// Takes one place, or says what there are too many of.
pub(crate) fn place<S: Ord + Clone>(room: &Counter<S>, whose: &S, what: &str) -> Answer<Held<S>> {
    room.take(whose, 1).map_err(|full| busy(full, what))
}

/// What whoever finds no room is told.
pub(crate) fn busy(full: Full, what: &str) -> ApiError {
    ApiError::busy(&match full {
        Full::Total => format!("too many {what}"),
        Full::Scope => format!("too many {what} of this tenant"),
    })
}

/// The seat of one request: whose it is, and what it holds until it is answered. It goes with the caller, because a handler may
/// outlive its connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seat(Arc<Mutex<Seated>>);

#[derive(Debug, Default)]
struct Seated {
    /// Where it takes its place, if its route is limited.
    room: Option<Counter<TenantId>>,
    tenant: Option<TenantId>,
    place: Option<Held<TenantId>>,
    body: Option<Held<Whose>>,
}

const REQUESTS: &str = "requests are under way";

impl Seat {
    /// Of a route that is limited.
    pub(crate) fn limited(room: &Counter<TenantId>) -> Self {
        Self(Arc::new(Mutex::new(Seated { room: Some(room.clone()), ..Seated::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Seated> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tenant(&self) -> Option<TenantId> {
        self.lock().tenant.clone()
    }

    /// The caller is known. Takes a place where one is needed.
    pub(crate) fn sit(&self, tenant: &TenantId) -> Answer<()> {
        self.lock().tenant = Some(tenant.clone());
        self.take_place()
    }

    /// While its body comes the request is not under way: whoever sends slowly has only the room of his bytes.
    pub(crate) fn give_place(&self) {
        self.lock().place = None;
    }

    pub(crate) fn take_place(&self) -> Answer<()> {
        let mut seated = self.lock();
        if seated.place.is_none()
            && let (Some(room), Some(tenant)) = (&seated.room, &seated.tenant)
        {
            let place = place(room, tenant, REQUESTS)?;
            seated.place = Some(place);
        }
        Ok(())
    }

    /// What was read stays in memory for as long as the request is under way. Routes that wait for long, which are not limited,
    /// give the room back.
    pub(crate) fn keep(&self, body: Held<Whose>) {
        let mut seated = self.lock();
        seated.body = seated.room.is_some().then_some(body);
    }

    /// The request waits from now on, holding nothing.
    pub(crate) fn leave(&self) {
        let mut seated = self.lock();
        (seated.place, seated.body) = (None, None);
    }
}
