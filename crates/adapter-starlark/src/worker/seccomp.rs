//! The system calls that are left to a child: memory, its pipes, its own time, signals to itself and its own end. All others are refused, so
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
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Allowed if its first argument is the process itself: an abort is a signal to oneself. It is the only one of the calls that are
/// left whose arguments can name another process. What else can is refused as a whole: `kill`, `tkill`, `rt_sigqueueinfo`,
/// `rt_tgsigqueueinfo`, `pidfd_open`, `pidfd_send_signal`, `prlimit64`, `ptrace`, `process_vm_readv`, `process_madvise`, `kcmp`,
/// `sched_setaffinity`, `setpriority`, `setpgid` and `get_robust_list`.
const OWN_ALONE: libc::c_long = libc::SYS_tgkill;

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Where the kernel puts the number of the call and the architecture.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
/// The lower half of the first argument; both architectures have it first. A process id has no more.
const FIRST_ARGUMENT_AT: u32 = 16;
/// Numbers from here on are the same calls under another name (x32).
const OTHER_NAMES_FROM: u32 = 0x4000_0000;

const fn statement(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

/// Skips one instruction unless the value fits.
const fn unless(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 1, k }
}

/// `own` is the process that it is for.
fn program(own: u32) -> Vec<libc::sock_filter> {
    let allow = statement(RETURN, libc::SECCOMP_RET_ALLOW);
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
        program.push(allow);
    }
    program.push(unless(JUMP_IF_EQUAL, u32::try_from(OWN_ALONE).unwrap_or(u32::MAX)));
    // To the look at its argument, over the refusal of all that is left.
    program.push(libc::sock_filter { code: JUMP_IF_EQUAL, jt: 1, jf: 1, k: 0 });
    program.push(refuse);
    program.extend([statement(LOAD, FIRST_ARGUMENT_AT), unless(JUMP_IF_EQUAL, own), allow, refuse]);
    program
}

/// For all threads of the process, for ever.
#[expect(unsafe_code, reason = "std has no seccomp")]
pub(crate) fn install() -> Result<(), String> {
    let mut program = program(std::process::id());
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

    const OWN: u32 = 4_711;
    const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();

    /// Runs the filter as the kernel would.
    fn verdict(architecture: u32, number: u32, first_argument: u32) -> u32 {
        let program = program(OWN);
        let (mut at, mut value) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let holds = match code {
                LOAD => {
                    value = match k {
                        NUMBER_AT => number,
                        ARCHITECTURE_AT => architecture,
                        FIRST_ARGUMENT_AT => first_argument,
                        other => panic!("nothing is at {other}"),
                    };
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
        verdict(ARCHITECTURE, u32::try_from(call).unwrap(), 0)
    }

    /// S9: no way to a socket, a file, another process, or more rights.
    #[test]
    fn only_what_is_allowed_is_allowed() {
        for call in ALLOWED {
            assert_eq!(of(*call), libc::SECCOMP_RET_ALLOW);
        }
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
            libc::SYS_tkill,
            libc::SYS_tgkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_getfd,
            libc::SYS_pidfd_send_signal,
            libc::SYS_process_vm_readv,
            libc::SYS_process_madvise,
            libc::SYS_kcmp,
            libc::SYS_get_robust_list,
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setscheduler,
            libc::SYS_setpriority,
            libc::SYS_setpgid,
            libc::SYS_capset,
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
            assert_eq!(of(call), REFUSED, "{call}");
        }
        assert_eq!(verdict(ARCHITECTURE ^ 1, 0, OWN), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(verdict(ARCHITECTURE, OTHER_NAMES_FROM, OWN), libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn only_the_process_itself_is_signalled() {
        let signal = |process| verdict(ARCHITECTURE, u32::try_from(OWN_ALONE).unwrap(), process);
        assert_eq!(signal(OWN), libc::SECCOMP_RET_ALLOW);
        // The server, a sibling, process groups and everybody.
        for other in [OWN - 1, OWN + 1, 1, 0, u32::MAX, OWN.wrapping_neg()] {
            assert_eq!(signal(other), REFUSED, "{other}");
        }
    }

    /// The same of the kernel: a process with the filter tries to reach the one that has started it. Signal 0 only asks whether it
    /// may.
    #[test]
    #[expect(unsafe_code, reason = "std neither forks nor signals")]
    fn the_kernel_refuses_a_signal_to_another_process() {
        let server = libc::pid_t::try_from(std::process::id()).unwrap();
        let ask = |process: libc::pid_t| {
            // SAFETY: numbers only.
            unsafe { libc::syscall(libc::SYS_tgkill, process, process, 0) == 0 }
        };
        // SAFETY: the new process calls nothing that needs another thread of this one, and ends without returning.
        let (child, status) = unsafe {
            let child = libc::fork();
            if child == 0 {
                let may_before = ask(server);
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                let own = libc::getpid();
                let held = install().is_ok() && may_before && !ask(server) && libc::kill(server, 0) != 0 && ask(own);
                libc::_exit(i32::from(!held));
            }
            let mut status = -1;
            libc::waitpid(child, &raw mut status, 0);
            (child, status)
        };
        assert!(child > 0 && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    }
}
