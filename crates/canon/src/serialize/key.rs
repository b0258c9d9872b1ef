//! Object keys: serialises a map key to the text that it has in JSON. Integers and booleans become their usual text,
//! as in ordinary JSON serializers; floats are refused, because a fingerprint must not depend on how one is spelt.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use crate::Error;

pub(super) struct KeySerializer;

type Key = Cow<'static, str>;
type Refused = Impossible<Key, Error>;

macro_rules! as_text {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<Key, Error> {
            Ok(Cow::Owned(value.to_string()))
        })*
    };
}

macro_rules! refused {
    ($($method:ident($($type:ty),*) -> $result:ty;)*) => {
        $(fn $method(self, $(_: $type),*) -> Result<$result, Error> {
            Err(Error::KeyNotString)
        })*
    };
}

impl Serializer for KeySerializer {
    type Ok = Key;
    type Error = Error;
    type SerializeSeq = Refused;
    type SerializeTuple = Refused;
    type SerializeTupleStruct = Refused;
    type SerializeTupleVariant = Refused;
    type SerializeMap = Refused;
    type SerializeStruct = Refused;
    type SerializeStructVariant = Refused;

    as_text! {
        serialize_str: &str, serialize_char: char, serialize_bool: bool,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
    }

    refused! {
        serialize_f32(f32) -> Key;
        serialize_f64(f64) -> Key;
        serialize_bytes(&[u8]) -> Key;
        serialize_none() -> Key;
        serialize_unit() -> Key;
        serialize_unit_struct(&'static str) -> Key;
        serialize_seq(Option<usize>) -> Refused;
        serialize_tuple(usize) -> Refused;
        serialize_tuple_struct(&'static str, usize) -> Refused;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Refused;
        serialize_map(Option<usize>) -> Refused;
        serialize_struct(&'static str, usize) -> Refused;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Refused;
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<Key, Error> {
        Ok(Cow::Borrowed(variant))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Key, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<Key, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<Key, Error> {
        Err(Error::KeyNotString)
    }
}
