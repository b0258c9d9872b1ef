//! Crashes: at random moments, at named points, and of the authority's holder.

mod campaign;
mod check;
mod executions;
mod kill;
mod once;
mod pause;
mod points;
mod postgres;
mod rolling;
mod takeover;
