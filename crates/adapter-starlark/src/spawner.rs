//! Starts children, always from the same thread: the kernel kills a child when the thread that started it ends, and threads
//! of an async runtime come and go.

use std::io;
use std::process::Stdio;
use std::sync::mpsc;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::settings::Settings;

type Request = (Handle, oneshot::Sender<io::Result<Child>>);

/// Its thread ends with it, and with the thread all children.
#[derive(Debug)]
pub(crate) struct Spawner {
    requests: mpsc::Sender<Request>,
}

impl Spawner {
    pub(crate) fn start(settings: &Settings) -> io::Result<Self> {
        let (requests, asked) = mpsc::channel::<Request>();
        let (program, args, env) = (settings.program.clone(), settings.args.clone(), settings.env.clone());
        std::thread::Builder::new().name("starlark-spawner".to_owned()).spawn(move || {
            while let Ok((runtime, answer)) = asked.recv() {
                let _inside = runtime.enter();
                let mut command = Command::new(&program);
                // The server's environment may hold secrets, and a child needs none of it.
                command.args(&args).env_clear().envs(env.iter().cloned()).kill_on_drop(true);
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
                // Nobody may be waiting any more; then the child is killed with the answer.
                drop(answer.send(command.spawn()));
            }
        })?;
        Ok(Self { requests })
    }

    pub(crate) async fn spawn(&self) -> io::Result<Child> {
        let (answer, child) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts children is gone");
        self.requests.send((Handle::current(), answer)).map_err(|_| gone())?;
        child.await.map_err(|_| gone())?
    }
}
