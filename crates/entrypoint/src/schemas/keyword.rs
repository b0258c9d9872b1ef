//! The keyword `x-gts-ref` of the published types: the string is an id whose beginning is given, with `*` for the rest.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

use crate::gts::{self, Gts};

struct GtsRef {
    pattern: String,
}

impl GtsRef {
    fn fault(&self, text: &str) -> Option<String> {
        if let Err(error) = Gts::parse(text) {
            return Some(format!("not a GTS id: {error}"));
        }
        (!gts::matches_prefix(text, &self.pattern)).then(|| format!("the id does not match `{}`", self.pattern))
    }
}

impl<'i> Keyword<'i> for GtsRef {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match instance.as_str().and_then(|text| self.fault(text)) {
            Some(message) => Err(ValidationError::custom(message)),
            None => Ok(()),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        instance.as_str().is_none_or(|text| self.fault(text).is_none())
    }
}

pub(super) fn factory<'a>(
    _parent: &'a Map<String, Value>,
    value: &'a Value,
    _path: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    match value.as_str() {
        Some(pattern) => Ok(Box::new(GtsRef { pattern: pattern.to_owned() })),
        None => Err(ValidationError::schema("`x-gts-ref` is a text such as `gts.vendor.*`")),
    }
}
