//! The operations of a context, one file for each kind.

mod branches;
mod callback;
mod child;
mod combinators;
mod condition;
mod invoke;
mod map;
mod parallel;
mod saga;
mod step;
mod wait;

pub use callback::Callback;
pub use condition::WaitForConditionContext;
pub use parallel::{Branch, branch};
pub use saga::{Saga, SagaStep};
pub use step::StepContext;
