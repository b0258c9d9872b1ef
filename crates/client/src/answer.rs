//! An answer in both forms: the type to work with, and the text as the server sent it.

use std::ops::Deref;

/// Derefs to the value. `raw` also has what this version does not know, so it is what people get who ask for JSON.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    value: T,
    raw: String,
}

impl<T> Answer<T> {
    pub(crate) fn new(value: T, raw: String) -> Self {
        Self { value, raw }
    }

    pub fn raw(&self) -> &str {
        &self.raw
    }

    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
