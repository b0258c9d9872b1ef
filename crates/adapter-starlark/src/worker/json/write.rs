//! Values to JSON text, within a limit that holds while it is written.

use starlark::values::dict::DictRef;
use starlark::values::float::StarlarkFloat;
use starlark::values::list::ListRef;
use starlark::values::structs::StructRef;
use starlark::values::tuple::TupleRef;
use starlark::values::{Value, ValueLike as _};

use super::DEPTH_MAX;
use crate::worker::object::Object;
use crate::worker::secret::Secret;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// The value has no JSON.
    Kind(String),
    /// It has too much.
    TooLarge,
}

pub(crate) fn write(value: Value<'_>, bytes_max: usize) -> Result<String, WriteError> {
    let mut writer = Writer { out: String::new(), bytes_max };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    bytes_max: usize,
}

impl Writer {
    fn value(&mut self, value: Value<'_>, depth: usize) -> Result<(), WriteError> {
        if depth > DEPTH_MAX {
            let message = format!("a value is nested deeper than {DEPTH_MAX} levels, or holds itself");
            return Err(WriteError::Kind(message));
        }
        if value.is_none() {
            return self.put("null");
        }
        if let Some(flag) = value.unpack_bool() {
            return self.put(if flag { "true" } else { "false" });
        }
        if let Some(text) = value.unpack_str() {
            return self.string(text);
        }
        if value.get_type() == "int" {
            return self.put(&value.to_str());
        }
        if let Some(StarlarkFloat(float)) = value.downcast_ref::<StarlarkFloat>() {
            if !float.is_finite() {
                return Err(WriteError::Kind(format!("{float} is no number of JSON")));
            }
            return self.put(&serde_json::to_string(float).unwrap_or_default());
        }
        if let Some(object) = value.downcast_ref::<Object<'_>>() {
            return self.value(object.dict(), depth);
        }
        if let Some(dict) = DictRef::from_value(value) {
            return self.fields(dict.iter().map(|(key, value)| (key.unpack_str(), key, value)), depth);
        }
        if let Some(fields) = StructRef::from_value(value) {
            return self.fields(fields.iter().map(|(key, value)| (Some(key.as_str()), key.to_value(), value)), depth);
        }
        if let Some(list) = ListRef::from_value(value) {
            return self.items(list.iter(), depth);
        }
        if let Some(tuple) = TupleRef::from_value(value) {
            return self.items(tuple.iter(), depth);
        }
        if value.downcast_ref::<Secret>().is_some() {
            let message = "a secret is never returned, recorded or logged; use it in the headers of ctx.http";
            return Err(WriteError::Kind(message.to_owned()));
        }
        let kind = value.get_type();
        Err(WriteError::Kind(format!(
            "a value of type {kind:?} has no JSON; use None, bool, int, float, str, list, tuple, dict or struct"
        )))
    }

    fn fields<'v>(
        &mut self,
        fields: impl Iterator<Item = (Option<&'v str>, Value<'v>, Value<'v>)>,
        depth: usize,
    ) -> Result<(), WriteError> {
        self.put("{")?;
        for (index, (name, key, value)) in fields.enumerate() {
            let Some(name) = name else {
                let kind = key.get_type();
                return Err(WriteError::Kind(format!("a dict with a key of type {kind:?} has no JSON; use str(key)")));
            };
            if index > 0 {
                self.put(",")?;
            }
            self.string(name)?;
            self.put(":")?;
            self.value(value, depth + 1)?;
        }
        self.put("}")
    }

    fn items<'v>(&mut self, items: impl Iterator<Item = Value<'v>>, depth: usize) -> Result<(), WriteError> {
        self.put("[")?;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.put(",")?;
            }
            self.value(item, depth + 1)?;
        }
        self.put("]")
    }

    fn string(&mut self, text: &str) -> Result<(), WriteError> {
        // Checked before the text is escaped: escaping copies it.
        if text.len() > self.bytes_max {
            return Err(WriteError::TooLarge);
        }
        self.put(&serde_json::to_string(text).unwrap_or_default())
    }

    fn put(&mut self, text: &str) -> Result<(), WriteError> {
        if self.out.len() + text.len() > self.bytes_max {
            return Err(WriteError::TooLarge);
        }
        self.out.push_str(text);
        Ok(())
    }
}
