//! Servers that count, and names that lead where a test wants.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use servo_egress::Allowed;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Answers every connection, and counts them.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a test's own server, which ends with it")]
    pub(crate) async fn start(at: SocketAddr) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                drop(stream.read(&mut [0; 4096]).await);
                drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await);
            }
        });
        Self { address, accepted, task }
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

/// Answers each look-up with the next list; the last one stays.
pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub(crate) asked: AtomicUsize,
}

impl Scripted {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let list = |list: &&[&str]| list.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self { answers: Mutex::new(answers.iter().map(list).collect()), asked: AtomicUsize::new(0) })
    }
}

impl Resolve for Scripted {
    fn resolve(&self, _name: Name) -> Resolving {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        let addresses: Addrs = Box::new(answer.unwrap().into_iter().map(|ip| SocketAddr::new(ip, 0)));
        Box::pin(async move { Ok(addresses) })
    }
}

/// What stands for the public internet in tests: nothing outside of this machine is called.
pub(crate) fn outside() -> Allowed {
    Allowed { nets: vec!["127.0.0.2".parse().unwrap()], ..Allowed::default() }
}
