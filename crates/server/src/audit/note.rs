//! What is learnt about a request on its way in: who makes it, and what it is about.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use servo_entrypoint::Created;
use servo_model::{AuditEntry, AuditOutcome, SecurityContext, TenantId};
use tokio::sync::Notify;

use super::recorder::Recorder;

/// Travels with a request. Clones are the same note.
#[derive(Debug, Clone, Default)]
pub(crate) struct Note(Arc<Page>);

/// What all clones of a note write on.
#[derive(Debug, Default)]
struct Page {
    noted: Mutex<Noted>,
    /// Whether the request is one that changes something.
    acts: bool,
    /// The caller has hung up.
    left: AtomicBool,
    /// The body has not come to its end.
    cut_short: AtomicBool,
    /// Woken when it is done, which may be elsewhere than in its handler.
    done: Notify,
}

/// The entry of what was still under way when its handler was dropped: only its end tells what became of it.
struct Left {
    recorder: Recorder,
    entry: AuditEntry,
}

impl Left {
    /// What was asked for is there after all.
    fn done(self, object: &str) {
        let entry = AuditEntry { outcome: AuditOutcome::Allowed, object_id: object.to_owned(), ..self.entry };
        self.recorder.later(Arc::new(entry.clipped()));
    }
}

impl std::fmt::Debug for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Left").field("entry", &self.entry).finish_non_exhaustive()
    }
}

/// Whoever held it last is done, and nothing was made.
impl Drop for Page {
    fn drop(&mut self) {
        let noted = self.noted.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = noted.left.take() {
            left.recorder.later(Arc::new(left.entry));
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Noted {
    pub caller: Option<Arc<SecurityContext>>,
    pub object: Option<String>,
    pub tenant: Option<TenantId>,
    pub action: Option<&'static str>,
    pub unchanged: bool,
    /// What was asked for is done, whatever becomes of the answer.
    pub done: bool,
    left: Option<Box<Left>>,
}

impl Created for Page {
    fn created(&self, invocation_id: &str) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.object = Some(invocation_id.to_owned());
        noted.done = true;
        if let Some(left) = noted.left.take() {
            left.done(invocation_id);
        }
        drop(noted);
        self.done.notify_waiters();
    }
}

impl Note {
    /// Of a request that changes something.
    pub(super) fn of_action() -> Self {
        let mut page = Page::default();
        page.acts = true;
        Self(Arc::new(page))
    }

    /// Whether the request is one that changes something.
    pub(crate) fn acts(&self) -> bool {
        self.0.acts
    }

    fn change(&self, change: impl FnOnce(&mut Noted)) {
        change(&mut self.0.noted.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&Noted) -> T) -> T {
        look(&self.0.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The caller has hung up, and its handler goes on.
    pub(super) fn leave_caller(&self) {
        self.0.left.store(true, Ordering::Release);
    }

    pub(super) fn is_left(&self) -> bool {
        self.0.left.load(Ordering::Acquire)
    }

    /// The body ended before its end.
    pub(super) fn cut_short(&self) {
        self.0.cut_short.store(true, Ordering::Release);
    }

    pub(super) fn is_cut_short(&self) -> bool {
        self.0.cut_short.load(Ordering::Acquire)
    }

    pub(super) fn is_done(&self) -> bool {
        self.read(|noted| noted.done)
    }

    /// Ready when it is done.
    pub(super) async fn until_done(&self) {
        let mut done = std::pin::pin!(self.0.done.notified());
        done.as_mut().enable();
        if !self.is_done() {
            done.await;
        }
    }

    pub(super) fn tenant_of_caller(&self) -> Option<TenantId> {
        self.read(|noted| noted.caller.as_ref().map(|caller| caller.tenant.clone()))
    }

    pub(crate) fn caller(&self, caller: Arc<SecurityContext>) {
        self.change(|noted| noted.caller = Some(caller));
    }

    /// What it is about, where the path does not say or says it otherwise.
    pub(crate) fn object(&self, id: &str) {
        self.change(|noted| noted.object = Some(id.to_owned()));
    }

    /// What was asked for is done, and this is what it is about: so from here on, even if the caller hangs up or is told of a fault.
    pub(crate) fn done(&self, id: &str) {
        self.0.created(id);
    }

    /// The handler was dropped. The entry says that it failed, and is written so if nothing comes of it.
    pub(super) fn leave(&self, recorder: &Recorder, entry: AuditEntry) {
        let left = Left { recorder: recorder.clone(), entry };
        self.change(|noted| match noted.object.as_deref().filter(|_| noted.done) {
            Some(object) => left.done(object),
            None => noted.left = Some(Box::new(left)),
        });
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

#[cfg(test)]
mod tests {
    use servo_model::limits::Limits;
    use servo_model::{EventId, Timestamp};
    use servo_store::audit::AuditQuery;
    use servo_store::mem::MemStore;
    use servo_store::{AuditStore as _, Scope};

    use super::*;

    fn gone() -> AuditEntry {
        AuditEntry {
            id: EventId::from_u128(1),
            at: Timestamp::from_millis(0),
            tenant_id: TenantId::default_tenant(),
            actor: "key_1".to_owned(),
            roles: Vec::new(),
            action: "invocation.start".to_owned(),
            object_kind: "invocation".to_owned(),
            object_id: String::new(),
            outcome: AuditOutcome::Failed,
            correlation_id: "c".to_owned(),
            reason: Some("CALLER_GONE".to_owned()),
            source: None,
            count: 1,
        }
    }

    /// What the log says of a caller who left, after something else has happened.
    async fn told(then: impl FnOnce(Arc<dyn Created>)) -> Vec<(AuditOutcome, String)> {
        let store = Arc::new(MemStore::new(Arc::new(|| Timestamp::from_millis(1)), Limits::default(), [7; 32]));
        let recorder = Recorder::new(store.clone());
        let work = recorder.work(Arc::new(servo_runtime::SystemClock)).unwrap();
        let leaves = async {
            let note = Note::default();
            let heard = note.hears();
            note.leave(&recorder, gone());
            drop(note);
            then(heard);
            drop(recorder);
        };
        tokio::join!(leaves, work.run());
        let query = AuditQuery { limit: 10, ..AuditQuery::default() };
        let entries = store.read_audit(&Scope::System, &query).await.unwrap();
        entries.into_iter().map(|entry| (entry.outcome, entry.object_id)).collect()
    }

    /// Who hangs up before the run is there has started it all the same, or has not.
    #[tokio::test]
    async fn what_becomes_of_a_start_is_told_after_its_caller_has_gone() {
        assert_eq!(told(|heard| heard.created("inv_1")).await, [(AuditOutcome::Allowed, "inv_1".to_owned())]);
        assert_eq!(told(drop).await, [(AuditOutcome::Failed, String::new())]);
    }
}
