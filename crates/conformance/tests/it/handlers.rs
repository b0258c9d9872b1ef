//! Handlers of the cases, each written from the prose of its case, grouped by suite.

/// Ids of cases with their handlers; those that end their process come after the semicolon.
macro_rules! cases {
    ($($id:literal => $body:ident,)* $(; $($crashing_id:literal => $crashing:ident,)*)?) => {
        pub(crate) const CASES: &[(&str, crate::worker::Body)] = &[
            $(($id, |event, ctx, _| Box::pin($body(event, ctx))),)*
            $($(($crashing_id, |event, ctx, crash| Box::pin($crashing(event, ctx, crash))),)*)?
        ];
    };
}

pub(crate) mod callback;
pub(crate) mod child;
mod common;
pub(crate) mod invoke;
pub(crate) mod map;
pub(crate) mod parallel;
pub(crate) mod step;
pub(crate) mod wait;
pub(crate) mod wait_for_callback;
pub(crate) mod wait_for_condition;

pub(crate) use invoke::TARGETS;
