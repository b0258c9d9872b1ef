//! Who is asking. A principal comes from a verified key, or is the development principal; nothing that a caller says about
//! itself counts.

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use servo_canon::Digest;
use servo_model::{Role, SecurityContext, TenantId, Timestamp, codes};

use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::request::RequestInfo;
use crate::sigv4::Signed;

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
}

impl Auth {
    /// Who makes a call of the Lambda API. In development signatures are not looked at: clients sign with whatever they
    /// have.
    pub(crate) fn identify_call(&self, parts: &Parts, body: &[u8], now: Timestamp) -> Answer<SecurityContext> {
        let correlation = parts.extensions.get::<RequestInfo>().map(|info| info.correlation_id.clone());
        let correlation_id = correlation.unwrap_or_default();
        let (Auth::Keys { access_keys, .. }, Some(signed)) = (self, Signed::of(parts)) else {
            return self.identify(parts, &correlation_id);
        };
        let key = access_keys.iter().find(|key| key.id == signed.access_key);
        let key = key.filter(|key| signed.is_by(&key.secret, parts, body, now));
        let key = key.ok_or_else(|| ApiError::new(codes::UNAUTHENTICATED))?;
        let (subject, tenant, roles) = (key.id.clone(), key.tenant.clone(), key.roles.clone());
        Ok(SecurityContext { subject, tenant, roles, correlation_id })
    }

    fn identify(&self, parts: &Parts, correlation_id: &str) -> Answer<SecurityContext> {
        match self {
            Auth::Development => {
                check_local(&parts.headers, &parts.uri)?;
                Ok(SecurityContext::development(correlation_id.to_owned()))
            }
            Auth::Keys { keys, .. } => {
                let unknown = || ApiError::new(codes::UNAUTHENTICATED);
                let digest = Digest::of(bearer(&parts.headers).ok_or_else(unknown)?.as_bytes());
                // Every key is compared, and in constant time, so that the answer's time says nothing about any.
                let mut found = None;
                for key in keys {
                    if same(key.sha256.as_bytes(), digest.as_bytes()) {
                        found = Some(key);
                    }
                }
                let key = found.ok_or_else(unknown)?;
                Ok(SecurityContext {
                    subject: key.name.clone(),
                    tenant: key.tenant.clone(),
                    roles: key.roles.clone(),
                    correlation_id: correlation_id.to_owned(),
                })
            }
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    // Two credentials are none: which one counts must not depend on who reads them.
    let one = values.next().is_none();
    (one && scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token.trim())
}

fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Without credentials, a page of another site in the user's browser could use the server: by sending requests here, or
/// by a name of its own that resolves to this machine. Both show in headers that pages cannot choose.
fn check_local(headers: &HeaderMap, uri: &Uri) -> Answer<()> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).or_else(|| uri.authority().map(|authority| authority.as_str()));
    if host.is_some_and(|host| !is_local(host)) {
        return Err(ApiError::forbidden("a development server answers only to localhost and loopback addresses"));
    }
    let origin = text(ORIGIN).map(|origin| origin.split_once("://").map_or(origin, |(_, authority)| authority));
    if origin.is_some_and(|origin| !is_local(origin)) {
        return Err(ApiError::forbidden("a development server takes no requests from pages of other sites"));
    }
    Ok(())
}

fn is_local(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(host, _)| host),
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

pub(crate) fn require(principal: &SecurityContext, role: Role) -> Answer<()> {
    if principal.allows(role) { Ok(()) } else { Err(ApiError::forbidden(needs(role))) }
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

/// A principal with at least a role: a handler that takes one says in its signature who may call it.
macro_rules! principals {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub(crate) struct $name(pub SecurityContext);

            impl FromRequestParts<App> for $name {
                type Rejection = ApiError;

                async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
                    let correlation = parts.extensions.get::<RequestInfo>().map(|info| info.correlation_id.clone());
                    let principal = app.auth.identify(parts, &correlation.unwrap_or_default())?;
                    require(&principal, Role::$name)?;
                    Ok(Self(principal))
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
    fn only_names_of_this_machine_are_local() {
        for local in ["localhost", "LOCALHOST:8700", "127.0.0.1:1", "127.8.8.8", "[::1]:8700", "[::1]"] {
            assert!(is_local(local), "{local}");
        }
        for foreign in
            ["", "?", "null", "example.com", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1:8700"]
        {
            assert!(!is_local(foreign), "{foreign}");
        }
    }

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
