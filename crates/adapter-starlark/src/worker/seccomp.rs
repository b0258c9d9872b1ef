//! The system calls that are left to a child: memory, its pipes, its own time and its own end. All others are refused, so
//! that there is no way to a socket, a file or another process, also for somebody who got hold of the interpreter.

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_close,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_setitimer,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Where the kernel puts the number of the call and the architecture.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
/// Numbers from here on are the same calls under another name (x32).
const OTHER_NAMES_FROM: u32 = 0x4000_0000;

const fn statement(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

/// Skips one instruction unless the value fits.
const fn unless(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 1, k }
}

fn program() -> Vec<libc::sock_filter> {
    let refuse = statement(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs());
    let kill = statement(RETURN, libc::SECCOMP_RET_KILL_PROCESS);
    let mut program = vec![
        statement(LOAD, ARCHITECTURE_AT),
        libc::sock_filter { code: JUMP_IF_EQUAL, jt: 1, jf: 0, k: ARCHITECTURE },
        kill,
        statement(LOAD, NUMBER_AT),
        unless(JUMP_IF_AT_LEAST, OTHER_NAMES_FROM),
        kill,
    ];
    for call in ALLOWED {
        program.push(unless(JUMP_IF_EQUAL, u32::try_from(*call).unwrap_or(u32::MAX)));
        program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    }
    program.push(refuse);
    program
}

/// For all threads of the process, for ever.
#[expect(unsafe_code, reason = "std has no seccomp")]
pub(crate) fn install() -> Result<(), String> {
    let mut program = program();
    let length = u16::try_from(program.len()).map_err(|_| "the filter is too long".to_owned())?;
    let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies a program that lives until the call returns.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const filter,
        )
    };
    if done == 0 { Ok(()) } else { Err(format!("seccomp: {}", std::io::Error::last_os_error())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel would.
    fn verdict(architecture: u32, number: u32) -> u32 {
        let program = program();
        let (mut at, mut value) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let holds = match code {
                LOAD => {
                    value = if k == NUMBER_AT { number } else { architecture };
                    continue;
                }
                RETURN => return k,
                JUMP_IF_EQUAL => value == k,
                JUMP_IF_AT_LEAST => value >= k,
                other => panic!("no instruction {other}"),
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    fn of(call: libc::c_long) -> u32 {
        verdict(ARCHITECTURE, u32::try_from(call).unwrap())
    }

    /// S9: no way to a socket, a file, another process, or more rights.
    #[test]
    fn only_what_is_allowed_is_allowed() {
        for call in ALLOWED {
            assert_eq!(of(*call), libc::SECCOMP_RET_ALLOW);
        }
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
        for call in [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_sendto,
            libc::SYS_openat,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_ptrace,
            libc::SYS_process_vm_writev,
            libc::SYS_kill,
            libc::SYS_prlimit64,
            libc::SYS_setrlimit,
            libc::SYS_prctl,
            libc::SYS_unshare,
            libc::SYS_mount,
            libc::SYS_bpf,
            libc::SYS_io_uring_setup,
            libc::SYS_memfd_create,
            libc::SYS_unlinkat,
        ] {
            assert_eq!(of(call), refused, "{call}");
        }
        assert_eq!(verdict(ARCHITECTURE ^ 1, 0), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(verdict(ARCHITECTURE, OTHER_NAMES_FROM), libc::SECCOMP_RET_KILL_PROCESS);
    }
}
