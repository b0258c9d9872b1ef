//! Crashes while executions run: kill -9 at random moments and at the worst ones, and an abort at the appends of one execution.
//! Their handlers live in this process, so they outlive the server and go on as workers do whose server is gone.

mod api;
mod check;
mod ledger;
mod moments;
mod points;
mod random;
mod worker;
