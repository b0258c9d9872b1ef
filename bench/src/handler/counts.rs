//! What a handler counts while it is measured, and the lines by which it is asked. One file for the handlers of all
//! subjects, so that they do the same work and are judged alike; it knows no subject.
//!
//! Commands come as lines on standard input, each answered with one line: `hold` and `go` close and open the gate before
//! the first step, `reset` forgets everything, `counts` tells. The end of the input ends the program, so a handler never
//! outlives who started it.

use std::io::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64};

use tokio::sync::Notify;

/// Executions that are told apart, by number from 1; number 0 is only counted.
pub(crate) const NUMBERS: usize = 1 << 16;
/// Bytes of a step's result.
pub(crate) const RESULT_BYTES: usize = 100;

pub(crate) static COUNTS: Counts = Counts {
    begun: AtomicU64::new(0),
    ended: AtomicU64::new(0),
    finished: AtomicU64::new(0),
    steps: AtomicU64::new(0),
    repeated: AtomicU64::new(0),
    unrecorded: AtomicU64::new(0),
    ran: [const { AtomicU16::new(0) }; NUMBERS],
    recorded: [const { AtomicU16::new(0) }; NUMBERS],
    ends: [const { AtomicU16::new(0) }; NUMBERS],
    held: AtomicBool::new(false),
    gate: Notify::const_new(),
};

pub(crate) struct Counts {
    /// Handlers that were entered, and left with a result.
    begun: AtomicU64,
    ended: AtomicU64,
    /// Numbers that ended at least once.
    finished: AtomicU64,
    /// Bodies of steps that ran.
    steps: AtomicU64,
    /// Bodies that ran although the handler had been told that their result is recorded: must stay 0.
    repeated: AtomicU64,
    /// Bodies that ran again because their result had not been recorded: allowed after a crash.
    unrecorded: AtomicU64,
    /// One bit per step.
    ran: [AtomicU16; NUMBERS],
    recorded: [AtomicU16; NUMBERS],
    ends: [AtomicU16; NUMBERS],
    held: AtomicBool,
    gate: Notify,
}

impl Counts {
    /// A handler was entered. Waits while the gate is closed.
    pub(crate) async fn begin(&self) {
        self.begun.fetch_add(1, Relaxed);
        loop {
            let opened = self.gate.notified();
            if !self.held.load(Relaxed) {
                return;
            }
            opened.await;
        }
    }

    /// The body of a step.
    pub(crate) fn step(&self, number: usize, step: u16) -> String {
        self.steps.fetch_add(1, Relaxed);
        if let (Some(ran), Some(recorded)) = (bits(&self.ran, number), bits(&self.recorded, number)) {
            let bit = 1 << (step % 16);
            let before = ran.fetch_or(bit, Relaxed) & bit != 0;
            let known = recorded.load(Relaxed) & bit != 0;
            self.repeated.fetch_add(known.into(), Relaxed);
            self.unrecorded.fetch_add((before && !known).into(), Relaxed);
        }
        "x".repeat(RESULT_BYTES)
    }

    /// The subject said that the step's result is recorded.
    pub(crate) fn recorded(&self, number: usize, step: u16) {
        if let Some(recorded) = bits(&self.recorded, number) {
            recorded.fetch_or(1 << (step % 16), Relaxed);
        }
    }

    pub(crate) fn end(&self, number: usize) {
        self.ended.fetch_add(1, Relaxed);
        if bits(&self.ends, number).is_some_and(|ends| ends.fetch_add(1, Relaxed) == 0) {
            self.finished.fetch_add(1, Relaxed);
        }
    }

    fn reset(&self) {
        let totals = [&self.begun, &self.ended, &self.finished, &self.steps, &self.repeated, &self.unrecorded];
        totals.iter().for_each(|total| total.store(0, Relaxed));
        let each = self.ran.iter().chain(&self.recorded).chain(&self.ends);
        each.for_each(|bits| bits.store(0, Relaxed));
    }

    fn line(&self) -> String {
        let [begun, ended, finished, steps, repeated, unrecorded] =
            [&self.begun, &self.ended, &self.finished, &self.steps, &self.repeated, &self.unrecorded]
                .map(|total| total.load(Relaxed));
        format!(
            r#"{{"begun":{begun},"ended":{ended},"finished":{finished},"steps":{steps},"repeated":{repeated},"unrecorded":{unrecorded}}}"#
        )
    }

    fn answer(&self, command: &str) -> String {
        match command {
            "hold" => self.held.store(true, Relaxed),
            "go" => {
                self.held.store(false, Relaxed);
                self.gate.notify_waiters();
            }
            "reset" => self.reset(),
            "counts" => return self.line(),
            other => return format!(r#"{{"unknown":{other:?}}}"#),
        }
        "{}".to_owned()
    }
}

fn bits(all: &[AtomicU16; NUMBERS], number: usize) -> Option<&AtomicU16> {
    all.get(number).filter(|_| number > 0)
}

/// Says where the handler listens and answers commands until the input ends; blocks its thread.
pub(crate) fn follow(address: &str) {
    let mut out = std::io::stdout();
    let mut say = |line: &str| writeln!(out, "{line}").and_then(|()| out.flush()).is_ok();
    let mut goes_on = say(&format!(r#"{{"address":{address:?}}}"#));
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { return };
        goes_on = goes_on && say(&COUNTS.answer(line.trim()));
        if !goes_on {
            return;
        }
    }
}
