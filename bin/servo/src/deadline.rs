//! The last word of a stop: when its time is over, the process ends, whatever it still waits for. A disk that does not answer, a
//! thread that hangs or a log that nobody reads must not keep a server from ending.
//!
//! On a thread of its own, by the machine's own clock: the tasks that stop in order may be what hangs.

use std::thread::{Builder, park_timeout};
use std::time::{Duration, Instant};

/// A log that takes this long is not waited for.
const WORDS_WITHIN: Duration = Duration::from_millis(50);

/// Ends the process with this code when so much time has passed. What was acknowledged is kept, as after a crash.
pub(crate) fn arm(within: Duration, code: u8) {
    let started = Instant::now();
    let armed = Builder::new().name("servo-deadline".to_owned()).spawn(move || {
        wait_until(started, within);
        let told = Builder::new().spawn(|| tracing::warn!("the time to stop is over: ended at once"));
        if told.is_ok() {
            wait_until(Instant::now(), WORDS_WITHIN);
        }
        std::process::exit(i32::from(code));
    });
    if let Err(error) = armed {
        tracing::warn!(%error, "no thread to end the process in time");
    }
}

fn wait_until(started: Instant, within: Duration) {
    while let Some(left) = within.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) {
        park_timeout(left);
    }
}
