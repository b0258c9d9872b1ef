//! Signals to the process group of a worker.

use tokio::process::Child;

#[derive(Debug, Clone, Copy)]
pub(super) enum Signal {
    Terminate,
    Kill,
}

/// Does nothing for a child that has been waited for: its number may belong to somebody else by now.
pub(super) fn send(child: &Child, signal: Signal) {
    let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()) else { return };
    let number = match signal {
        Signal::Terminate => libc::SIGTERM,
        Signal::Kill => libc::SIGKILL,
    };
    #[expect(unsafe_code, reason = "std has no signals to groups; kill takes two numbers and touches no memory")]
    // SAFETY: the child was made the leader of its group and has not been waited for, so the number is still its own.
    let sent = unsafe { libc::kill(-group, number) };
    if sent != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), ?signal, "signal to a worker not sent");
    }
}
