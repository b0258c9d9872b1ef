//! Runs the parts of a check one after another, prints name and seconds of each, and remembers what failed.
//!
//! A failed part does not stop the rest: one run tells everything that is wrong.

use std::time::Instant;

use anyhow::{Result, bail};

#[derive(Default)]
pub(crate) struct Phases {
    done: Vec<Phase>,
}

struct Phase {
    name: &'static str,
    seconds: f64,
    ok: bool,
}

impl Phases {
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        println!("== {name}");
        let started = Instant::now();
        let outcome = work();
        let seconds = started.elapsed().as_secs_f64();
        let ok = outcome.is_ok();
        match &outcome {
            Ok(_) => println!("== {name}: ok, {seconds:.1} s"),
            Err(error) => println!("== {name}: FAILED, {seconds:.1} s: {error:#}"),
        }
        self.done.push(Phase { name, seconds, ok });
        outcome.ok()
    }

    /// Prints the table of all phases; an error if any failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("== summary");
        for phase in &self.done {
            let verdict = if phase.ok { "ok" } else { "FAILED" };
            println!("{:<12} {:>7.1} s  {verdict}", phase.name, phase.seconds);
        }
        let failed: Vec<&str> = self.done.iter().filter(|phase| !phase.ok).map(|phase| phase.name).collect();
        if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_phase_lets_the_others_run_and_fails_the_whole() {
        let mut phases = Phases::default();
        assert_eq!(phases.run("one", || bail!("broken") as Result<()>), None);
        assert_eq!(phases.run("two", || Ok(2)), Some(2));
        assert_eq!(phases.finish().unwrap_err().to_string(), "failed: one");
    }
}
