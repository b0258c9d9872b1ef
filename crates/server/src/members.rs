//! Members that stand twice in one object of a document. Parsers take one of them without a word, and not all take the same.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Up to so many names are compared one by one, which is faster than a set.
const FEW: usize = 16;

/// The place of the first one, as a JSON pointer without its first slash. The text is JSON; its depth was looked at before.
pub(crate) fn first_twice(text: &str) -> Option<String> {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_str(text);
    // It only fails where one was found: what it reads was parsed before.
    let _ = Inside { found: &mut found }.deserialize(&mut json);
    found.map(|mut place: Vec<String>| {
        place.reverse();
        place.join("/")
    })
}

/// A value that is looked through. What it finds is put together from the inside out.
struct Inside<'a> {
    found: &'a mut Option<Vec<String>>,
}

impl Inside<'_> {
    fn again(&mut self) -> Inside<'_> {
        Inside { found: self.found }
    }

    /// Says where the value is in which something was found.
    fn within<T, E>(&mut self, looked: Result<T, E>, name: impl FnOnce() -> String) -> Result<T, E> {
        if looked.is_err()
            && let Some(place) = self.found
        {
            place.push(name());
        }
        looked
    }
}

impl<'de> DeserializeSeed<'de> for Inside<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The names that an object has had so far.
#[derive(Default)]
struct Names<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> Names<'de> {
    fn is_new(&mut self, name: Cow<'de, str>) -> bool {
        if self.few.len() < FEW {
            let is_new = !self.few.contains(&name);
            self.few.push(name);
            return is_new;
        }
        if self.many.is_empty() {
            self.many.extend(self.few.iter().cloned());
        }
        self.many.insert(name)
    }
}

/// A name as it stands in the text, or without its escapes.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl<'de> Visitor<'de> for Inside<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut names = Names::default();
        while let Some(Name(name)) = map.next_key()? {
            if !names.is_new(name.clone()) {
                *self.found = Some(vec![name.into_owned()]);
                return Err(A::Error::custom("stands twice"));
            }
            let looked = map.next_value_seed(self.again());
            self.within(looked, || name.into_owned())?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        loop {
            let looked = list.next_element_seed(self.again());
            if self.within(looked, || index.to_string())?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
