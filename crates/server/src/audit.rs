//! Who did what: every route passes here, so none can forget it.
//!
//! A route declares its action in [`actions`]; a handler says what it is about, where the path does not. Entries hold names
//! and codes, never bodies, results or credentials. ADR 9 says which are written before the answer and which behind it.

pub(crate) mod actions;
mod acts;
mod note;
mod recorder;
mod throttle;
mod whole;

use std::sync::Arc;

use axum::RequestExt as _;
use axum::extract::{MatchedPath, RawPathParams, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use servo_model::{AuditEntry, AuditOutcome, TenantId};

use crate::app::App;
use crate::error::ApiError;
use crate::request::{Peer, RequestInfo, answered, said};
use actions::{Action, Recorded};

pub(crate) use acts::Acts;
pub(crate) use note::Note;
use note::Noted;
pub(crate) use recorder::Recorder;

/// The reason of an entry whose caller went away before there was an answer.
const CALLER_GONE: &str = "CALLER_GONE";
/// The reason of an entry whose action was still under way when the server had to end: it may have been done.
const SHUTTING_DOWN: &str = "SHUTTING_DOWN";

/// A request on its way, with all that its entry will need. Dropped in the middle it still leaves one: otherwise hanging up
/// in time would be a way to act unseen.
struct Watched {
    app: App,
    action: Action,
    note: Note,
    object: String,
    info: Arc<RequestInfo>,
    peer: Option<Peer>,
    answered: bool,
    /// An entry that is being written.
    unwritten: Option<Arc<AuditEntry>>,
}

/// Around every route.
pub(crate) async fn watch(app: &App, mut request: Request, next: Next) -> Response {
    let Some(route) = request.extensions().get::<MatchedPath>().cloned() else {
        return answered(request, next).await;
    };
    let action = actions::of(request.method(), route.as_str());
    let acts = action.recorded != Recorded::IfDenied;
    if acts && !app.acts.has_room() {
        return said(ApiError::busy(TOO_MANY_LEFT), request.uri().path());
    }
    let note = if acts { Note::of_action() } else { Note::default() };
    request.extensions_mut().insert(note.clone());
    let object = object_in_path(route.as_str(), &mut request).await;
    let watched = Watched {
        app: app.clone(),
        action,
        note: note.clone(),
        object,
        info: request.extensions().get::<Arc<RequestInfo>>().cloned().unwrap_or_default(),
        peer: request.extensions().get::<Peer>().copied(),
        answered: false,
        unwritten: None,
    };
    if !acts {
        return watched.through(request, next).await;
    }
    let request = whole::whole(request, &note);
    app.acts.begin(note, watched.through(request, next)).await
}

/// What is said while too many actions go on whose callers have hung up.
pub(crate) const TOO_MANY_LEFT: &str = "too many actions are under way whose callers have gone; try again later";

/// The first parameter of the path, decoded: however it is spelt, it is the same object. Without the action that follows the id
/// in some addresses of the REST API, which is no part of it.
async fn object_in_path(route: &str, request: &mut Request) -> String {
    let Ok(params) = request.extract_parts::<RawPathParams>().await else {
        // Not UTF-8, and so no object: as it was sent.
        let pairs = route.split('/').zip(request.uri().path().split('/'));
        return pairs
            .filter(|(name, _)| name.starts_with('{'))
            .map(|(_, value)| value.to_owned())
            .next()
            .unwrap_or_default();
    };
    let value = params.iter().next().map_or("", |(_, value)| value);
    let has_actions = route.starts_with(crate::failures::PREFIX) && request.method() == Method::POST;
    let id = value.rsplit_once(':').filter(|_| has_actions).map_or(value, |(id, _)| id);
    id.to_owned()
}

impl Watched {
    /// The answer of the handler, once its entry is where it belongs.
    async fn through(mut self, request: Request, next: Next) -> Response {
        let response = answered(request, next).await;
        self.answered = true;
        if let Some(entry) = self.record(&response) {
            let is_before = self.action.recorded == Recorded::Before;
            let entry = if is_before { Some(entry) } else { self.app.recorder.put(entry) };
            if let Some(entry) = entry {
                self.unwritten = Some(entry.clone());
                if is_before {
                    self.app.recorder.before(entry).await;
                } else {
                    self.app.recorder.behind(entry).await;
                }
                self.unwritten = None;
            }
        }
        response
    }

    /// The entry of something that was done. Others are on their way already: nobody waits for them.
    fn record(&self, response: &Response) -> Option<Arc<AuditEntry>> {
        let status = response.status();
        let (is_known, is_unchanged, is_done) =
            self.note.read(|noted| (noted.caller.is_some(), noted.unchanged, noted.done));
        let denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let recorder = &self.app.recorder;
        if denied {
            recorder.denied(self.entry(AuditOutcome::Denied, reason(response)));
            return None;
        }
        if self.action.recorded == Recorded::IfDenied || status == StatusCode::METHOD_NOT_ALLOWED {
            return None;
        }
        if status.is_client_error() || status.is_server_error() {
            if is_done {
                return Some(Arc::new(self.entry(AuditOutcome::Allowed, reason(response))));
            }
            // Before anybody is known there is nobody who has tried.
            if is_known {
                let cut_short = self.note.is_cut_short().then(|| CALLER_GONE.to_owned());
                recorder.denied(self.entry(AuditOutcome::Failed, cut_short.or_else(|| reason(response))));
            }
            return None;
        }
        let gone = || self.note.is_left().then(|| CALLER_GONE.to_owned());
        (!is_unchanged).then(|| Arc::new(self.entry(AuditOutcome::Allowed, gone())))
    }

    fn entry(&self, outcome: AuditOutcome, reason: Option<String>) -> AuditEntry {
        self.note.read(|noted| self.entry_of(noted, outcome, reason))
    }

    fn entry_of(&self, noted: &Noted, outcome: AuditOutcome, reason: Option<String>) -> AuditEntry {
        let engine = self.app.runtime.engine();
        let at = engine.clock().now();
        let (actor, tenant_id, roles) = match &noted.caller {
            // Whose it is about, who may be another than the caller's.
            Some(caller) => {
                let tenant = noted.tenant.as_ref().unwrap_or(&caller.tenant);
                (caller.subject.clone(), tenant.clone(), caller.roles.clone())
            }
            None => (String::new(), TenantId::system(), Vec::new()),
        };
        AuditEntry {
            id: engine.ids().event_id(at),
            at,
            tenant_id,
            actor,
            roles,
            action: noted.action.unwrap_or(self.action.name).to_owned(),
            object_kind: self.action.object_kind.to_owned(),
            object_id: noted.object.as_ref().unwrap_or(&self.object).clone(),
            outcome,
            correlation_id: self.info.correlation_id.clone(),
            reason,
            source: self.peer.map(|peer| peer.0.to_string()),
            count: 1,
        }
        .clipped()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(entry) = self.unwritten.take() {
            // Written twice is written once.
            self.app.recorder.later(entry);
        }
        if self.answered || self.action.recorded == Recorded::IfDenied {
            return;
        }
        if self.note.read(|noted| noted.caller.is_some() && !noted.unchanged) {
            let reason = if self.app.acts.end().is_triggered() { SHUTTING_DOWN } else { CALLER_GONE };
            let gone = self.entry(AuditOutcome::Failed, Some(reason.to_owned()));
            self.note.leave(&self.app.recorder, gone);
        }
    }
}

/// The code of the answer, in the words of its API.
fn reason(response: &Response) -> Option<String> {
    if let Some(error) = response.extensions().get::<ApiError>() {
        return Some(error.problem.code.clone());
    }
    let name = response.headers().get("x-amzn-errortype").and_then(|value| value.to_str().ok());
    Some(name.map_or_else(|| response.status().as_u16().to_string(), str::to_owned))
}
