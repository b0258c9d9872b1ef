//! Appending and reading events.

use super::Context;
use crate::testkit::fixtures::{run_id, start_append, tenant};

pub(super) async fn a_new_run_starts_at_sequence_one(ctx: &Context) {
    let (run, acme) = (run_id("inv_1"), tenant("acme"));
    let appended = ctx.store.append(start_append(&run, &acme)).await.unwrap();
    assert_eq!(appended.epoch, None);
    let outcome = &appended.streams[0].events[0];
    assert_eq!((outcome.run_seq, outcome.inserted), (1, true));
    assert_eq!(outcome.emitted_at, ctx.clock.now());
    assert_eq!(ctx.sequences(&run).await, [1]);
}
