//! Request bodies: read within limits of size, time and depth, parsed with the name of the field that is wrong.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use servo_model::limits::{JSON_DEPTH_MAX, clip, is_deeper_than};
use servo_model::{Invalid, TenantId, codes, digits};
use servo_sched::Held;

use crate::app::App;
use crate::error::{Answer, ApiError};
use crate::members;
use crate::rooms::{Seat, Whose, busy};

/// A JSON object that fits `T`.
#[derive(Debug)]
pub(crate) struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let Text(text) = Text::from_request(request, app).await?;
        parse(&text, JSON_DEPTH_MAX).map(Json)
    }
}

/// A body of text, not looked into.
#[derive(Debug)]
pub(crate) struct Text(pub String);

impl FromRequest<App> for Text {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let limit = app.runtime.engine().config().limits.request_body_bytes_max;
        read_json(app, request, limit).await.map(Text)
    }
}

/// Reads a body that is sent as it is and said to be JSON, or nothing.
pub(crate) async fn read_json(app: &App, request: Request, bytes_max: usize) -> Answer<String> {
    check_plain(request.headers())?;
    let said = says_json(request.headers())?;
    let seat = request.extensions().get::<Seat>().cloned().unwrap_or_default();
    let text = read(app, &seat, request.into_body(), bytes_max).await?;
    if said || text.is_empty() { Ok(text) } else { Err(no_json()) }
}

/// Whether a body is said to be JSON; an error where it is said to be something else. Pages of other sites can send bodies without
/// being asked first only as long as they are not JSON.
fn says_json(headers: &HeaderMap) -> Answer<bool> {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let Some(kind) = kinds.next() else { return Ok(false) };
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind).trim().to_ascii_lowercase();
    let is_json = kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
    if is_json && kinds.next().is_none() { Ok(true) } else { Err(no_json()) }
}

fn no_json() -> ApiError {
    ApiError::new(codes::MALFORMED_JSON).detail("send the body as JSON, with `Content-Type: application/json`")
}

/// Whether a body is sent as it is. No body is ever unpacked: a small one could become as large as it likes.
pub(crate) fn is_plain(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    encodings.all(|encoding| encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"))
}

pub(crate) const NOT_UNPACKED: &str = "compressed bodies are not taken; send it as it is, without `Content-Encoding`";

/// Refuses a body that would have to be unpacked.
fn check_plain(headers: &HeaderMap) -> Answer<()> {
    match is_plain(headers) {
        true => Ok(()),
        false => Err(ApiError::new(codes::MALFORMED_JSON).detail(NOT_UNPACKED)),
    }
}

/// Reads a whole body of UTF-8 for a request. While it comes the request gives its place to others; afterwards the bytes are its for
/// as long as it is under way.
async fn read(app: &App, seat: &Seat, body: Body, bytes_max: usize) -> Answer<String> {
    let within = Duration::from_millis(app.config.body_timeout_ms);
    let whose = Whose::Tenant(seat.tenant().unwrap_or_else(TenantId::system));
    let room = app.rooms.bodies.take(&whose, 0).map_err(|full| busy(full, BODIES))?;
    seat.give_place();
    let (bytes, room) = bytes(body, bytes_max, within, room).await?;
    seat.take_place()?;
    seat.keep(room);
    String::from_utf8(bytes).map_err(|_| ApiError::new(codes::MALFORMED_JSON).detail("the body is not UTF-8"))
}

pub(crate) const BODIES: &str = "large bodies are being read";

/// Reads a whole body, whatever it holds, and takes room for it as it comes. What finds none is not waited for.
pub(crate) async fn bytes(
    body: Body,
    bytes_max: usize,
    within: Duration,
    mut room: Held<Whose>,
) -> Answer<(Vec<u8>, Held<Whose>)> {
    let reading = async {
        let mut bytes = Vec::new();
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| ApiError::new(codes::MALFORMED_JSON).detail("the body ended early"))?;
            if bytes.len() + chunk.len() > bytes_max {
                return Err(
                    ApiError::new(codes::LIMIT_EXCEEDED).detail(format!("a body has at most {bytes_max} bytes"))
                );
            }
            room.grow(chunk.len()).map_err(|full| busy(full, BODIES))?;
            bytes.extend_from_slice(&chunk);
        }
        Ok((bytes, room))
    };
    let late = |_| ApiError::new(codes::MALFORMED_JSON).detail("the body did not arrive in time");
    tokio::time::timeout(within, reading).await.map_err(late)?
}

/// Parses a JSON object. Depth is checked first, because parts of a body may be kept as they are and read later by a
/// parser that recurses.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, depth_max: usize) -> Answer<T> {
    let parsed = parse_recorded(text, depth_max)?;
    check_digits(text)?;
    check_members(text)?;
    Ok(parsed)
}

/// Refuses a member that stands twice in one object: two readers could each believe another of them. The text is JSON and not deep.
pub(crate) fn check_members(text: &str) -> Answer<()> {
    let twice = |place: String| Invalid::new(clip(&place), "stands twice; which of them counts nobody could say");
    members::first_twice(text).map_or(Ok(()), |place| Err(twice(place).into()))
}

/// Refuses a number that would lose digits.
pub(crate) fn check_digits(text: &str) -> Answer<()> {
    digits::first_too_large(text).map_or(Ok(()), |place| Err(Invalid::new(clip(&place), digits::ADVICE).into()))
}

/// The same for what a server has written: whatever is in it was taken before.
pub(crate) fn parse_recorded<T: DeserializeOwned>(text: &str, depth_max: usize) -> Answer<T> {
    check_depth(text, depth_max)?;
    let parsed = match serde_json::from_str(text) {
        Ok(parsed) => parsed,
        // Knowing where it is costs something for every field, so only a body with a mistake is read that way.
        Err(_) => parse_located(text)?,
    };
    // Serde would also take a list of the fields in order, which no description of the API allows.
    if !text.trim_start().starts_with('{') {
        return Err(Invalid::new("", "the body is a JSON object").into());
    }
    Ok(parsed)
}

/// The same, with the place of what is wrong.
fn parse_located<T: DeserializeOwned>(text: &str) -> Answer<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().clone();
        of_json(&error.into_inner(), &path, text)
    })?;
    json.end().map_err(|error| ApiError::new(codes::MALFORMED_JSON).detail(error.to_string()))?;
    Ok(parsed)
}

fn of_json(error: &serde_json::Error, path: &serde_path_to_error::Path, text: &str) -> ApiError {
    // The parser calls a number that no float can hold a mistake of syntax.
    if error.is_syntax()
        && error.to_string().starts_with("number out of range")
        && let Err(told) = check_digits(text)
    {
        return told;
    }
    if error.is_syntax() || error.is_eof() || error.is_io() {
        return ApiError::new(codes::MALFORMED_JSON).detail(error.to_string());
    }
    let message = error.to_string();
    let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
    let mut parts: Vec<String> = path
        .iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { variant } => Some(variant.clone()),
            Segment::Unknown => None,
        })
        .collect();
    if let Some(name) = named_field(reason)
        && parts.last().is_none_or(|last| last != name)
    {
        parts.push(name.to_owned());
    }
    // A name or a word may be all of the body, and what is said about it is not to be larger than what was sent.
    Invalid::new(clip(&parts.join("/")), clip(reason)).into()
}

/// A missing or unknown field stands between backticks, and the path ends at the object around it.
fn named_field(reason: &str) -> Option<&str> {
    let rest = reason.strip_prefix("missing field `").or_else(|| reason.strip_prefix("unknown field `"))?;
    rest.split_once('`').map(|(name, _)| name)
}

pub(crate) fn check_depth(text: &str, depth_max: usize) -> Answer<()> {
    if is_deeper_than(text, depth_max) {
        return Err(Invalid::new("", format!("the body is nested more than {depth_max} levels deep")).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_sched::{Bounds, Counter};
    use servo_wire::v1::StartRunRequest;

    fn refused(text: &str) -> (String, String) {
        let problem = parse::<StartRunRequest>(text, JSON_DEPTH_MAX).unwrap_err().problem;
        (problem.code, problem.errors.first().map(|error| error.pointer.clone()).unwrap_or_default())
    }

    #[tokio::test]
    async fn bodies_that_are_read_at_once_share_their_room() {
        let rooms = Counter::new(Bounds { total: 4_000, scope: 3_000 });
        let whose = |name: &str| Whose::Tenant(TenantId::parse(name).unwrap());
        let read = async |name: &str, length: usize| {
            let room = rooms.take(&whose(name), 0).unwrap();
            bytes(Body::from(vec![0; length]), 10_000, Duration::from_secs(10), room).await
        };
        let (all, room) = read("acme", 3_000).await.unwrap();
        assert_eq!((all.len(), room.amount()), (3_000, 3_000));
        assert_eq!(read("acme", 1).await.unwrap_err().problem.status, 429);
        assert!(read("globex", 700).await.is_ok() && read("acme", 0).await.is_ok(), "others find room");
        drop(room);
        assert_eq!(read("acme", 3_001).await.unwrap_err().problem.status, 429);
        assert!(read("acme", 3_000).await.is_ok(), "nothing is kept");
        assert_eq!(rooms.used(), 0);
    }

    #[test]
    fn a_body_says_that_it_is_json() {
        let said = |kinds: &[&str]| {
            let mut headers = HeaderMap::new();
            for kind in kinds {
                headers.append(CONTENT_TYPE, kind.parse().unwrap());
            }
            says_json(&headers).map_err(|error| error.problem.code)
        };
        for good in
            ["application/json", "Application/JSON; charset=utf-8", "application/problem+json", " application/json "]
        {
            assert_eq!(said(&[good]), Ok(true), "{good}");
        }
        for bad in
            ["text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data", "json", "", "+json"]
        {
            assert_eq!(said(&[bad]), Err("MALFORMED_JSON".to_owned()), "{bad}");
        }
        assert_eq!(said(&["application/json", "text/plain"]), Err("MALFORMED_JSON".to_owned()));
        assert_eq!(said(&[]), Ok(false));
    }

    #[test]
    fn a_member_that_stands_twice_is_named() {
        let told = |text: &str| {
            let error = parse::<serde_json::Value>(text, 8).unwrap_err();
            (error.problem.code.clone(), error.problem.errors[0].pointer.clone())
        };
        for (text, pointer) in [
            (r#"{"mode":"sync","mode":"async"}"#, "/mode"),
            (r#"{"mode":1,"a":2,"mo\u0064e":1}"#, "/mode"),
            (r#"{"params":{"a":[{"b":1},{"b":1,"b":1}]}}"#, "/params/a/1/b"),
        ] {
            assert_eq!(told(text), ("SCHEMA_VALIDATION_FAILED".to_owned(), pointer.to_owned()), "{text}");
        }
        assert!(parse::<serde_json::Value>(r#"{"a":{"b":1},"b":{"b":1},"c":["b","b"]}"#, 8).is_ok());
    }

    #[test]
    fn the_wrong_field_is_named() {
        let good = format!(
            r#""sha256":"{}","schemaVersion":"1","planId":"p","planVersion":"1""#,
            servo_canon::Digest::of(b"")
        );
        for (text, pointer) in [
            ("{}".to_owned(), "/planRef"),
            (r#"{"planRef":{}}"#.to_owned(), "/planRef/sha256"),
            (r#"{"planRef":7}"#.to_owned(), "/planRef"),
            (r#"{"planRef":[1]}"#.to_owned(), "/planRef"),
            (format!(r#"{{"planRef":{{{good},"colour":1}}}}"#), "/planRef/colour"),
            (format!(r#"{{"planRef":{{{good}}},"extra":1}}"#), "/extra"),
            (format!(r#"{{"planRef":{{{good}}},"notBefore":"soon"}}"#), "/notBefore"),
            (format!(r#"{{"planRef":{{{good}}},"projectId":"a b"}}"#), "/projectId"),
            (format!(r#"{{"planRef":{{{good}}},"approvalRequired":"yes"}}"#), "/approvalRequired"),
            (r#"{"planRef":{"sha256":"xyz"}}"#.to_owned(), "/planRef/sha256"),
            ("[]".to_owned(), ""),
        ] {
            assert_eq!(refused(&text), ("SCHEMA_VALIDATION_FAILED".to_owned(), pointer.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_number_that_would_lose_digits_is_named() {
        let parsed = parse::<serde_json::Value>(r#"{"params": {"n": [1, 18446744073709551615]}}"#, 8).unwrap();
        assert_eq!(parsed["params"]["n"][1], u64::MAX);
        let problem =
            parse::<serde_json::Value>(r#"{"params": {"n": [1, 18446744073709551617]}}"#, 8).unwrap_err().problem;
        assert_eq!(
            (problem.code.as_str(), problem.errors[0].pointer.as_str()),
            ("SCHEMA_VALIDATION_FAILED", "/params/n/1")
        );
    }

    #[test]
    fn broken_json_is_told_apart_from_wrong_json() {
        for text in ["", "{", "nonsense", r#"{"planRef":}"#] {
            assert_eq!(refused(text).0, "MALFORMED_JSON", "{text}");
        }
        let trailing = parse::<servo_wire::v1::RedriveRequest>("{} {}", 8).unwrap_err();
        assert_eq!(trailing.problem.code, "MALFORMED_JSON");
    }

    #[test]
    fn depth_is_counted_to_the_level() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check_depth(&nested(64), 64).is_ok());
        assert!(check_depth(&nested(65), 64).is_err());
        assert!(check_depth(&nested(1_000_000), 64).is_err());
        assert!(check_depth(&format!("\"{}\\\"[[\"", "[".repeat(100)), 64).is_ok());
    }
}
