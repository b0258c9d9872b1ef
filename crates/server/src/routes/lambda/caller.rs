//! Who calls, with what. Nobody's body is read before there is somebody: a key tells who, and a signature, which covers the body, at least
//! whose it claims to be.

use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, Query, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use servo_model::Role;
use servo_model::limits::{JSON_DEPTH_MAX, is_deeper_than};
use servo_wire::document::Unfit;
use servo_wire::lambda::ErrorName;

use super::{LambdaAnswer, LambdaError};
use crate::app::App;
use crate::auth::{ByHead, Caller, identify_call, identify_head, require};
use crate::body;
use crate::link::belongs_to;
use crate::rooms::{Seat, Whose, busy};

/// The largest payload of a call, each of whose characters JSON may spell with two, and room for what stands around it. Who sends more
/// of them at once than there is room for bodies is refused.
pub(in crate::routes) const BODY_BYTES_MAX: usize = 2 * 6 * 1024 * 1024 + 256 * 1024;

/// A call of the API: its path parameter, query, headers and body, and who makes it.
#[derive(Debug)]
pub(super) struct Call {
    pub principal: Caller,
    /// The first parameter in the path, decoded; empty where the path has none.
    pub subject: String,
    pub second: Option<String>,
    pub headers: HeaderMap,
    pub body: String,
    query: Vec<(String, String)>,
}

/// Reads a call by somebody who has at least this role.
pub(super) async fn read(app: &App, request: Request, role: Role) -> LambdaAnswer<Call> {
    let no_text = || LambdaError::new(ErrorName::InvalidRequestContent, "the body is not UTF-8");
    read_or(app, request, role, no_text).await
}

/// The same, with what is said about a body that is no text.
pub(super) async fn read_or(
    app: &App,
    request: Request,
    role: Role,
    no_text: impl FnOnce() -> LambdaError,
) -> LambdaAnswer<Call> {
    let (mut parts, body) = request.into_parts();
    let within = Duration::from_millis(app.config.body_timeout_ms);
    let known = identify_head(app, &parts).await?;
    let whose = match &known {
        ByHead::Known(principal) => {
            require(principal, role)?;
            Whose::Tenant(principal.tenant.clone())
        }
        ByHead::Claimed(tenant) => Whose::Claimed(tenant.clone()),
    };
    if !body::is_plain(&parts.headers) {
        return Err(LambdaError::new(ErrorName::UnsupportedMediaType, body::NOT_UNPACKED));
    }
    belongs_to(app, &parts, &whose)?;
    // A place is needed to be read at all, so that a refusal costs little, and then only when it is read: whoever sends slowly is in
    // nobody's way.
    let seat = Seat::limited(&app.rooms.calls);
    if let ByHead::Known(principal) = &known {
        seat.sit(&principal.tenant)?;
        seat.give_place();
    }
    let room = app.rooms.bodies_of(&whose).take(&whose, 0).map_err(|full| busy(full, body::BODIES))?;
    let (body, mut room) = body::bytes(body, BODY_BYTES_MAX, within, room).await?;
    let mut principal = match known {
        ByHead::Known(principal) => principal,
        ByHead::Claimed(_) => {
            let principal = identify_call(app, &parts, &body).await?;
            require(&principal, role)?;
            let whose = Whose::Tenant(principal.tenant.clone());
            belongs_to(app, &parts, &whose)?;
            room = app.rooms.bodies.take(&whose, room.amount()).map_err(|full| busy(full, body::BODIES))?;
            principal
        }
    };
    seat.sit(&principal.tenant)?;
    seat.keep(room);
    principal.seat = seat;
    let body = String::from_utf8(body).map_err(|_| no_text())?;
    let parameters = match Path::<Vec<(String, String)>>::from_request_parts(&mut parts, app).await {
        Ok(Path(parameters)) => parameters,
        Err(PathRejection::MissingPathParams(_)) => Vec::new(),
        Err(_) => return Err(LambdaError::invalid("the path is not UTF-8")),
    };
    let mut parameters = parameters.into_iter().map(|(_, value)| value);
    let (subject, second) = (parameters.next().unwrap_or_default(), parameters.next());
    let query = query(&parts)?;
    Ok(Call { principal, subject, second, headers: parts.headers, body, query })
}

fn query(parts: &Parts) -> LambdaAnswer<Vec<(String, String)>> {
    let unreadable = |_| LambdaError::invalid("the query cannot be read");
    Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map(|Query(pairs)| pairs).map_err(unreadable)
}

impl Call {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.query.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> LambdaAnswer<bool> {
        match self.text(name) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(LambdaError::invalid(format!("{name} is true or false"))),
        }
    }

    pub(super) fn number(&self, name: &str) -> LambdaAnswer<Option<usize>> {
        let wrong = |_| LambdaError::invalid(format!("{name} is a whole number"));
        self.text(name).map(str::parse).transpose().map_err(wrong)
    }

    pub(super) fn header(&self, name: &str) -> LambdaAnswer<Option<&str>> {
        let wrong = |_| LambdaError::invalid(format!("the header {name} is not plain text"));
        self.headers.get(name).map(|value| value.to_str()).transpose().map_err(wrong)
    }

    pub(super) fn json<T: DeserializeOwned>(&self) -> LambdaAnswer<T> {
        document(&self.body)
    }
}

/// The document of a call.
pub(in crate::routes) fn document<T: DeserializeOwned>(text: &str) -> LambdaAnswer<T> {
    if is_deeper_than(text, JSON_DEPTH_MAX) {
        return Err(LambdaError::new(ErrorName::InvalidRequestContent, "the body is nested too deeply"));
    }
    servo_wire::document::read(text).map_err(|unfit| match unfit {
        Unfit::Malformed(_) => LambdaError::new(ErrorName::InvalidRequestContent, format!("the body is {unfit}")),
        Unfit::Wrong { .. } => LambdaError::invalid(unfit.to_string()),
    })
}
