//! One connection as its requests see it: whether it has a place, when its answers have been sent, and whether it heeds
//! `Retry-After`.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use servo_ingress::Place;
use servo_sched::Held;
use tokio::sync::Notify;

use crate::app::App;
use crate::error::Answer;
use crate::rooms::{Whose, place};

/// The first pause of a connection on which somebody asks again before the time; doubled with each refusal.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// Ends a connection.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    told: Notify,
    hurry: Notify,
}

impl Ending {
    /// What it has begun is still answered.
    pub(crate) fn tell(&self) {
        self.told.notify_one();
        self.hurry.notify_one();
    }

    /// Ready when it is to end.
    pub(crate) async fn told(&self) {
        self.told.notified().await;
    }
}

#[derive(Debug)]
pub(crate) struct Link {
    /// The address of this end.
    pub local: Option<IpAddr>,
    place: Place<Arc<Ending>>,
    pub ending: Arc<Ending>,
    refused: Mutex<Option<Refused>>,
}

impl Link {
    pub(crate) fn new(local: Option<IpAddr>, place: Place<Arc<Ending>>, ending: Arc<Ending>) -> Self {
        Self { local, place, ending, refused: Mutex::default() }
    }

    pub(crate) fn was_heard(&self) -> bool {
        self.place.was_heard()
    }

    /// Whether only probes are answered on it.
    pub(crate) fn is_beyond(&self) -> bool {
        self.place.is_beyond()
    }

    fn refused(&self) -> MutexGuard<'_, Option<Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits out what is left of a pause. False if the connection is to end meanwhile.
    pub(crate) async fn pause(&self, asking: Asking) -> bool {
        let pause = self.refused().as_ref().and_then(|refused| refused.pause(asking, Instant::now()));
        match pause {
            // A connection that pauses makes room for others like one that is idle.
            Some(pause) => tokio::time::timeout(pause, self.ending.hurry.notified()).await.is_err(),
            None => true,
        }
    }

    /// What became of a request: with `retry_after` it was refused.
    pub(crate) fn note(&self, asking: Asking, retry_after: Option<Duration>) {
        let mut refused = self.refused();
        *refused = match retry_after {
            None => refused.take().filter(|refused| refused.asking != asking),
            Some(after) => Some(Refused::next(refused.take(), asking, Instant::now() + after)),
        };
    }
}

/// Who asks on a connection, as far as it can be told without looking: proxies have requests of many on one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asking(u64);

impl Asking {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut hasher = DefaultHasher::new();
        headers.get(AUTHORIZATION).map(|value| value.as_bytes()).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The last refusals on a connection.
#[derive(Debug, Clone, Copy)]
struct Refused {
    asking: Asking,
    in_a_row: u32,
    /// When to ask again, as the answer said.
    until: Instant,
}

impl Refused {
    fn next(before: Option<Self>, asking: Asking, until: Instant) -> Self {
        let in_a_row = before.filter(|before| before.asking == asking).map_or(0, |before| before.in_a_row);
        Self { asking, in_a_row: in_a_row.saturating_add(1), until }
    }

    /// How long the next request waits: not at all after the time that it was told, or if somebody else asks.
    fn pause(&self, asking: Asking, now: Instant) -> Option<Duration> {
        let left = self.until.checked_duration_since(now).filter(|left| !left.is_zero())?;
        let grown = PAUSE_FIRST.saturating_mul(1 << (self.in_a_row - 1).min(10));
        (self.asking == asking).then(|| grown.min(left))
    }
}

/// A request on its connection, until its answer has been sent.
#[derive(Debug)]
pub(crate) struct Exchange {
    link: Arc<Link>,
    whose: Mutex<Option<Held<Whose>>>,
}

impl Exchange {
    pub(crate) fn begin(link: Arc<Link>) -> Arc<Self> {
        link.place.begin();
        Arc::new(Self { link, whose: Mutex::default() })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.link.place.end();
    }
}

/// Whose request it is. A tenant has its share of the connections that are busy.
pub(crate) fn belongs_to(app: &App, parts: &Parts, whose: &Whose) -> Answer<()> {
    let Some(exchange) = parts.extensions.get::<Arc<Exchange>>() else { return Ok(()) };
    let mut held = exchange.whose.lock().unwrap_or_else(PoisonError::into_inner);
    // First given back, in case it is known better now.
    *held = None;
    match place(app.rooms.connections_of(whose), whose, "connections are busy") {
        Ok(place) => *held = Some(place),
        Err(busy) => {
            exchange.link.ending.tell();
            return Err(busy);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_before_the_time_waits_longer_each_time() {
        let (now, one, other) = (Instant::now(), Asking(1), Asking(2));
        let second = Duration::from_secs(1);
        let mut refused = Refused::next(None, one, now + second);
        assert_eq!(refused.pause(other, now), None, "somebody else on the same connection");
        assert_eq!(refused.pause(one, now + second), None, "whoever comes when he was told");
        for millis in [100, 200, 400, 800, 1_000, 1_000] {
            assert_eq!(refused.pause(one, now), Some(Duration::from_millis(millis)));
            refused = Refused::next(Some(refused), one, now + second);
        }
        let left = Duration::from_millis(5);
        assert_eq!(refused.pause(one, now + second - left), Some(left), "never longer than it was told");
        for _ in 0..100 {
            refused = Refused::next(Some(refused), one, now + second);
        }
        assert_eq!(refused.pause(one, now), Some(second));
        assert_eq!(Refused::next(Some(refused), other, now).in_a_row, 1);
    }
}
