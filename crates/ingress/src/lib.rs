//! What every listener of this product decides before anybody looks at a request: whether it may come from where it says it comes
//! from ([`decide`]), and which connection makes room for a new one ([`Connections`]). The counterpart of `servo-egress`.
//!
//! Pure: no socket, no clock. Who opens sockets, keeps time and answers is the server, and the adapter that serves workers.

mod authority;
mod connections;
mod guard;
mod sent;

pub use authority::{Authority, Host};
pub use connections::{Arrived, Bounds, Connections, Place};
pub use guard::{Ask, Listener, Pages, Refused, decide};
pub use sent::Sent;
