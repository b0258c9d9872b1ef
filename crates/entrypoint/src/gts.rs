//! Ids of the global type system (GTS), in the spelling that the API publishes: `gts.` and one or more segments, each of three or
//! more names, a version and `~`. This does not resolve them; that is `schemas`.
//!
//! The strict grammar of GTS wants exactly four names a segment and would refuse half of the published ids.

use servo_model::invocation::EntrypointKind;

/// Longest id; it enters indexes and keys.
pub const ID_BYTES_MAX: usize = 512;
/// Types that one id derives through.
pub const SEGMENTS_MAX: usize = 8;

/// The type that every entrypoint's address starts with.
pub const ENTRYPOINT: &str = "gts.x.core.serverless.entrypoint.v1~";
pub const FUNCTION: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~";
pub const WORKFLOW: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~";
/// The adapters that are built in.
pub const LAMBDA: &str = "gts.x.core.serverless.adapter.lambda.v1~";
pub const STARLARK: &str = "gts.x.core.serverless.adapter.starlark.v1~";
pub const LIMITS: &str = "gts.x.core.serverless.limits.v1~";
pub const RATE_LIMIT: &str = "gts.x.core.serverless.rate_limit.v1~";
pub const COMPENSATION_CONTEXT: &str = "gts.x.core.serverless.compensation_context.v1~";
pub const TOKEN_BUCKET: &str = "gts.x.core.serverless.rate_limit.v1~x.core.serverless.rate_limit.token_bucket.v1~";
/// How an id is written as a reference in a schema.
pub const SCHEME: &str = "gts://";

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GtsError {
    #[error("an id has at most {ID_BYTES_MAX} characters")]
    TooLong,
    #[error("an id starts with `gts.`")]
    Prefix,
    #[error("an id ends with `~`")]
    End,
    #[error("an id has at most {SEGMENTS_MAX} segments")]
    TooManySegments,
    #[error("the segment `{0}` is not three or more names and a version, such as `vendor.app.name.v1`")]
    Segment(String),
}

/// An id that was checked, and its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gts<'a> {
    text: &'a str,
}

impl<'a> Gts<'a> {
    pub fn parse(text: &'a str) -> Result<Self, GtsError> {
        if text.len() > ID_BYTES_MAX {
            return Err(GtsError::TooLong);
        }
        let body = text.strip_prefix("gts.").ok_or(GtsError::Prefix)?;
        let body = body.strip_suffix('~').ok_or(GtsError::End)?;
        if body.split('~').count() > SEGMENTS_MAX {
            return Err(GtsError::TooManySegments);
        }
        match body.split('~').find(|segment| !is_segment(segment)) {
            Some(wrong) => Err(GtsError::Segment(wrong.to_owned())),
            None => Ok(Self { text }),
        }
    }

    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// The segments, without `gts.` and `~`.
    pub fn segments(self) -> impl Iterator<Item = &'a str> {
        self.text.trim_start_matches("gts.").split_terminator('~')
    }

    /// The ids that this one derives through, from the base to itself.
    pub fn chain(self) -> impl Iterator<Item = &'a str> {
        let text = self.text;
        text.match_indices('~').map(move |(at, _)| &text[..=at])
    }

    /// Whether this is that type or derives from it.
    pub fn derives_from(self, base: &str) -> bool {
        base.ends_with('~') && self.text.starts_with(base)
    }
}

fn is_segment(segment: &str) -> bool {
    let parts: Vec<&str> = segment.split('.').collect();
    // A minor version is one more part, and starts with a digit, which no name does.
    let minor = parts.last().is_some_and(|last| is_number(last));
    let names = parts.len().saturating_sub(if minor { 2 } else { 1 });
    let Some((names, version)) = parts.split_at_checked(names) else { return false };
    let is_version = version.first().and_then(|text| text.strip_prefix('v')).is_some_and(is_number);
    names.len() >= 3 && is_version && names.iter().all(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// One way to write each number, so that one version has one id.
fn is_number(text: &str) -> bool {
    let canonical = text == "0" || !text.starts_with('0');
    (1..=9).contains(&text.len()) && canonical && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The address of an entrypoint: an id that derives from the function or the workflow type, and is not that type itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address<'a> {
    pub id: Gts<'a>,
    pub kind: EntrypointKind,
}

impl<'a> Address<'a> {
    /// `None` in the error's place says that the id is well written but names no function or workflow.
    pub fn parse(text: &'a str) -> Result<Self, Option<GtsError>> {
        let id = Gts::parse(text).map_err(Some)?;
        let own = |base: &str| id.derives_from(base) && id.as_str() != base;
        let kind = if own(FUNCTION) {
            EntrypointKind::Function
        } else if own(WORKFLOW) {
            EntrypointKind::Workflow
        } else {
            return Err(None);
        };
        Ok(Self { id, kind })
    }
}

/// The type that entrypoints of a kind are checked against.
pub fn type_of(kind: EntrypointKind) -> &'static str {
    match kind {
        EntrypointKind::Function => FUNCTION,
        EntrypointKind::Workflow => WORKFLOW,
    }
}

/// Whether `id` starts with `prefix`, which may end in one `*`.
pub fn matches_prefix(id: &str, prefix: &str) -> bool {
    id.starts_with(prefix.strip_suffix('*').unwrap_or(prefix))
}

/// The type of the limits that an adapter understands: `…adapter.starlark.v1~` has `…limits.v1~…adapter.starlark.limits.v1~`.
/// `None` for an id that is not an adapter's.
pub fn limits_of(adapter: &str) -> Option<String> {
    let id = Gts::parse(adapter).ok()?;
    let last = id.segments().last()?;
    if !id.as_str().starts_with("gts.x.core.serverless.adapter.") {
        return None;
    }
    let version = last.split('.').position(|part| part.strip_prefix('v').is_some_and(is_number))?;
    let names: Vec<&str> = last.split('.').collect();
    let (names, version) = names.split_at(version);
    Some(format!("{LIMITS}{}.limits.{}~", names.join("."), version.join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SR-009: all spellings of the published ids, and none beside them.
    #[test]
    fn ids_are_read_as_they_are_published() {
        for text in [
            ENTRYPOINT,
            FUNCTION,
            WORKFLOW,
            TOKEN_BUCKET,
            "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.my_func.v1~",
            "gts.x.core.serverless.err.v1~x.core.serverless.err.validation.v1~",
            "gts.x.core.serverless.limits.v1~x.core.serverless.adapter.starlark.limits.v1~",
            "gts.x.core.events.event.v1~vendor.app.orders.approved.v1~",
            "gts.vendor.app.thing.v1.12~",
            "gts.vendor.app._x9.v0~",
        ] {
            assert_eq!(Gts::parse(text).map(Gts::as_str), Ok(text));
        }
        for text in [
            "",
            "gts.",
            "gts.~",
            "gts.a.b.c.v1",
            "a.b.c.v1~",
            "gts.a.b.v1~",
            "gts.a.b.c~",
            "gts.a.b.c.1~",
            "gts.a.b.c.v~",
            "gts.a.b.c.v01~",
            "gts.a.b.c.v1.2.3~",
            "gts.A.b.c.v1~",
            "gts.a-b.b.c.v1~",
            "gts.1a.b.c.v1~",
            "gts.a..c.v1~",
            "gts.a.b.c.v1~~",
            "gts.a.b.c.v1~gts.a.b.c.v1",
            "gts.a.b.c.v1~ ",
            "gts.a.b.c.v1~*",
            "gts.ä.b.c.v1~",
        ] {
            assert!(Gts::parse(text).is_err(), "{text}");
        }
        assert_eq!(Gts::parse(&format!("gts.{}~", "a.b.c.v1~".repeat(60))), Err(GtsError::TooLong));
        assert_eq!(Gts::parse(&format!("gts.{}", "a.b.c.v1~".repeat(9))), Err(GtsError::TooManySegments));
    }

    #[test]
    fn a_chain_goes_from_the_base_to_the_id() {
        let id = Gts::parse("gts.a.b.c.v1~d.e.f.v2~").unwrap();
        assert_eq!(id.chain().collect::<Vec<_>>(), ["gts.a.b.c.v1~", "gts.a.b.c.v1~d.e.f.v2~"]);
        assert_eq!(id.segments().collect::<Vec<_>>(), ["a.b.c.v1", "d.e.f.v2"]);
        assert!(
            id.derives_from("gts.a.b.c.v1~") && !id.derives_from("gts.a.b.c.v1") && !id.derives_from("gts.a.b.d.v1~")
        );
    }

    /// SR-002, SR-003: the kind of an address is in its chain, and an address without one is refused.
    #[test]
    fn addresses_have_a_kind() {
        let of = |text: &str| Address::parse(text).map(|address| address.kind);
        assert_eq!(of(&format!("{FUNCTION}vendor.app.my_func.v1~")), Ok(EntrypointKind::Function));
        assert_eq!(of(&format!("{WORKFLOW}vendor.app.my_workflow.v1~")), Ok(EntrypointKind::Workflow));
        for text in [ENTRYPOINT, FUNCTION, WORKFLOW, "gts.vendor.app.thing.v1~x.core.serverless.function.v1~a.b.c.v1~"]
        {
            assert_eq!(of(text), Err(None), "{text}");
        }
        assert!(matches!(of("gts.x"), Err(Some(_))));
    }

    /// SR-366: with and without the star.
    #[test]
    fn a_prefix_may_end_in_a_star() {
        let id = format!("{FUNCTION}vendor.app.f.v2~");
        for prefix in ["", "*", ENTRYPOINT, "gts.x.core.serverless.entrypoint.*", &format!("{FUNCTION}vendor.app.f.v")]
        {
            assert!(matches_prefix(&id, prefix), "{prefix}");
        }
        for prefix in ["gts.y", "gts.*.core", &format!("{FUNCTION}vendor.app.f.v1*")] {
            assert!(!matches_prefix(&id, prefix), "{prefix}");
        }
    }

    /// SR-086: the limits type follows from the adapter.
    #[test]
    fn limits_follow_from_the_adapter() {
        for name in ["starlark", "lambda", "temporal"] {
            assert_eq!(
                limits_of(&format!("gts.x.core.serverless.adapter.{name}.v1~")),
                Some(format!("gts.x.core.serverless.limits.v1~x.core.serverless.adapter.{name}.limits.v1~"))
            );
        }
        assert_eq!(
            limits_of("gts.x.core.serverless.adapter.base.v1~vendor.app.adapter.v2.1~").as_deref(),
            Some("gts.x.core.serverless.limits.v1~vendor.app.adapter.limits.v2.1~")
        );
        assert_eq!(limits_of("gts.x.core.serverless.err.v1~"), None);
        assert_eq!(limits_of("starlark"), None);
    }
}
