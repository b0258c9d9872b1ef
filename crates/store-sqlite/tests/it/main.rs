//! The SQLite store: the suite that every store passes, and what only a file and its one writer have.

mod backup;
mod conformance;
mod crash;
mod full;
mod group;
mod guards;
mod opening;
mod removal;
mod sabotage;
mod support;
