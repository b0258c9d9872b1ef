//! Limits that this process sets on its children while they run.

use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    /// Bytes of address space.
    Memory,
    CpuSeconds,
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Resource, io};

    /// How the system's library spells the name of a limit.
    #[cfg(target_env = "gnu")]
    pub(crate) type Name = libc::__rlimit_resource_t;
    #[cfg(not(target_env = "gnu"))]
    pub(crate) type Name = libc::c_int;

    fn name(resource: Resource) -> Name {
        match resource {
            Resource::Memory => libc::RLIMIT_AS,
            Resource::CpuSeconds => libc::RLIMIT_CPU,
        }
    }

    /// The most that this process may set: what it was given itself.
    #[expect(unsafe_code, reason = "std has no limits of other processes")]
    pub(crate) fn hard(pid: libc::pid_t, resource: Resource) -> io::Result<u64> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel fills a structure that we own.
        let done = unsafe { libc::prlimit(pid, name(resource), std::ptr::null(), &raw mut limit) };
        if done == 0 { Ok(limit.rlim_max) } else { Err(io::Error::last_os_error()) }
    }

    /// Only the soft limit: the next call may have another one. The child cannot raise it, since it may not call setrlimit.
    #[expect(unsafe_code, reason = "std has no limits of other processes")]
    pub(crate) fn set(pid: libc::pid_t, resource: Resource, value: u64, max: u64) -> io::Result<()> {
        let limit = libc::rlimit { rlim_cur: value.min(max), rlim_max: max };
        // SAFETY: the kernel reads a structure that we own.
        let done = unsafe { libc::prlimit(pid, name(resource), &raw const limit, std::ptr::null_mut()) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{Name, hard, set};

/// Without limits there are no children; a child says so before it takes any source.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hard(_pid: libc::pid_t, _resource: Resource) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn set(_pid: libc::pid_t, _resource: Resource, _value: u64, _max: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
