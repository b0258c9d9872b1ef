//! Every case by role, with the ledger rows it proves. The tests of each backend and `CASES` are made from this one
//! list; a case that is missing here is dead code and the compiler says so.

use super::Case;

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_cases {
    ($next:ident ($($args:tt)*)) => {
        $crate::$next! {
            ($($args)*)
            log {
                a_new_run_starts_at_sequence_one proves "ES-001", "ES-004";
            }
        }
    };
}

macro_rules! table {
    (() $($group:ident { $($name:ident $(proves $($ledger:literal),+)?;)* })*) => {
        pub const CASES: &[Case] = &[
            $($(Case {
                name: concat!(stringify!($group), "::", stringify!($name)),
                ledger: &[$($($ledger),+)?],
                run: |ctx| Box::pin(async move { super::$group::$name(&ctx).await }),
            },)*)*
        ];
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_table { ($($list:tt)*) => { table! { $($list)* } } }

__conformance_cases! { __conformance_table () }
