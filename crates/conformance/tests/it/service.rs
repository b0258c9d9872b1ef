//! How handlers reach the server, and whom it lets in.

use std::sync::Arc;

use servo_sdk::{DurableServiceClient, ServoClient};
use servo_server::auth::Auth;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Service {
    /// The SDK's own client, and a server that asks nobody who he is.
    Own,
    /// The client over AWS's crate, and a server that knows its key and one other.
    #[cfg(feature = "aws")]
    Aws,
}

impl Service {
    pub(crate) fn auth(self) -> Auth {
        match self {
            Self::Own => Auth::Development,
            #[cfg(feature = "aws")]
            Self::Aws => crate::aws::auth(),
        }
    }

    /// What the test's own requests show.
    pub(crate) fn token(self) -> Option<&'static str> {
        match self {
            Self::Own => None,
            #[cfg(feature = "aws")]
            Self::Aws => Some(crate::aws::TOKEN),
        }
    }

    pub(crate) fn client(self, base: &str) -> Arc<dyn DurableServiceClient> {
        match self {
            Self::Own => Arc::new(ServoClient::new(base, None).unwrap()),
            #[cfg(feature = "aws")]
            Self::Aws => Arc::new(crate::aws::client(base)),
        }
    }
}
