//! Who is asking. A principal comes from a verified key, or is the development principal; nothing that a caller says about
//! itself counts.

use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use servo_canon::Digest;
use servo_model::{Role, SecurityContext, TenantId, Timestamp, codes};
use servo_wire::key::is_api_key;

use crate::app::App;
use crate::audit::{Note, TOO_MANY_LEFT};
use crate::error::{Answer, ApiError};
use crate::identity::{Authenticator, Credentials, Principal, SignedRequest};
use crate::link::belongs_to;
use crate::request::{RequestInfo, Whose};
use crate::rooms::{self, Seat};
use crate::sigv4::{Signed, Unfit, is_signed};

/// How principals are found.
#[derive(Debug, Clone)]
pub enum Auth {
    /// Everybody on this machine is the development principal. Never for a server that others can reach.
    Development,
    /// `Authorization: Bearer <key>`, and AWS signatures where the API is AWS's.
    Keys { keys: Vec<Key>, access_keys: Vec<AccessKey> },
}

/// A key for AWS signatures. Whoever verifies one needs the secret itself.
#[derive(Clone)]
pub struct AccessKey {
    pub id: String,
    pub secret: String,
    pub tenant: TenantId,
    pub roles: Vec<Role>,
}

impl std::fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessKey").field("id", &self.id).field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

/// A key that was handed out. Only its digest is known here.
#[derive(Debug, Clone)]
pub struct Key {
    pub name: String,
    pub tenant: TenantId,
    pub roles: Vec<Role>,
    pub sha256: Digest,
    /// Whoever configured it says that its text cannot be guessed, although Servo did not make it.
    pub self_made: bool,
}

impl Auth {
    /// Whether a bearer's text is good enough for the key that it fits. A digest does not tell a made key from a word that somebody
    /// thought up, and words are guessed; the text does, when it comes.
    fn takes(&self, token: &str) -> bool {
        let Auth::Keys { keys, .. } = self else { return true };
        let digest = Digest::of(token.as_bytes());
        is_api_key(token) || keys.iter().all(|key| key.self_made || !same(key.sha256.as_bytes(), digest.as_bytes()))
    }
}

/// The keys of the configuration.
#[async_trait]
impl Authenticator for Auth {
    async fn authenticate(
        &self,
        credentials: &Credentials<'_>,
        now: Timestamp,
    ) -> Result<Option<Principal>, servo_store::Error> {
        let Auth::Keys { keys, access_keys } = self else { return Ok(None) };
        Ok(match credentials {
            Credentials::Bearer(token) => {
                let digest = Digest::of(token.as_bytes());
                // Every key is compared, and in constant time, so that the answer's time says nothing about any.
                let mut found = None;
                for key in keys {
                    if same(key.sha256.as_bytes(), digest.as_bytes()) {
                        found = Some(key);
                    }
                }
                found.map(|key| Principal {
                    subject: key.name.clone(),
                    tenant: key.tenant.clone(),
                    roles: key.roles.clone(),
                })
            }
            Credentials::Signature(request) => {
                let key = access_keys.iter().find(|key| key.id == request.access_key());
                let key = key.filter(|key| request.is_by(&key.secret, now));
                key.map(|key| Principal {
                    subject: key.id.clone(),
                    tenant: key.tenant.clone(),
                    roles: key.roles.clone(),
                })
            }
        })
    }

    async fn access_key_tenant(&self, id: &str, _now: Timestamp) -> Result<Option<TenantId>, servo_store::Error> {
        let Auth::Keys { access_keys, .. } = self else { return Ok(None) };
        Ok(access_keys.iter().find(|key| key.id == id).map(|key| key.tenant.clone()))
    }
}

/// Who makes a request, and the note that its audit entry is made from.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    who: Arc<SecurityContext>,
    /// Where a handler says what it is about.
    pub audit: Note,
    /// What the request holds until it is answered.
    pub seat: Seat,
    /// True by sabotage (`any-role`): no role is asked for.
    any_role: bool,
}

impl std::ops::Deref for Caller {
    type Target = SecurityContext;

    fn deref(&self) -> &SecurityContext {
        &self.who
    }
}

/// Who asks. What is wrong with credentials is not said: a key that never was, one that ended and a misspelt one are
/// answered alike.
pub(crate) async fn identify(app: &App, parts: &Parts) -> Answer<Caller> {
    let credentials = bearer(&parts.headers).map(Credentials::Bearer);
    // In development a key is optional, and whatever is no key of ours is not looked at.
    let is_ours = matches!(credentials, Some(Credentials::Bearer(token)) if token.starts_with("svo_"));
    if matches!(app.auth, Auth::Development) && !is_ours {
        return development(parts);
    }
    verified(app, parts, credentials).await
}

/// Who makes a call of the Lambda API, as far as its head tells.
#[derive(Debug)]
pub(crate) enum ByHead {
    Known(Caller),
    /// Only the body can tell, because a signature covers it. The access key that it names is this tenant's.
    Claimed(TenantId),
}

/// Why a call of the Lambda API is nobody's, in as many words as AWS has for it.
#[derive(Debug)]
pub(crate) enum Nobody {
    /// It has no credentials at all.
    Missing,
    /// What it has is nobody's, or not any more.
    Unknown,
    /// It is signed, and the signature is not taken.
    Signature(Unfit),
    /// What any other API would say, too.
    Other(ApiError),
}

impl From<ApiError> for Nobody {
    fn from(error: ApiError) -> Self {
        Nobody::Other(error)
    }
}

impl From<servo_store::Error> for Nobody {
    fn from(error: servo_store::Error) -> Self {
        Nobody::Other(error.into())
    }
}

/// Who makes a call of the Lambda API, before its body is read. If only the body can tell, nothing but the secret is left to be
/// asked. In development signatures are not looked at: clients sign with whatever they have.
pub(crate) async fn identify_head(app: &App, parts: &Parts) -> Result<ByHead, Nobody> {
    if matches!(app.auth, Auth::Development) || !is_signed(parts) {
        return match identify(app, parts).await {
            Ok(caller) => Ok(ByHead::Known(caller)),
            Err(error) if error.problem.status != 401 => Err(Nobody::Other(error)),
            Err(_) if parts.headers.contains_key(AUTHORIZATION) => Err(Nobody::Unknown),
            Err(_) => Err(Nobody::Missing),
        };
    }
    let signed = Signed::read(parts).map_err(Nobody::Signature)?;
    let now = app.runtime.engine().clock().now();
    let Some(tenant) = access_key_tenant(app, &signed, now).await? else { return Err(Nobody::Unknown) };
    signed.check(parts, app.is_encrypted(), now).map_err(Nobody::Signature)?;
    Ok(ByHead::Claimed(tenant))
}

/// Whose access key a signature names.
async fn access_key_tenant(
    app: &App,
    signed: &Signed<'_>,
    now: Timestamp,
) -> Result<Option<TenantId>, servo_store::Error> {
    for source in [&app.auth as &dyn Authenticator, &app.keys] {
        if let Some(tenant) = source.access_key_tenant(signed.access_key, now).await? {
            return Ok(Some(tenant));
        }
    }
    Ok(None)
}

/// Who has signed a call of the Lambda API, once its body is there.
pub(crate) async fn identify_call(app: &App, parts: &Parts, body: &[u8]) -> Result<Caller, Nobody> {
    let signed = Signed::read(parts).map_err(Nobody::Signature)?;
    let request = SignedRequest { signed, parts, body, encrypted: app.is_encrypted() };
    match verified(app, parts, Some(Credentials::Signature(request))).await {
        Err(error) if error.problem.status == 401 => Err(Nobody::Signature(Unfit::another())),
        Err(error) => Err(Nobody::Other(error)),
        Ok(caller) => Ok(caller),
    }
}

/// Told to whoever has the key, and to nobody else.
const WEAK: &str = "this key is in the configuration, and Servo did not make it: a text that somebody thought up is guessed; \
                    put the digest of one that `servo keys generate` prints in its place, or say `self_made = true` beside it";

async fn verified(app: &App, parts: &Parts, credentials: Option<Credentials<'_>>) -> Answer<Caller> {
    let unknown = || ApiError::new(codes::UNAUTHENTICATED);
    let credentials = credentials.ok_or_else(unknown)?;
    if matches!(credentials, Credentials::Bearer(token) if !app.auth.takes(token)) {
        return Err(unknown().detail(WEAK));
    }
    let now = app.runtime.engine().clock().now();
    for source in [&app.auth as &dyn Authenticator, &app.keys] {
        if let Some(Principal { subject, tenant, roles }) = source.authenticate(&credentials, now).await? {
            check_room(app, parts, &tenant)?;
            let correlation_id = correlation_of(parts);
            let who = SecurityContext { subject, tenant, roles, correlation_id, trace: None, trace_state: None };
            let any_role = app.runtime.engine().config().is_sabotaged("any-role");
            return Ok(Caller { any_role, ..noted(parts, who) });
        }
    }
    Err(unknown())
}

fn development(parts: &Parts) -> Answer<Caller> {
    // Pages of other sites were turned away before.
    if is_forwarded(&parts.headers) {
        let detail =
            "this came through a proxy, and a server without keys answers only its own machine; set up [[auth.keys]]";
        return Err(ApiError::forbidden(detail));
    }
    Ok(noted(parts, SecurityContext::development(correlation_of(parts))))
}

/// Nobody begins another action whose tenant has too many under way that nobody waits for.
fn check_room(app: &App, parts: &Parts, tenant: &TenantId) -> Answer<()> {
    let acts = parts.extensions.get::<Note>().is_some_and(Note::acts);
    if acts && !app.acts.has_room_for(tenant) { Err(ApiError::busy(TOO_MANY_LEFT)) } else { Ok(()) }
}

fn noted(parts: &Parts, mut who: SecurityContext) -> Caller {
    if let Some(info) = parts.extensions.get::<Arc<RequestInfo>>() {
        (who.trace, who.trace_state) = (info.trace, info.trace_state.clone());
    }
    if let Some(whose) = parts.extensions.get::<Whose>() {
        whose.is(&who.tenant);
    }
    let audit = parts.extensions.get::<Note>().cloned().unwrap_or_default();
    let who = Arc::new(who);
    audit.caller(who.clone());
    Caller { who, audit, seat: Seat::default(), any_role: false }
}

fn correlation_of(parts: &Parts) -> String {
    parts.extensions.get::<Arc<RequestInfo>>().map(|info| info.correlation_id.clone()).unwrap_or_default()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    // Two credentials are none: which one counts must not depend on who reads them.
    let one = values.next().is_none();
    (one && scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token.trim())
}

pub(crate) fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Headers that a proxy or a tunnel adds. Anybody may write them, and nobody gains by it: who sends one is refused.
const FORWARDING: [&str; 9] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
];

/// Whether a request says that it came through a proxy, behind which anybody may be.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("x-forwarded") || FORWARDING.contains(&name.as_str()))
}

pub(crate) fn require(caller: &Caller, role: Role) -> Answer<()> {
    if caller.allows(role) || caller.any_role { Ok(()) } else { Err(ApiError::forbidden(needs(role))) }
}

/// What a refused caller is told.
pub(crate) fn needs(role: Role) -> &'static str {
    match role {
        Role::Viewer => "this needs the role viewer",
        Role::Operator => "this needs the role operator",
        Role::Developer => "this needs the role developer",
        Role::Admin => "this needs the role admin",
        Role::PlatformAdmin => "this needs the role platform-admin",
    }
}

/// Who asks, with at least this role, on the connection and in the place that the request needs.
async fn sit(app: &App, parts: &mut Parts, role: Role) -> Answer<Caller> {
    let mut caller = identify(app, parts).await?;
    require(&caller, role)?;
    belongs_to(app, parts, &rooms::Whose::Tenant(caller.tenant.clone()))?;
    caller.seat = parts.extensions.get_or_insert_default::<Seat>().clone();
    caller.seat.sit(&caller.tenant)?;
    Ok(caller)
}

/// A principal with at least a role: a handler that takes one says in its signature who may call it.
macro_rules! principals {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub(crate) struct $name(pub Caller);

            impl FromRequestParts<App> for $name {
                type Rejection = ApiError;

                async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
                    sit(app, parts, Role::$name).await.map(Self)
                }
            }
        )*
    };
}

principals! {
    Viewer;
    Operator;
    Developer;
    Admin;
    PlatformAdmin;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bearer_token_is_read_and_nothing_else() {
        let mut headers = HeaderMap::new();
        assert_eq!(bearer(&headers), None);
        for (value, token) in
            [("Bearer abc", Some("abc")), ("bearer  abc ", Some("abc")), ("Basic abc", None), ("Bearer", None)]
        {
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            assert_eq!(bearer(&headers), token, "{value}");
        }
        headers.insert(AUTHORIZATION, "Bearer abc".parse().unwrap());
        headers.append(AUTHORIZATION, "Bearer def".parse().unwrap());
        assert_eq!(bearer(&headers), None);
    }
}
