//! Where requests may go whose address a tenant chose: of sandboxed code, and to the handlers of functions.
//!
//! Addresses inside the operator's network are denied unless the operator allows them: loopback, private, link-local and
//! shared ranges, the metadata services of clouds. The check is on the addresses that are connected to, not on names: a name
//! is resolved once. What is sent, its limits and redirects are the business of whoever sends it.

mod address;
mod client;
mod guard;

pub use address::{Net, NotANet};
pub use client::client;
pub use guard::{Allowed, Denied, Guard};
