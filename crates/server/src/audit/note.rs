//! What is learnt about a request on its way in: who makes it, and what it is about.

use std::sync::{Arc, Mutex, PoisonError};

use servo_entrypoint::Created;
use servo_model::{SecurityContext, TenantId};

/// Travels with a request. Clones are the same note.
#[derive(Debug, Clone, Default)]
pub(crate) struct Note(Arc<Page>);

/// What all clones of a note write on.
#[derive(Debug, Default)]
struct Page(Mutex<Noted>);

#[derive(Debug, Default)]
pub(super) struct Noted {
    pub caller: Option<Arc<SecurityContext>>,
    pub object: Option<String>,
    pub tenant: Option<TenantId>,
    pub action: Option<&'static str>,
    pub unchanged: bool,
    /// What was asked for is there, whatever becomes of the answer.
    pub created: bool,
}

impl Created for Page {
    fn created(&self, invocation_id: &str) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.object = Some(invocation_id.to_owned());
        noted.created = true;
    }
}

impl Note {
    fn change(&self, change: impl FnOnce(&mut Noted)) {
        change(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&Noted) -> T) -> T {
        look(&self.0.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn caller(&self, caller: Arc<SecurityContext>) {
        self.change(|noted| noted.caller = Some(caller));
    }

    /// What it is about, where the path does not say or says it otherwise.
    pub(crate) fn object(&self, id: &str) {
        self.change(|noted| noted.object = Some(id.to_owned()));
    }

    /// What was made for a caller who goes on waiting: from here on it is done, even if the caller hangs up or is told of a fault.
    pub(crate) fn created(&self, id: &str) {
        self.0.created(id);
    }

    /// The same, to be heard from elsewhere.
    pub(crate) fn hears(&self) -> Arc<dyn Created> {
        self.0.clone()
    }

    /// The tenant that has the object, where it need not be the caller's: its admins see what was done there. Only said of
    /// callers who reach that tenant, so that nobody writes into the log of others.
    pub(crate) fn tenant(&self, tenant: &TenantId) {
        self.change(|noted| noted.tenant = Some(tenant.clone()));
    }

    /// A finer name than the route's: one address may take several kinds of action.
    pub(crate) fn action(&self, name: &'static str) {
        self.change(|noted| noted.action = Some(name));
    }

    /// The request was answered as an earlier one, and changed nothing.
    pub(crate) fn unchanged(&self) {
        self.change(|noted| noted.unchanged = true);
    }
}
