//! What can go wrong on the way to canonical bytes. Errors carry no source text beyond a duplicate key: payloads may
//! hold data that does not belong in a log.

use std::fmt;

/// Why a value has no canonical form, or a text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not JSON (RFC 8259). `offset` counts bytes from the start of the text.
    #[error("invalid json at byte {offset}: {reason}")]
    Syntax { offset: usize, reason: &'static str },
    /// Arrays and objects are nested [`DEPTH_LIMIT`](crate::DEPTH_LIMIT) levels or deeper.
    #[error("json is nested {} levels or deeper", crate::DEPTH_LIMIT)]
    TooDeep,
    /// An object has the same key twice, so readers would disagree about its value.
    #[error("duplicate key {key:?}")]
    DuplicateKey { key: String },
    /// A number's magnitude is beyond that of a double: most readers would see infinity or refuse it.
    #[error("number is out of range")]
    NumberOutOfRange,
    /// NaN or an infinity, which JSON cannot express.
    #[error("number is not finite")]
    NotFinite,
    /// A map key that is not a string, a character, a boolean, an integer or a unit variant.
    #[error("object key is not a string")]
    KeyNotString,
    /// The value's own `Serialize` refused.
    #[error("value cannot be serialised: {0}")]
    Serialize(String),
    /// The text is not exactly 64 lower-case hexadecimal digits.
    #[error("a digest is 64 lower-case hexadecimal digits")]
    NotADigest,
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::Serialize(message.to_string())
    }
}
