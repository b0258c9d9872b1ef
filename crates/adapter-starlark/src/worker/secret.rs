//! The name of a secret in the place of its value. The value exists only in the parent, for the moment of a request.

use std::fmt;

use allocative::Allocative;
use starlark::any::ProvidesStaticType;
use starlark::starlark_simple_value;
use starlark::values::{Heap, NoSerialize, StarlarkValue, Value, ValueLike as _, starlark_value};

use crate::protocol::Part;

/// Text and secrets in a row, such as `"Bearer " + ctx.secret("token")`.
#[derive(Debug, Clone, ProvidesStaticType, NoSerialize, Allocative)]
pub(crate) struct Secret {
    #[allocative(skip)]
    parts: Vec<Part>,
}

starlark_simple_value!(Secret);

impl Secret {
    pub(crate) fn named(name: &str) -> Self {
        Self { parts: vec![Part::Secret(name.to_owned())] }
    }

    /// What a header's value is made of, if it is a text or a secret.
    pub(crate) fn parts_of(value: Value<'_>) -> Option<Vec<Part>> {
        if let Some(text) = value.unpack_str() {
            return Some(vec![Part::Text(text.to_owned())]);
        }
        value.downcast_ref::<Secret>().map(|secret| secret.parts.clone())
    }

    fn join(mut left: Vec<Part>, right: Vec<Part>) -> Self {
        left.extend(right);
        Self { parts: left }
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

#[starlark_value(type = "secret")]
impl<'v> StarlarkValue<'v> for Secret {
    fn add(&self, other: Value<'v>, heap: &'v Heap) -> Option<starlark::Result<Value<'v>>> {
        let right = Secret::parts_of(other)?;
        Some(Ok(heap.alloc(Secret::join(self.parts.clone(), right))))
    }

    fn radd(&self, other: Value<'v>, heap: &'v Heap) -> Option<starlark::Result<Value<'v>>> {
        let left = Secret::parts_of(other)?;
        Some(Ok(heap.alloc(Secret::join(left, self.parts.clone()))))
    }
}
