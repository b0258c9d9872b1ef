//! The operating system's signals: two end a server, and a third means something else to a server than to `servo dev`.
//!
//! SIGHUP is what log rotation sends to a server, which opens its log file again and works on, file or none. To a program that a
//! person started in a terminal it says that the terminal is gone: `servo dev` then stops as after Ctrl-C, unless whoever started it
//! chose that it outlives the terminal (`nohup`).

use servo_cli::{Failure, exit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::log;

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
    /// Whether the end of the terminal is the end of the program.
    ends_with_terminal: bool,
}

impl Signals {
    pub(crate) fn new(dev: bool) -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| Failure::new(exit::ERROR, format!("signals: {error}")));
        let hangup = if dev && is_ignored(SignalKind::hangup()) { None } else { Some(listen(SignalKind::hangup())?) };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup,
            ends_with_terminal: dev,
        })
    }

    /// The exit code that the next signal asks for which ends the program.
    pub(crate) async fn first(&mut self) -> u8 {
        loop {
            let hangup = async {
                match &mut self.hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.interrupt.recv() => return exit::INTERRUPTED,
                _ = self.terminate.recv() => return exit::OK,
                _ = hangup => {}
            }
            if self.ends_with_terminal {
                return exit::OK;
            }
            log::reopen();
            tracing::info!("SIGHUP: the log file was opened again, if there is one");
        }
    }
}

/// Whether whoever started this program wants it not to have the signal. Only Linux says so.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (ignored >> (kind.as_raw_value() - 1)) & 1 == 1
}
