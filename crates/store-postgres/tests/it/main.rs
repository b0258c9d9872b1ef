//! The Postgres store against a real server. `SERVO_TEST_POSTGRES_URL` says where; `cargo xtask test` starts one.

#![expect(clippy::unwrap_used, reason = "helpers of tests report by panicking, as tests do")]

mod batch;
mod catalog;
mod certificates;
mod checksums;
mod cluster;
mod conformance;
mod costs;
mod cuts;
mod differential;
mod expected;
mod faults;
mod guards;
mod hints;
mod migrations;
mod outbox;
mod paused;
mod proxy;
mod support;
mod tenants;
mod tls;
mod upgrade;
