//! Idempotency keys: what a key belongs to, and what a repeated one gets. Deduplication and the response cache are one table of
//! earlier runs by key; this says when a row of it counts.

use std::time::Duration;

use servo_canon::Digest;
use servo_model::invocation::InvocationStatus;
use servo_model::{SecurityContext, Timestamp};

use crate::types::{EntrypointTraits, OwnerType};

/// Longest key that is accepted.
pub const KEY_CHARS_MAX: usize = 256;

/// What a key belongs to. Tenants never share, whoever owns the entrypoint; users share only what the tenant or the platform
/// owns. All of it comes from the caller's verified context.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub tenant: String,
    /// Only for entrypoints that a user owns.
    pub subject: Option<String>,
    pub entrypoint_id: String,
    pub entrypoint_version: String,
    pub idempotency_key: String,
}

impl Key {
    pub fn new(ctx: &SecurityContext, owner: OwnerType, entrypoint_id: &str, version: &str, key: &str) -> Self {
        Self {
            tenant: ctx.tenant.as_str().to_owned(),
            subject: (owner == OwnerType::User).then(|| ctx.subject.clone()),
            entrypoint_id: entrypoint_id.to_owned(),
            entrypoint_version: version.to_owned(),
            idempotency_key: key.to_owned(),
        }
    }

    /// One column for all of it. Each part is preceded by its length, so that no two keys have one text.
    pub fn digest(&self) -> Digest {
        let mut text = String::new();
        let subject = self.subject.as_deref();
        for part in [
            self.tenant.as_str(),
            if subject.is_some() { "user" } else { "tenant" },
            subject.unwrap_or_default(),
            &self.entrypoint_id,
            &self.entrypoint_version,
            &self.idempotency_key,
        ] {
            text.push_str(&format!("{}:{part}|", part.len()));
        }
        Digest::of(text.as_bytes())
    }
}

/// Whether results are kept and served again: a key, an idempotent entrypoint, and an age above zero.
pub fn is_active(traits: &EntrypointTraits, has_key: bool) -> bool {
    has_key && traits.is_idempotent && traits.caching.max_age_seconds > 0
}

/// How long keys count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The tenant's deduplication window.
    pub window: Duration,
    /// How long a result is served; `None` while caching is not active.
    pub max_age: Option<Duration>,
}

impl Policy {
    /// Of a start that has a key.
    pub fn of(traits: &EntrypointTraits, window_seconds: u64) -> Self {
        let max_age = is_active(traits, true).then(|| Duration::from_secs(traits.caching.max_age_seconds));
        Self { window: Duration::from_secs(window_seconds), max_age }
    }
}

/// The run that a key started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    pub status: InvocationStatus,
    pub created_at: Timestamp,
    /// Set with the end of the run.
    pub finished_at: Option<Timestamp>,
    pub same_params: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// Serve the earlier run's result as cached.
    Hit,
    /// Answer with the earlier run, which has ended.
    Repeat,
    /// Answer with the earlier run, which goes on.
    InFlight,
    /// The key was used for other params: refuse.
    Mismatch,
    /// Start a run; the key is its from now on.
    Fresh,
}

/// What a start with a key gets. `now` is the store's.
pub fn lookup(earlier: Option<&Earlier>, now: Timestamp, policy: Policy) -> Lookup {
    let Some(earlier) = earlier else { return Lookup::Fresh };
    let succeeded = earlier.status == InvocationStatus::Succeeded;
    let answer = match policy.max_age {
        // A result that is served by age is served by age alone: the window neither cuts nor stretches it.
        Some(max_age) if succeeded => {
            let stored = earlier.finished_at.unwrap_or(earlier.created_at);
            if now.since(stored) < max_age { Lookup::Hit } else { Lookup::Fresh }
        }
        _ if now.since(earlier.created_at) >= policy.window => Lookup::Fresh,
        _ if is_going_on(earlier.status) => Lookup::InFlight,
        _ => Lookup::Repeat,
    };
    if answer != Lookup::Fresh && !earlier.same_params { Lookup::Mismatch } else { answer }
}

fn is_going_on(status: InvocationStatus) -> bool {
    use InvocationStatus as S;
    matches!(status, S::Queued | S::Running | S::Suspended | S::Compensating)
}
