//! Whether this node may still act for the work that it was given. A process that was paused, or cut off from the store,
//! finds out here before it makes another call outside: by then the work may be another node's.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

/// Who knows whether work is still this node's.
#[async_trait]
pub trait Claim: Send + Sync {
    /// By what this node knows, without asking anybody.
    fn standing(&self) -> Standing;

    /// Ready once it is not in doubt: whether the work is still this node's.
    async fn settled(&self) -> bool;
}

/// How work stands with the node that was given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has been this node's ever since.
    Held,
    /// The node's lease is over by its own clock, and nobody else is known to have the work.
    InDoubt,
    /// Another node has the work, or has had it.
    PassedOn,
}

/// Goes with a piece of work to whoever makes calls outside for it.
#[derive(Clone, Default)]
pub struct Right(Option<Arc<dyn Claim>>);

impl Right {
    pub fn new(claim: Arc<dyn Claim>) -> Self {
        Self(Some(claim))
    }

    /// Of work that nobody can take over.
    pub fn unlimited() -> Self {
        Self(None)
    }

    pub fn standing(&self) -> Standing {
        self.0.as_ref().map_or(Standing::Held, |claim| claim.standing())
    }

    pub fn is_held(&self) -> bool {
        self.standing() == Standing::Held
    }

    /// To be asked right before a call outside, which is made only if this is true. Waits while the work is in doubt: a node
    /// whose database was away goes on, and one that was replaced does not.
    pub async fn holds(&self) -> bool {
        match &self.0 {
            Some(claim) if claim.standing() != Standing::Held => claim.settled().await,
            _ => true,
        }
    }
}

impl fmt::Debug for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Right({:?})", self.standing())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    struct Fixed(Standing);

    #[async_trait]
    impl Claim for Fixed {
        fn standing(&self) -> Standing {
            self.0
        }

        async fn settled(&self) -> bool {
            match self.0 {
                Standing::Held => true,
                Standing::PassedOn => false,
                Standing::InDoubt => std::future::pending().await,
            }
        }
    }

    #[test]
    fn a_call_is_made_only_for_work_that_is_held() {
        let holds = |right: Right| right.holds().now_or_never();
        assert_eq!(holds(Right::unlimited()), Some(true));
        assert_eq!(holds(Right::new(Arc::new(Fixed(Standing::Held)))), Some(true));
        assert_eq!(holds(Right::new(Arc::new(Fixed(Standing::PassedOn)))), Some(false));
        assert_eq!(holds(Right::new(Arc::new(Fixed(Standing::InDoubt)))), None, "nobody knows yet");
    }
}
