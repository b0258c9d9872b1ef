//! `$filter` and `$orderby`: a small part of OData, over a list of fields that each resource allows. Everything that a query can
//! ask for has an index or a bounded answer, so nothing else is understood.
//!
//! Written here and not taken from a library: the parsers that exist recurse as deep as the text says.

mod eval;
mod fields;
mod filter;
mod lex;
mod order;

pub use eval::Row;
pub use fields::{ENTRYPOINTS, Field, FieldKind, INVOCATIONS, Resource};
pub use filter::{Compare, DEPTH_MAX, FILTER_BYTES_MAX, Filter, IN_MAX, Literal, TERMS_MAX};
pub use order::{Direction, ORDER_KEYS_MAX, OrderBy, OrderKey};

/// What is wrong with a query, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {at})")]
pub struct QueryError {
    /// Counts from 1.
    pub at: usize,
    pub message: String,
}

impl QueryError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at: at + 1, message: message.into() }
    }
}
