//! Tests of the model from outside: published schemas, the fold, the projector's pure part, the runtime contract, and logs
//! of released versions.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a panic is how they report")]

mod arb;
mod artifacts;
mod codes;
mod contract;
mod damage;
mod differential;
mod effects;
mod fold;
mod golden;
mod keys;
mod projection;
mod readers;
mod samples;
mod schemas;
mod snapshot;
mod stored;
mod support;
mod withhold;
