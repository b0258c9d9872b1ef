//! Queries of lists: `$filter`, `$orderby`, `limit`, `cursor`, and the plain filters that each list has.

use servo_entrypoint::odata::{FieldKind, Filter, OrderBy, Resource};
use servo_entrypoint::{PageQuery, list_limit};

use super::refused::Answer;
use crate::params::Params;

/// Cursors are shorter; whatever is longer is none.
const CURSOR_CHARS_MAX: usize = 8_192;

/// What every list takes.
pub(super) fn page(params: &mut Params, resource: &Resource) -> Answer<PageQuery> {
    let filter = params.take("$filter", |text| Filter::parse(text, resource).map_err(|error| error.to_string()))?;
    let order = params.take("$orderby", |text| OrderBy::parse(text, resource).map_err(|error| error.to_string()))?;
    Ok(PageQuery { filter, order, ..cut(params)? })
}

/// What a list takes that has one order only.
pub(super) fn cut(params: &mut Params) -> Answer<PageQuery> {
    let cursor = params.take("cursor", |text| match text.len() {
        1..=CURSOR_CHARS_MAX => Ok(text.to_owned()),
        _ => Err("is none of this server's".to_owned()),
    })?;
    Ok(PageQuery { limit: limit(params)?, cursor, filter: None, order: None })
}

/// Not a malformed request, but one that asks for more than there is.
fn limit(params: &mut Params) -> Answer<Option<u32>> {
    let Some(text) = params.take("limit", |text| Ok(text.to_owned()))? else { return Ok(None) };
    Ok(Some(list_limit(Some(&text))?))
}

/// A filter whose value is one of some words.
pub(super) fn word<T>(
    params: &mut Params,
    name: &str,
    resource: &Resource,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Answer<Option<T>> {
    let words = || match resource.field(name).map(|field| field.kind) {
        Some(FieldKind::Word(words)) => format!("is one of: {}", words.join(", ")),
        _ => "has no such value".to_owned(),
    };
    Ok(params.take(name, |text| parse(text).ok_or_else(words))?)
}

pub(super) fn text(params: &mut Params, name: &str) -> Answer<Option<String>> {
    Ok(params.take(name, |text| Ok(text.to_owned()))?)
}
