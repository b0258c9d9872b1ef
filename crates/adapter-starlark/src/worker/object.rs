//! A dict from outside. Its keys read as attributes too, so that `input.amount` and `input["amount"]` are the same.

use std::fmt;

use allocative::Allocative;
use starlark::any::ProvidesStaticType;
use starlark::values::dict::DictRef;
use starlark::values::{AllocValue, Heap, StarlarkValue, Trace, Value, ValueLike as _, starlark_value};

#[derive(Debug, Trace, ProvidesStaticType, Allocative)]
pub(crate) struct Object<'v> {
    dict: Value<'v>,
}

impl<'v> Object<'v> {
    pub(crate) fn new(dict: Value<'v>) -> Self {
        Self { dict }
    }

    pub(crate) fn dict(&self) -> Value<'v> {
        self.dict
    }

    fn field(&self, name: &str) -> Option<Value<'v>> {
        DictRef::from_value(self.dict)?.get_str(name)
    }
}

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.dict, f)
    }
}

impl serde::Serialize for Object<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.dict.serialize(serializer)
    }
}

impl<'v> AllocValue<'v> for Object<'v> {
    fn alloc_value(self, heap: &'v Heap) -> Value<'v> {
        heap.alloc_complex_no_freeze(self)
    }
}

/// The dict that a value is or holds.
fn dict_of<'v>(value: Value<'v>) -> Value<'v> {
    value.downcast_ref::<Object<'v>>().map_or(value, Object::dict)
}

#[starlark_value(type = "object", StarlarkTypeRepr, UnpackValue)]
impl<'v> StarlarkValue<'v> for Object<'v> {
    /// A field hides the method of its name: data such as `order.items` is what programs mean most of the time.
    fn get_attr(&self, attribute: &str, heap: &'v Heap) -> Option<Value<'v>> {
        let field = self.field(attribute);
        field.or_else(|| self.dict.get_attr(attribute, heap).ok().flatten())
    }

    fn has_attr(&self, attribute: &str, heap: &'v Heap) -> bool {
        self.field(attribute).is_some() || self.dict.has_attr(attribute, heap)
    }

    fn dir_attr(&self) -> Vec<String> {
        let keys = DictRef::from_value(self.dict);
        let keys = keys.iter().flat_map(|dict| dict.keys());
        keys.filter_map(|key| key.unpack_str().map(str::to_owned)).collect()
    }

    fn at(&self, index: Value<'v>, heap: &'v Heap) -> starlark::Result<Value<'v>> {
        self.dict.at(index, heap)
    }

    fn set_at(&self, index: Value<'v>, new_value: Value<'v>) -> starlark::Result<()> {
        self.dict.set_at(index, new_value)
    }

    fn is_in(&self, other: Value<'v>) -> starlark::Result<bool> {
        self.dict.is_in(other)
    }

    fn length(&self) -> starlark::Result<i32> {
        self.dict.length()
    }

    fn to_bool(&self) -> bool {
        self.dict.to_bool()
    }

    fn iterate_collect(&self, heap: &'v Heap) -> starlark::Result<Vec<Value<'v>>> {
        Ok(self.dict.iterate(heap)?.collect())
    }

    fn equals(&self, other: Value<'v>) -> starlark::Result<bool> {
        self.dict.equals(dict_of(other))
    }

    fn bit_or(&self, other: Value<'v>, heap: &'v Heap) -> starlark::Result<Value<'v>> {
        self.dict.bit_or(dict_of(other), heap)
    }
}
