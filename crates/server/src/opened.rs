//! What a stream or a channel was opened with. It stays open for long, so its credentials are looked at again: a key that is
//! revoked, or has ended, ends what it opened.

use std::time::{Duration, Instant};

use axum::http::request::Parts;
use servo_model::{Role, SecurityContext, TenantId};

use crate::app::App;
use crate::auth::identify;

/// So long after a key is revoked, what it opened ends with the next thing that happens there.
const IDENTIFY_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Opened {
    /// The request that opened it.
    parts: Parts,
    tenant: TenantId,
    subject: String,
    roles: Vec<Role>,
    identified: Instant,
}

impl Opened {
    pub(crate) fn new(parts: Parts, by: &SecurityContext) -> Self {
        let (tenant, subject, roles) = (by.tenant.clone(), by.subject.clone(), by.roles.clone());
        Self { parts, tenant, subject, roles, identified: Instant::now() }
    }

    pub(crate) fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Whether it may stay open: its credentials still are the same principal's. Opening it again says what is wrong.
    pub(crate) async fn may_stay(&mut self, app: &App) -> bool {
        if self.identified.elapsed() <= IDENTIFY_EVERY {
            return true;
        }
        match identify(app, &self.parts).await {
            Ok(caller) => {
                self.identified = Instant::now();
                caller.tenant == self.tenant && caller.subject == self.subject && caller.roles == self.roles
            }
            // A store that cannot be read now says nothing about the key.
            Err(error) => error.problem.status >= 500,
        }
    }
}
