//! Actions under way. One that has begun is finished, whatever becomes of its connection: dropping its handler would leave it done or
//! half done, with nobody to say which. Only how many go on without a caller is bounded here; the places of requests are the
//! handlers' own, and held to their end.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};

use axum::response::Response;
use servo_model::TenantId;
use servo_runtime::{Shutdown, Tasks};
use tokio::sync::Notify;

use super::Note;

/// A tenant has one of so many shares of the actions that go on without their callers: it fills its own.
const SHARES: usize = 4;

/// All actions of a server. Clones are the same.
#[derive(Clone)]
pub(crate) struct Acts(Arc<Shared>);

struct Shared {
    /// How many may go on without their callers before no other begins.
    left_max: usize,
    /// By the tenant of their callers, as far as these are known.
    left: Mutex<HashMap<Option<TenantId>, usize>>,
    left_count: AtomicUsize,
    under_way: AtomicUsize,
    ended: Notify,
    /// Time is up: nothing goes on from here.
    cut: Shutdown,
    tasks: OnceLock<Tasks>,
    /// By sabotage (`hang-up-drops`): a handler ends with its connection.
    hang_up_drops: bool,
}

impl Acts {
    pub(crate) fn new(left_max: usize, hang_up_drops: bool) -> Self {
        Self(Arc::new(Shared {
            left_max,
            left: Mutex::default(),
            left_count: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            ended: Notify::new(),
            cut: Shutdown::default(),
            tasks: OnceLock::new(),
            hang_up_drops,
        }))
    }

    /// Where actions go on without their callers.
    pub(crate) fn run_on(&self, tasks: &Tasks) {
        let _ = self.0.tasks.set(tasks.clone());
    }

    /// Whether another action may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.0.left_count.load(Ordering::Acquire) < self.0.left_max
    }

    /// The same for a caller of this tenant.
    pub(crate) fn has_room_for(&self, tenant: &TenantId) -> bool {
        if self.0.left_count.load(Ordering::Acquire) == 0 {
            return true;
        }
        let left = self.0.lock().get(&Some(tenant.clone())).copied().unwrap_or_default();
        left < self.0.left_max.div_ceil(SHARES)
    }

    /// Ready when no action is under way, with or without its caller.
    pub(crate) async fn idle(&self) {
        loop {
            let mut ended = std::pin::pin!(self.0.ended.notified());
            ended.as_mut().enable();
            if self.0.under_way.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Ends what is still under way: what becomes of it will not be known here.
    pub(crate) fn cut(&self) {
        self.0.cut.trigger();
    }

    /// Triggered by [`Self::cut`].
    pub(crate) fn end(&self) -> &Shutdown {
        &self.0.cut
    }

    /// An action by its whole handler, which writes the entry, too.
    pub(super) fn begin(&self, note: Note, handler: impl Future<Output = Response> + Send + 'static) -> Act {
        self.0.under_way.fetch_add(1, Ordering::AcqRel);
        Act { handler: Some(Handler { handling: Box::pin(handler), _counted: Counted(self.0.clone()) }), note }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Option<TenantId>, usize>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.ended.notify_waiters();
        }
    }
}

/// The handler of an action. Fields are dropped in order: the last word of the handler is said before it counts as ended.
struct Handler {
    handling: Pin<Box<dyn Future<Output = Response> + Send>>,
    _counted: Counted,
}

/// An action as its connection waits for it. Dropped in the middle, it goes on.
pub(super) struct Act {
    handler: Option<Handler>,
    note: Note,
}

impl Future for Act {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        let Some(handler) = &mut self.handler else { return Poll::Pending };
        let response = ready!(handler.handling.as_mut().poll(context));
        self.handler = None;
        Poll::Ready(response)
    }
}

impl Drop for Act {
    fn drop(&mut self) {
        let Some(handler) = self.handler.take() else { return };
        let acts = handler._counted.0.clone();
        self.note.leave_caller();
        // What is done needs no more doing: its entry is written as its handler is dropped, here.
        if acts.hang_up_drops || acts.cut.is_triggered() || self.note.is_done() {
            return;
        }
        // Outside of the runtime nothing can go on.
        let Some(tasks) = acts.tasks.get().filter(|_| tokio::runtime::Handle::try_current().is_ok()) else { return };
        let left = Left::new(&acts, self.note.tenant_of_caller());
        tasks.spawn("left-action", go_on(handler, self.note.clone(), left));
    }
}

/// To the end, or until what was asked for is there and the handler would only wait for more.
async fn go_on(mut handler: Handler, note: Note, left: Left) {
    tokio::select! {
        biased;
        _ = &mut handler.handling => {}
        () = note.until_done() => {}
        () = left.acts.cut.triggered() => {}
    }
}

/// An action that goes on without its caller, counted.
struct Left {
    acts: Arc<Shared>,
    tenant: Option<TenantId>,
}

impl Left {
    fn new(acts: &Arc<Shared>, tenant: Option<TenantId>) -> Self {
        acts.left_count.fetch_add(1, Ordering::AcqRel);
        *acts.lock().entry(tenant.clone()).or_default() += 1;
        Self { acts: acts.clone(), tenant }
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        self.acts.left_count.fetch_sub(1, Ordering::AcqRel);
        let mut left = self.acts.lock();
        if let Some(count) = left.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                left.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;
    use tokio::sync::oneshot;

    use super::*;

    fn acts(left_max: usize) -> Acts {
        let acts = Acts::new(left_max, false);
        acts.run_on(&Tasks::on_tokio());
        acts
    }

    /// An action that waits for a word, and says when it has ended.
    fn waiting(acts: &Acts, note: &Note) -> (Act, oneshot::Sender<()>, oneshot::Receiver<bool>) {
        let (word, heard) = oneshot::channel::<()>();
        let (said, ended) = oneshot::channel();
        let act = acts.begin(note.clone(), async move {
            let _ = said.send(heard.await.is_ok());
            StatusCode::OK.into_response()
        });
        (act, word, ended)
    }

    #[tokio::test]
    async fn an_action_goes_on_without_its_caller() {
        let (acts, note) = (acts(8), Note::default());
        let (act, word, ended) = waiting(&acts, &note);
        drop(act);
        assert!(note.is_left());
        word.send(()).unwrap();
        assert!(ended.await.unwrap(), "it has heard the word");
        acts.idle().await;
        assert_eq!(acts.0.left_count.load(Ordering::Acquire), 0);
        assert!(acts.0.lock().is_empty());
    }

    #[tokio::test]
    async fn no_other_begins_while_too_many_are_left() {
        let acts = acts(2);
        let (one, one_word, _) = waiting(&acts, &Note::default());
        let (other, other_word, _) = waiting(&acts, &Note::default());
        assert!(acts.has_room(), "those whose callers wait are not counted");
        drop(one);
        assert!(acts.has_room());
        drop(other);
        assert!(!acts.has_room());
        drop((one_word, other_word));
        acts.idle().await;
        assert!(acts.has_room());
    }

    #[tokio::test]
    async fn what_is_done_does_not_go_on() {
        let (acts, note) = (acts(8), Note::default());
        let (act, _word, ended) = waiting(&acts, &note);
        note.done("inv_1");
        drop(act);
        assert!(ended.await.is_err(), "dropped");
        acts.idle().await;
        // The same where it is done after its caller has gone.
        let note = Note::default();
        let (word, heard) = oneshot::channel::<()>();
        let marked = note.clone();
        let act = acts.begin(note, async move {
            let _ = heard.await;
            marked.done("inv_2");
            std::future::pending().await
        });
        drop(act);
        word.send(()).unwrap();
        acts.idle().await;
    }

    #[tokio::test]
    async fn nothing_goes_on_when_time_is_up() {
        let acts = acts(8);
        let (early, _early_word, early_ended) = waiting(&acts, &Note::default());
        let (late, _late_word, late_ended) = waiting(&acts, &Note::default());
        drop(early);
        acts.cut();
        assert!(early_ended.await.is_err());
        drop(late);
        assert!(late_ended.await.is_err());
        acts.idle().await;
    }
}
