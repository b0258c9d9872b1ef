//! What a call used, and the timer that ends it when it used too much CPU.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::protocol::{ChildUsage, FromChild};
use crate::worker::{STACK_MB, last_words};

/// Files that stay open: once the child is locked down it can open none.
///
/// A call asks the system for as little as it can, because many calls take no longer than a few such questions. What a call
/// has taken of memory is looked up only if it met a page that was not there: without one, it had what was there before it.
#[derive(Debug)]
pub(crate) struct Meter {
    status: File,
    clear: Option<File>,
    /// When the last call ended.
    last: Used,
    memory: Memory,
    /// Whether the peak that the system knows says more than the next call can have had.
    resets_peak: bool,
    cpu_ms: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    cpu_us: u64,
    faults: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    resident_kb: u64,
    peak_kb: u64,
    vm_bytes: u64,
}

impl Memory {
    /// By the lines of `/proc/self/status`.
    fn of(status: &str) -> Self {
        let number = |name: &str| number(status, name);
        Self { resident_kb: number("VmRSS:"), peak_kb: number("VmHWM:"), vm_bytes: number("VmSize:") * 1024 }
    }
}

impl Meter {
    pub(crate) fn open() -> io::Result<Self> {
        let status = File::open("/proc/self/status")?;
        // Without it the peak is that of the child's whole life, which is too much rather than too little.
        let clear = OpenOptions::new().write(true).open("/proc/self/clear_refs").ok();
        last_words::prepare(&status);
        Ok(Self { status, clear, last: Used::default(), memory: Memory::default(), resets_peak: true, cpu_ms: 0 })
    }

    /// How large this process is before it has seen a program, and how much of it a program could fill without asking for more.
    /// What it has used until now is nobody's.
    pub(crate) fn ready(&mut self, is_apart: bool) -> FromChild {
        self.last = used();
        let status = self.read();
        self.memory = Memory::of(&status);
        let bytes = |name: &str| number(&status, name) * 1024;
        let store_bytes = bytes("VmData:").saturating_sub(bytes("RssAnon:")).saturating_sub(STACK_MB * 1024 * 1024);
        FromChild::Ready { vm_bytes: bytes("VmSize:"), store_bytes, cpu_us: self.last.cpu_us, is_apart }
    }

    /// Counts from the end of the last call, and ends the process by SIGPROF after `cpu_ms` of CPU time.
    pub(crate) fn start(&mut self, cpu_ms: u64) {
        if let Some(clear) = self.clear.as_ref().filter(|_| self.resets_peak) {
            // 5 resets the peak and nothing else. A failure is told by a peak that is too large.
            drop(clear.write_at(b"5", 0));
        }
        self.cpu_ms = cpu_ms;
        set_timer(cpu_ms);
    }

    pub(crate) fn stop(&mut self) -> ChildUsage {
        let now = used();
        let cpu_us = now.cpu_us.saturating_sub(self.last.cpu_us);
        // The next call sets it anew. What is left must do for sending this answer and reading that call.
        if cpu_us / 500 >= self.cpu_ms {
            set_timer(0);
        }
        // Where nobody counts faults, none says nothing.
        if now.faults == self.last.faults && now.faults > 0 {
            self.memory.peak_kb = self.memory.resident_kb;
        } else {
            self.memory = Memory::of(&self.read());
            let megabytes = |kb: u64| kb.div_ceil(1_024);
            self.resets_peak = megabytes(self.memory.peak_kb) > megabytes(self.memory.resident_kb);
        }
        self.last = now;
        let Memory { peak_kb, vm_bytes, .. } = self.memory;
        ChildUsage { cpu_us, cpu_total_us: now.cpu_us, peak_kb, vm_bytes }
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

pub(crate) fn cpu_us() -> u64 {
    used().cpu_us
}

/// Of the process since it began.
#[expect(unsafe_code, reason = "std has neither process times nor timers")]
fn used() -> Used {
    // SAFETY: the kernel fills a structure that we own; all of its bytes may be zero.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    let faults = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
    Used {
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        faults: faults(usage.ru_minflt) + faults(usage.ru_majflt),
    }
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
