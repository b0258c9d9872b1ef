//! Whether a request may come from where its headers say it comes from.
//!
//! A page in somebody's browser reaches every address that the browser reaches. What it cannot choose are `Host`, `Origin` and
//! `Sec-Fetch-…`. A page of another site shows in the latter two. One whose name was made to lead here shows in `Host`, which is
//! why a listener that only this machine reaches, or that asks for no key, is called by its address or by a name that it was told.

use std::net::IpAddr;

use http::header::{COOKIE, HOST, ORIGIN, REFERER, USER_AGENT};
use http::{HeaderMap, HeaderName, Method, Uri, Version};

use crate::authority::{Authority, Host};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// What browsers send and runtimes of functions do not. `Sec-Fetch-Mode` is not in it: Node's `fetch` sends that.
const OF_BROWSERS: [HeaderName; 7] = [
    ORIGIN,
    REFERER,
    COOKIE,
    FETCH_SITE,
    FETCH_DEST,
    HeaderName::from_static("sec-fetch-user"),
    HeaderName::from_static("access-control-request-method"),
];

/// Which pages may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Those that this listener serves itself.
    Own,
    /// None: it is there for programs alone.
    None,
}

/// What is asked, and how it is reached.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The address at which the request came in, where it is known.
    pub address: Option<IpAddr>,
    /// Whether only this machine reaches it.
    pub loopback: bool,
    /// Whether it asks nobody for a key.
    pub keyless: bool,
    /// The names that it is known by. If there are any, it has no others but its address and those of this machine.
    pub hosts: Vec<Authority>,
    pub pages: Pages,
}

/// The head of a request.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub method: &'a Method,
    pub uri: &'a Uri,
    pub version: Version,
    pub headers: &'a HeaderMap,
    /// Whether the address is one that people open in a browser, coming from anywhere.
    pub is_page: bool,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is not clear which host is meant, or it is none of this server's.
    Host,
    /// A page of another site sends it.
    Site,
}

impl Refused {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Host => {
                "this server is not known by the host that the request names; use its address, or add the name to server.hosts"
            }
            Self::Site => "requests from pages of other sites are not taken",
        }
    }
}

/// Whether the request is looked at any further.
pub fn decide(listener: &Listener, ask: &Ask<'_>) -> Result<(), Refused> {
    let own = host_of(ask)?;
    check_host(listener, ask, own.as_ref())?;
    match listener.pages {
        Pages::None if is_of_browser(ask.headers) => Err(Refused::Site),
        Pages::None => Ok(()),
        Pages::Own => check_site(listener, ask, own.as_ref()),
    }
}

/// The host that the request names: in its target, in `Host`, or alike in both.
fn host_of(ask: &Ask<'_>) -> Result<Option<Authority>, Refused> {
    let read = |text: &str| Authority::parse(text).ok_or(Refused::Host);
    let target = ask.uri.authority().map(|authority| read(authority.as_str())).transpose()?;
    let mut values = ask.headers.get_all(HOST).iter();
    let header = values.next().map(|value| read(value.to_str().unwrap_or_default())).transpose()?;
    let differ = matches!((&target, &header), (Some(target), Some(header)) if target != header);
    if values.next().is_some() || differ {
        return Err(Refused::Host);
    }
    Ok(target.or(header))
}

fn check_host(listener: &Listener, ask: &Ask<'_>, own: Option<&Authority>) -> Result<(), Refused> {
    if !listener.loopback && !listener.keyless && listener.hosts.is_empty() {
        return Ok(());
    }
    let is_known = match own {
        // Before HTTP/1.1 there was none, and no browser is that old.
        None => ask.version < Version::HTTP_11,
        Some(own) => {
            own.host.is_loopback()
                || listener.address.is_some_and(|address| own.host == Host::ip(address))
                || listener.hosts.iter().any(|known| is_same_host(known, own))
        }
    };
    if is_known { Ok(()) } else { Err(Refused::Host) }
}

/// A name of the configuration without a port stands for all ports.
fn is_same_host(known: &Authority, own: &Authority) -> bool {
    known.host == own.host && (known.port.is_none() || known.port == own.port)
}

fn is_of_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).map(|value| value.as_bytes());
    OF_BROWSERS.iter().any(|name| headers.contains_key(name))
        || agent.is_some_and(|agent| agent.starts_with(b"Mozilla/"))
}

fn check_site(listener: &Listener, ask: &Ask<'_>, own: Option<&Authority>) -> Result<(), Refused> {
    let origin = only(ask.headers, &ORIGIN)?;
    if origin.is_some_and(|origin| !is_own(listener, origin, own)) {
        return Err(Refused::Site);
    }
    match only(ask.headers, &FETCH_SITE)? {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) if origin.is_none() && is_opened(ask) => Ok(()),
        Some(_) => Err(Refused::Site),
    }
}

/// The value of a header that stands there once, if it does.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refused> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        _ => Err(Refused::Site),
    }
}

/// Whether somebody opens a page: by a link on another site, for example.
fn is_opened(ask: &Ask<'_>) -> bool {
    let says = |name: &HeaderName, word: &str| ask.headers.get(name).is_some_and(|value| value == word);
    let on_top = says(&FETCH_DEST, "document") || !ask.headers.contains_key(&FETCH_DEST);
    ask.is_page && matches!(*ask.method, Method::GET | Method::HEAD) && says(&FETCH_MODE, "navigate") && on_top
}

/// Whether an origin is this server: the host and port that the request itself names, or a name of the configuration.
fn is_own(listener: &Listener, origin: &str, own: Option<&Authority>) -> bool {
    let Some((scheme, rest)) = origin.split_once("://") else { return false };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Some(origin) = Authority::parse(rest) else { return false };
    let port = origin.port.unwrap_or(default);
    let is = |other: &Authority| other.host == origin.host && other.port.unwrap_or(default) == port;
    own.is_some_and(is) || listener.hosts.iter().any(is)
}
