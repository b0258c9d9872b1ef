//! The child takes its rights away, before it has seen any source: no capabilities, no files, no sockets, no processes, no new
//! rights, and it dies with its parent. Where the kernel lets it, it also leaves the server's network and user namespace. Memory and CPU time are limited by the parent, who knows how much each call may have.

/// What must be set while there is one thread. Says whether the child has namespaces of its own, or what is wrong.
#[expect(unsafe_code, reason = "std has no switches of the allocator, and closes only what it opened")]
pub(crate) fn before_threads() -> Result<bool, String> {
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
    #[cfg(target_os = "linux")]
    return linux::give_up_rights();
    #[cfg(not(target_os = "linux"))]
    Ok(false)
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

    /// Version 3: two words of 32 capabilities each.
    const CAPABILITY_VERSION: u32 = 0x2008_0522;
    /// Beyond what any kernel has.
    const CAPABILITIES: libc::c_ulong = 64;
    /// Root has no capabilities for being root, changing the user brings none, none is kept or inherited; and all of that for ever.
    const SECURE_BITS: libc::c_ulong = 0b1110_1111;

    #[repr(C)]
    struct CapabilityHeader {
        version: u32,
        pid: libc::c_int,
    }

    #[repr(C)]
    #[derive(Default)]
    struct CapabilityWord {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }

    /// Capabilities belong to threads, and what a thread starts has those of it.
    pub(super) fn give_up_rights() -> Result<bool, String> {
        // First: who leaves for a new user namespace has all capabilities there.
        let is_apart = leave_namespaces();
        drop_capabilities()?;
        Ok(is_apart)
    }

    /// A second wall, and not the one that holds: many kernels and containers refuse it to whoever is not root.
    #[expect(unsafe_code, reason = "std has no namespaces")]
    fn leave_namespaces() -> bool {
        let all = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        // SAFETY: numbers only.
        unsafe { libc::unshare(all) == 0 }
    }

    #[expect(unsafe_code, reason = "std has no capabilities")]
    fn drop_capabilities() -> Result<(), String> {
        let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
        let none: [CapabilityWord; 2] = Default::default();
        // SAFETY: numbers, and two structures that we own, as the kernel has laid them out. What may be refused is refused to who has
        // no capabilities to lose.
        let done = unsafe {
            libc::prctl(libc::PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0);
            for capability in 0..CAPABILITIES {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
            libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr())
        };
        if done == 0 { Ok(()) } else { Err(format!("capset: {}", std::io::Error::last_os_error())) }
    }

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
