//! Starts workers, always from the same thread. On Linux the kernel kills a worker when the thread that started it ends, so that none
//! outlives a server which was killed itself; and threads of an async runtime come and go.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Request = (Handle, Command, oneshot::Sender<io::Result<Child>>);

/// Its thread begins with the first worker and ends with it; all workers are gone by then.
#[derive(Debug, Default)]
pub(crate) struct Spawner {
    requests: Mutex<Option<mpsc::Sender<Request>>>,
}

impl Spawner {
    pub(super) async fn spawn(&self, mut command: Command) -> io::Result<Child> {
        die_with_parent(&mut command);
        let (answer, child) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts workers is gone");
        self.thread()?.send((Handle::current(), command, answer)).map_err(|_| gone())?;
        child.await.map_err(|_| gone())?
    }

    fn thread(&self) -> io::Result<mpsc::Sender<Request>> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = &*requests {
            return Ok(requests.clone());
        }
        let (send, asked) = mpsc::channel::<Request>();
        std::thread::Builder::new().name("worker-spawner".to_owned()).spawn(move || {
            while let Ok((runtime, mut command, answer)) = asked.recv() {
                let _inside = runtime.enter();
                // Nobody may be waiting any more; then the worker is killed with the answer.
                drop(answer.send(command.spawn()));
            }
        })?;
        Ok(requests.insert(send).clone())
    }
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let ask = move || {
        #[expect(unsafe_code, reason = "std has no prctl")]
        // SAFETY: both take numbers only and may be called between fork and exec.
        let (done, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0), libc::getppid()) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        // The server may have died before the kernel was asked.
        if u32::try_from(now).is_ok_and(|now| now == parent) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    #[expect(unsafe_code, reason = "nothing else runs in a program of others before it begins")]
    // SAFETY: between fork and exec only system calls are made that are allowed there; nothing is allocated.
    unsafe {
        command.pre_exec(ask);
    }
}

/// Elsewhere a worker notices by itself that its server's address is gone.
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}
