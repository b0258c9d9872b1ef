//! What a call used, and the timer that ends it when it used too much CPU.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::protocol::{ChildUsage, FromChild};
use crate::worker::{STACK_MB, last_words};

/// Files that stay open: once the child is locked down it can open none.
#[derive(Debug)]
pub(crate) struct Meter {
    status: File,
    clear: Option<File>,
    cpu_before: u64,
}

impl Meter {
    pub(crate) fn open() -> io::Result<Self> {
        let status = File::open("/proc/self/status")?;
        // Without it the peak is that of the child's whole life, which is too much rather than too little.
        let clear = OpenOptions::new().write(true).open("/proc/self/clear_refs").ok();
        last_words::prepare(&status);
        Ok(Self { status, clear, cpu_before: 0 })
    }

    /// How large this process is before it has seen a program, and how much of it a program could fill without asking for more.
    pub(crate) fn ready(&self) -> FromChild {
        let status = self.read();
        let bytes = |name: &str| number(&status, name) * 1024;
        let store_bytes = bytes("VmData:").saturating_sub(bytes("RssAnon:")).saturating_sub(STACK_MB * 1024 * 1024);
        FromChild::Ready { vm_bytes: bytes("VmSize:"), store_bytes }
    }

    /// Counts from here, and ends the process by SIGPROF after `cpu_ms` of CPU time.
    pub(crate) fn start(&mut self, cpu_ms: u64) {
        if let Some(clear) = &self.clear {
            // 5 resets the peak and nothing else. A failure is told by a peak that is too large.
            drop(clear.write_at(b"5", 0));
        }
        self.cpu_before = cpu_us();
        set_timer(cpu_ms);
    }

    pub(crate) fn stop(&self) -> ChildUsage {
        set_timer(0);
        let cpu_total_us = cpu_us();
        let status = self.read();
        ChildUsage {
            cpu_us: cpu_total_us.saturating_sub(self.cpu_before),
            cpu_total_us,
            peak_kb: number(&status, "VmHWM:"),
            vm_bytes: number(&status, "VmSize:") * 1024,
        }
    }

    fn read(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.status.read_at(&mut buffer, 0).unwrap_or(0);
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

/// A line of the status in kB, or 0.
fn number(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[expect(unsafe_code, reason = "std has neither process times nor timers")]
pub(crate) fn cpu_us() -> u64 {
    // SAFETY: the kernel fills a structure that we own; all of its bytes may be zero.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    micros(usage.ru_utime) + micros(usage.ru_stime)
}

/// Zero stops it.
#[expect(unsafe_code, reason = "std has neither process times nor timers")]
fn set_timer(cpu_ms: u64) {
    let seconds = libc::time_t::try_from(cpu_ms / 1_000).unwrap_or(libc::time_t::MAX);
    let micros = libc::suseconds_t::try_from(cpu_ms % 1_000 * 1_000).unwrap_or(0);
    let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: zero, it_value: libc::timeval { tv_sec: seconds, tv_usec: micros } };
    // SAFETY: the kernel reads a structure that we own.
    unsafe {
        libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut());
    }
}
