//! Serialises a value straight to its canonical form, with serde's usual mapping to JSON, so the result equals
//! [`canonicalize`](crate::canonicalize) of the JSON that goes over the wire. Unlike an ordinary JSON serializer it
//! refuses NaN and infinities, which would otherwise become `null`, and floats as map keys.

mod key;

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

use serde::Serialize;
use serde::ser::{self, Serializer};

use crate::writer::{Array, Object, Writer};
use crate::{Error, number, parse};

/// Structs by which `serde_json` hands over JSON text instead of data: a raw value, and a number when that crate is
/// built to keep its digits. They must be written as the JSON that they hold, not as an object with a private key.
const TEXT_STRUCTS: [&str; 2] = ["$serde_json::private::RawValue", "$serde_json::private::Number"];

/// The canonical form of a value.
pub fn to_canonical<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    let mut writer = Writer::default();
    value.serialize(&mut writer)?;
    Ok(writer.out)
}

impl Writer {
    fn integer(&mut self, value: impl Display) -> Result<(), Error> {
        write!(self.out, "{value}").expect("writing to a string cannot fail");
        Ok(())
    }

    /// Opens the object that carries the name of an enum variant beside its data.
    fn begin_variant(&mut self, variant: &'static str) -> Result<Object<'static>, Error> {
        let mut outer = self.begin_object()?;
        self.key(&mut outer, Cow::Borrowed(variant));
        Ok(outer)
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<(), Error> {
            self.integer(value)
        })*
    };
}

impl<'w> Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Elements<'w>;
    type SerializeTuple = Elements<'w>;
    type SerializeTupleStruct = Elements<'w>;
    type SerializeTupleVariant = Elements<'w>;
    type SerializeMap = Fields<'w>;
    type SerializeStruct = Struct<'w>;
    type SerializeStructVariant = Fields<'w>;

    integers! {
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.bool(value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        number::write_float(&mut self.out, value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        number::write_float(&mut self.out, value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.string(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.null();
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let outer = self.begin_variant(variant)?;
        value.serialize(&mut *self)?;
        self.end_object(outer)
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Elements<'w>, Error> {
        let array = self.begin_array()?;
        Ok(Elements { writer: self, array, variant: None })
    }

    fn serialize_tuple(self, len: usize) -> Result<Elements<'w>, Error> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<Elements<'w>, Error> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Elements<'w>, Error> {
        let variant = Some(self.begin_variant(variant)?);
        let array = self.begin_array()?;
        Ok(Elements { writer: self, array, variant })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Fields<'w>, Error> {
        let object = self.begin_object()?;
        Ok(Fields { writer: self, object, variant: None })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Struct<'w>, Error> {
        if TEXT_STRUCTS.contains(&name) {
            return Ok(Struct::Text(self));
        }
        self.serialize_map(Some(len)).map(Struct::Fields)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Fields<'w>, Error> {
        let variant = Some(self.begin_variant(variant)?);
        let object = self.begin_object()?;
        Ok(Fields { writer: self, object, variant })
    }
}

/// A sequence in progress, inside the object of its variant if it has one.
pub(crate) struct Elements<'w> {
    writer: &'w mut Writer,
    array: Array,
    variant: Option<Object<'static>>,
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.writer.element(&mut self.array);
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.writer.end_array();
        self.variant.map_or(Ok(()), |outer| self.writer.end_object(outer))
    }
}

macro_rules! like_a_sequence {
    ($($trait:ident: $method:ident),* $(,)?) => {
        $(impl ser::$trait for Elements<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                ser::SerializeSeq::serialize_element(self, value)
            }

            fn end(self) -> Result<(), Error> {
                ser::SerializeSeq::end(self)
            }
        })*
    };
}

like_a_sequence! {
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

/// An object in progress, inside the object of its variant if it has one.
pub(crate) struct Fields<'w> {
    writer: &'w mut Writer,
    object: Object<'static>,
    variant: Option<Object<'static>>,
}

impl Fields<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.writer.key(&mut self.object, Cow::Borrowed(key));
        value.serialize(&mut *self.writer)
    }

    fn finish(self) -> Result<(), Error> {
        self.writer.end_object(self.object)?;
        self.variant.map_or(Ok(()), |outer| self.writer.end_object(outer))
    }
}

impl ser::SerializeMap for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let key = key.serialize(key::KeySerializer)?;
        self.writer.key(&mut self.object, key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}

impl ser::SerializeStructVariant for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.field(key, value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}

/// A struct in progress: an object, or one of [`TEXT_STRUCTS`].
pub(crate) enum Struct<'w> {
    Fields(Fields<'w>),
    Text(&'w mut Writer),
}

impl ser::SerializeStruct for Struct<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        match self {
            Struct::Fields(fields) => fields.field(key, value),
            // The only field of such a struct is its text.
            Struct::Text(writer) => parse::write_text(writer, &value.serialize(key::KeySerializer)?),
        }
    }

    fn end(self) -> Result<(), Error> {
        match self {
            Struct::Fields(fields) => fields.finish(),
            Struct::Text(_) => Ok(()),
        }
    }
}
