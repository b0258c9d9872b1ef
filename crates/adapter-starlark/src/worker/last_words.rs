//! What a child has used when a limit ends it. Nobody can ask a process that is gone, so it says so itself, on its standard error,
//! in the moment of the signal. What is called here is safe in a handler of signals: system calls and nothing else.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use super::meter::cpu_us;

/// In front of the CPU time of the child's whole life, in microseconds. The lines of `/proc/self/status` follow.
pub(crate) const CPU_US: &str = "servo.cpu_us: ";
/// What limits end a child with. A fault comes by way of std's own handler, which knows an overflow of the stack.
const SIGNALS: [libc::c_int; 7] =
    [libc::SIGPROF, libc::SIGXCPU, libc::SIGABRT, libc::SIGTRAP, libc::SIGILL, libc::SIGSEGV, libc::SIGBUS];
const STATUS_BYTES_MAX: usize = 2_048;
const DIGITS_MAX: usize = 20;

static STATUS: AtomicI32 = AtomicI32::new(-1);
static SAID: AtomicBool = AtomicBool::new(false);
/// The handlers before ours, each by the place of its signal.
static mut EARLIER: [Option<libc::sigaction>; SIGNALS.len()] = [None; SIGNALS.len()];

/// From here on. `status` stays open for the life of the process.
#[expect(unsafe_code, reason = "std has no handlers of signals")]
pub(crate) fn prepare(status: &File) {
    STATUS.store(status.as_raw_fd(), Ordering::Relaxed);
    for (place, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: both structures are ours, all of their bytes may be zero, and no handler runs before it is set.
        unsafe {
            let mut ours: libc::sigaction = std::mem::zeroed();
            let mut earlier: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = say as extern "C" fn(libc::c_int) as *const () as usize;
            // On the thread's other stack: the usual one may be the one that is full.
            ours.sa_flags = libc::SA_ONSTACK;
            if libc::sigaction(signal, &raw const ours, &raw mut earlier) == 0 {
                EARLIER[place] = Some(earlier);
            }
        }
    }
}

#[expect(unsafe_code, reason = "a handler of signals makes system calls and nothing else")]
extern "C" fn say(signal: libc::c_int) {
    // The first reason counts.
    if !SAID.swap(true, Ordering::Relaxed) {
        say_usage();
    }
    let Some(place) = SIGNALS.iter().position(|known| *known == signal) else { return };
    // SAFETY: written before any handler ran, and only read since; the kernel copies it.
    unsafe {
        if let Some(earlier) = (&raw const EARLIER[place]).as_ref().and_then(Option::as_ref) {
            libc::sigaction(signal, earlier, std::ptr::null_mut());
        }
        // A fault happens again by itself, with all that std's handler wants to know about it.
        if signal != libc::SIGSEGV && signal != libc::SIGBUS {
            libc::raise(signal);
        }
    }
}

#[expect(unsafe_code, reason = "a handler of signals makes system calls and nothing else")]
fn say_usage() {
    let mut digits = [b'0'; DIGITS_MAX];
    let mut rest = cpu_us();
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    let mut status = [0_u8; STATUS_BYTES_MAX];
    // SAFETY: buffers of our own with their lengths. What cannot be said is not said.
    unsafe {
        let read = libc::pread(STATUS.load(Ordering::Relaxed), status.as_mut_ptr().cast(), STATUS_BYTES_MAX, 0);
        let read = usize::try_from(read).unwrap_or(0);
        for text in [b"\n", CPU_US.as_bytes(), &digits[..], b"\n", &status[..read.min(STATUS_BYTES_MAX)]] {
            libc::write(2, text.as_ptr().cast(), text.len());
        }
    }
}
