//! The published types and those that somebody registered beside them, and how a schema is compiled with `gts://` references
//! resolved. Nothing is read from files or the network: the published ones are part of the program.

mod embedded;
mod guard;
mod keyword;
mod recursion;
mod schema;
mod unique;
mod walk;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use jsonschema::{PatternOptions, Retrieve, Uri};
use serde_json::Value;

pub use guard::{EXPANSION_MAX, SCHEMA_BYTES_MAX};
pub use schema::Schema;
pub(crate) use walk::keyword;
pub use walk::{Properties, fill_defaults};

use crate::gts;

/// Finds types that are not published ones, such as a tenant's own.
pub trait MoreTypes: Send + Sync {
    fn find(&self, id: &str) -> Option<Value>;
}

impl<F: Fn(&str) -> Option<Value> + Send + Sync> MoreTypes for F {
    fn find(&self, id: &str) -> Option<Value> {
        self(id)
    }
}

static PUBLISHED: LazyLock<BTreeMap<&'static str, Value>> = LazyLock::new(|| {
    // A text that is not JSON would be missing here, and `every_file_is_embedded` would say so.
    embedded::TYPES.iter().filter_map(|(id, text)| Some((*id, serde_json::from_str(text).ok()?))).collect()
});

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaFault {
    /// Where in the schema, as a JSON pointer.
    pub pointer: String,
    pub message: String,
}

impl SchemaFault {
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

/// Types by id. Cheap to clone.
#[derive(Clone, Default)]
pub struct Types {
    more: Option<Arc<dyn MoreTypes>>,
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Types").field("more", &self.more.is_some()).finish()
    }
}

impl Types {
    /// The published ones alone.
    pub fn published() -> Self {
        Self::default()
    }

    /// The published ones first, so that nobody can put another type in the place of one of them.
    pub fn with_more(more: Arc<dyn MoreTypes>) -> Self {
        Self { more: Some(more) }
    }

    /// Ids of the published types, in order.
    pub fn ids() -> impl Iterator<Item = &'static str> {
        PUBLISHED.keys().copied()
    }

    /// The text of a published type, as it is served.
    pub fn text(id: &str) -> Option<&'static str> {
        embedded::TYPES.iter().find(|(known, _)| *known == id).map(|(_, text)| *text)
    }

    pub fn get(&self, id: &str) -> Option<Value> {
        match PUBLISHED.get(id) {
            Some(known) => Some(known.clone()),
            None => self.more.as_ref()?.find(id),
        }
    }

    /// Compiles a schema of a type that is known.
    pub fn compile_type(&self, id: &str) -> Result<Schema, SchemaFault> {
        let schema = self.get(id).ok_or_else(|| SchemaFault::new("", format!("no type `{id}` is registered")))?;
        self.compile(&schema)
    }

    /// Compiles a schema that somebody wrote: it must be a valid one, of bounded cost, and refer to known types only.
    pub fn compile(&self, schema: &Value) -> Result<Schema, SchemaFault> {
        let guard::Bounded { roots, weight } = guard::check(self, schema)?;
        let validator = jsonschema::options()
            .with_retriever(Retriever(self.clone()))
            // Other engines can be made to run for minutes by a pattern; this one cannot.
            .with_pattern_options(PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20))
            .should_validate_formats(true)
            .with_keyword("x-gts-ref", keyword::factory)
            .with_keyword("uniqueItems", unique::factory)
            .build(schema)
            .map_err(|error| SchemaFault::new(error.instance_path().as_str(), error.masked().to_string()))?;
        let detail_depth = recursion::detail_depth(&roots);
        Ok(Schema { validator, detail_depth, has_alternatives: guard::has_alternatives(&roots), weight })
    }
}

struct Retriever(Types);

impl Retrieve for Retriever {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let Some(id) = uri.as_str().strip_prefix(gts::SCHEME) else {
            return Err(format!("references start with `#` or `{}`", gts::SCHEME).into());
        };
        self.0.get(id).ok_or_else(|| format!("no type `{id}` is registered").into())
    }
}
