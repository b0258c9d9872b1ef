//! Tests of the machine from outside: tables of given, command and answer, and a random search for illegal states.

// How a case is written down and played.
mod check;
mod op;
mod text;
mod world;

// Tables, a file per topic.
mod attempts;
mod dependencies;
mod ending;
mod execution;
mod foreign;
mod limits;
mod matrix;
mod pause;
mod retries;
mod rounds;
mod signals;
mod skip;
mod start;
mod steps;

// The random search and the proof that it would notice.
mod controls;
mod random;
