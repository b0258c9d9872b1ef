//! One call as the child sees it: what it was asked, what is recorded, in which context the program is, and the way to the
//! parent.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use servo_canon::Digest;
use servo_model::invocation::Checkpointing;
use servo_model::operation::{OperationStatus, OperationUpdate};
use servo_replay::{Ids, Journal, Operation};
use servo_wire::lambda::{self, Seconds, UPDATES_MAX};
use starlark::any::ProvidesStaticType;
use starlark::eval::Evaluator;

use super::link::Link;
use super::outbox::Outbox;
use super::raised::{Raised, raise, wrong};
use crate::protocol::{CallHead, ToChild};

#[derive(ProvidesStaticType)]
pub(crate) struct Session {
    pub(crate) link: Rc<RefCell<Link>>,
    pub(crate) head: CallHead,
    outbox: Arc<Outbox>,
    journal: Option<RefCell<Journal>>,
    scopes: RefCell<Vec<Scope>>,
    /// What the program was left for: operations that somebody else completes.
    left_for: RefCell<Vec<String>>,
    raised: RefCell<Option<Raised>>,
    logged: Cell<usize>,
}

/// A context with ids of its own, or the body of a step, which has none.
struct Scope {
    ids: Ids,
    step: Option<(String, u32)>,
    drawn: u64,
}

impl Session {
    pub(crate) fn new(link: Rc<RefCell<Link>>, head: CallHead, operations: Option<Vec<Operation>>) -> Self {
        let journal = operations.map(|operations| RefCell::new(Journal::load(operations)));
        let root = Scope { ids: Ids::new(None), step: None, drawn: 0 };
        let outbox = link.borrow().outbox.clone();
        outbox.clear();
        let (scopes, left_for) = (RefCell::new(vec![root]), RefCell::default());
        let (raised, logged) = (RefCell::new(None), Cell::new(0));
        Self { link, head, outbox, journal, scopes, left_for, raised, logged }
    }

    /// The session of a running evaluation.
    pub(crate) fn of<'a>(eval: &Evaluator<'_, 'a, '_>) -> starlark::Result<&'a Session> {
        let extra: Option<&'a dyn starlark::any::AnyLifetime<'_>> = eval.extra;
        extra.and_then(|extra| extra.downcast_ref::<Session>()).ok_or_else(|| wrong("ctx works only inside main"))
    }

    /// Leaves the program until somebody has completed the operation.
    pub(crate) fn suspend(&self, id: &str) -> starlark::Error {
        self.left_for.borrow_mut().push(id.to_owned());
        raise(self, Raised::Suspend)
    }

    /// Whether something has come that the program was left for. The service told it with a checkpoint of another branch, and will
    /// not call again for what it has told.
    pub(crate) fn has_come(&self) -> bool {
        let Some(journal) = &self.journal else { return false };
        let journal = journal.borrow();
        let has_come = |id: &String| {
            let status = journal.get(id).map(|operation| operation.status);
            status.is_some_and(|status| status.is_terminal() || status == OperationStatus::Ready)
        };
        self.left_for.borrow().iter().any(has_come)
    }

    /// For another walk through the program, with all that is recorded by now.
    pub(crate) fn into_parts(self) -> (CallHead, Option<Vec<Operation>>) {
        let journal = self.journal.map(RefCell::into_inner);
        let operations = journal.map(|journal| journal.operations().map(|op| Operation::clone(op)).collect());
        (self.head, operations)
    }

    pub(crate) fn set_raised(&self, raised: Raised) {
        *self.raised.borrow_mut() = Some(raised);
    }

    pub(crate) fn take_raised(&self) -> Option<Raised> {
        self.raised.borrow_mut().take()
    }

    pub(crate) fn has_raised(&self) -> bool {
        self.raised.borrow().is_some()
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.journal.is_some()
    }

    pub(crate) fn is_in_step(&self) -> bool {
        self.scopes.borrow().last().is_some_and(|scope| scope.step.is_some())
    }

    pub(crate) fn is_in_branch(&self) -> bool {
        self.scopes.borrow().len() > 1
    }

    /// The context under which operations are recorded now.
    pub(crate) fn context_id(&self) -> Option<String> {
        self.scopes.borrow().last().and_then(|scope| scope.ids.parent().map(str::to_owned))
    }

    pub(crate) fn mint(&self) -> String {
        self.scopes.borrow().last().map(|scope| scope.ids.mint()).unwrap_or_default()
    }

    pub(crate) fn enter_context(&self, id: &str) {
        let ids = Ids::new(Some(id.to_owned()));
        self.scopes.borrow_mut().push(Scope { ids, step: None, drawn: 0 });
    }

    pub(crate) fn enter_step(&self, id: &str, attempt: u32) {
        let ids = Ids::new(self.context_id());
        self.scopes.borrow_mut().push(Scope { ids, step: Some((id.to_owned(), attempt)), drawn: 0 });
        // Where the author says what is recorded, nothing else is.
        if self.is_automatic() {
            self.outbox.begin_step(Duration::from_millis(self.head.step_told_after_ms));
        }
    }

    pub(crate) fn leave_step(&self) {
        self.outbox.end_step();
        self.leave();
    }

    pub(crate) fn leave(&self) {
        self.scopes.borrow_mut().pop();
    }

    /// Bytes that look random and are the same on every replay of the same place. No record is needed for them.
    pub(crate) fn draw(&self, kind: &str) -> [u8; 32] {
        let mut scopes = self.scopes.borrow_mut();
        let Some(scope) = scopes.last_mut() else { return [0; 32] };
        scope.drawn += 1;
        let (step, attempt) = scope.step.clone().unwrap_or_default();
        let parent = scope.ids.parent().unwrap_or_default();
        let parts = [&self.head.seed, kind, parent, &step, &attempt.to_string(), &scope.drawn.to_string()];
        *Digest::of_parts(&parts, '\n').as_bytes()
    }

    /// Whether lines at this place were written by an earlier invocation already.
    pub(crate) fn is_replaying(&self) -> bool {
        let Some(journal) = &self.journal else { return false };
        !self.is_in_step() && journal.borrow().is_behind(self.context_id().as_deref())
    }

    /// Counts a line against the limit of the call; false when there is no room left.
    pub(crate) fn may_log(&self, bytes: usize) -> bool {
        let logged = self.logged.get().saturating_add(bytes);
        self.logged.set(logged);
        logged <= self.head.log_bytes_max
    }

    pub(crate) fn journal<R>(&self, use_it: impl FnOnce(&mut Journal) -> R) -> starlark::Result<R> {
        let Some(journal) = &self.journal else { return Err(wrong("this works only in workflows")) };
        Ok(use_it(&mut journal.borrow_mut()))
    }

    /// Whether anything of this workflow is recorded.
    pub(crate) fn keeps_nothing(&self) -> bool {
        self.head.checkpointing == Checkpointing::Disabled
    }

    /// Whether what was done is recorded without being asked for.
    pub(crate) fn is_automatic(&self) -> bool {
        self.head.checkpointing == Checkpointing::Automatic
    }

    /// Puts an update in line. It leaves with the next call, or at once when the line is long and nobody else says when.
    pub(crate) fn enqueue(&self, update: OperationUpdate) -> starlark::Result<()> {
        if !self.is_durable() {
            return Err(wrong("this works only in workflows"));
        }
        if self.keeps_nothing() {
            return Ok(());
        }
        if self.outbox.enqueue(update) >= UPDATES_MAX { self.flush_if_automatic() } else { Ok(()) }
    }

    /// The same as `flush`, unless the author says where.
    pub(crate) fn flush_if_automatic(&self) -> starlark::Result<()> {
        if self.is_automatic() { self.flush() } else { Ok(()) }
    }

    /// Returns once everything in line is recorded.
    pub(crate) fn flush(&self) -> starlark::Result<()> {
        while self.outbox.send_checkpoint() {
            self.accept()?;
        }
        Ok(())
    }

    /// What changed, page by page.
    fn accept(&self) -> starlark::Result<()> {
        loop {
            let (head, body) = self.link.borrow_mut().receive();
            let more = match head {
                ToChild::Page { more } => more,
                ToChild::Withdrawn => return Err(raise(self, Raised::Withdrawn)),
                ToChild::Refused { error } => return Err(raise(self, Raised::Fatal(error))),
                other => super::broken(&format!("expected a page, got {other:?}")),
            };
            for operation in read_page(&body) {
                self.journal(|journal| journal.merge(operation))?;
            }
            if !more {
                return Ok(());
            }
        }
    }
}

/// A page comes from our own process; one that cannot be read is a mistake of ours.
pub(crate) fn read_page(body: &[u8]) -> Vec<Operation> {
    match serde_json::from_slice::<Vec<lambda::Operation<Seconds>>>(body) {
        Ok(operations) => operations.into_iter().map(lambda::Operation::with_time).collect(),
        Err(error) => super::broken(&format!("a page cannot be read: {error}")),
    }
}
