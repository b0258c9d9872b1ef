//! A store whose size is limited writes through to the database, past the redo file. Everything else about it is the same.

use crate::conformance::Sqlite;
use crate::support::runtime;

/// Far more than any case writes.
const PAGES_MAX: u32 = 100_000;

fn limited() -> Sqlite {
    Sqlite::new(Some(PAGES_MAX))
}

servo_store::conformance_tests!(limited(), |task| runtime().block_on(task));

#[test]
fn differential() {
    runtime().block_on(servo_store::testkit::differential::check(limited));
}
