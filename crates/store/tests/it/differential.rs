//! The differential test on the model itself, and the proof that it finds a store that differs.

use crate::Memory;
use crate::block_on::block_on;

#[test]
fn differential() {
    block_on(servo_store::testkit::differential::check(|| Memory));
}
