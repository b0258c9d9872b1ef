//! The child takes its rights away, before it has seen any source: no files, no sockets, no processes, no new rights, and it
//! dies with its parent. Memory and CPU time are limited by the parent, who knows how much each call may have.

/// What must be set while there is one thread.
#[expect(unsafe_code, reason = "std has no switches of the allocator, and closes only what it opened")]
pub(crate) fn before_threads() {
    // Whoever started the server may have left it files that are open over an exec.
    #[cfg(target_os = "linux")]
    // SAFETY: nothing of this process is open yet but its three pipes.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
    }
    // Each arena would reserve 64 MB of address space, which is what the limit on memory counts.
    #[cfg(target_env = "gnu")]
    // SAFETY: two numbers, before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::lock_down;

#[cfg(not(target_os = "linux"))]
pub(crate) fn lock_down() -> Result<(), String> {
    Err("Starlark runs only on Linux: other systems cannot take a process's rights away".to_owned())
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::limits::Name;
    use crate::worker::seccomp;

    /// Three pipes and two files of the meter, with some room.
    const FILES_MAX: libc::rlim_t = 16;

    pub(crate) fn lock_down() -> Result<(), String> {
        // The working folder could be on a file system that somebody wants to unmount; a child that cannot leave stays.
        drop(std::env::set_current_dir("/"));
        die_with_parent();
        set_limit(libc::RLIMIT_CORE, 0)?;
        set_limit(libc::RLIMIT_FSIZE, 0)?;
        set_limit(libc::RLIMIT_NOFILE, FILES_MAX)?;
        no_new_rights()?;
        seccomp::install()
    }

    #[expect(unsafe_code, reason = "std has no prctl")]
    fn die_with_parent() {
        // SAFETY: numbers only.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        }
    }

    #[expect(unsafe_code, reason = "std has no prctl")]
    fn no_new_rights() -> Result<(), String> {
        // SAFETY: numbers only.
        let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        if done == 0 { Ok(()) } else { Err(format!("no_new_privs: {}", std::io::Error::last_os_error())) }
    }

    #[expect(unsafe_code, reason = "std has no resource limits")]
    fn set_limit(what: Name, value: libc::rlim_t) -> Result<(), String> {
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: the kernel reads a structure that we own.
        let done = unsafe { libc::setrlimit(what, &raw const limit) };
        if done == 0 { Ok(()) } else { Err(format!("setrlimit: {}", std::io::Error::last_os_error())) }
    }
}
