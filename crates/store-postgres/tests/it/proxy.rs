//! A TCP proxy in front of the server that cuts connections after so many bytes, in either direction, or holds back what
//! the server says.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

use crate::support::{base_url, spawn};

/// More than any test sends.
const UNLIMITED: i64 = i64::MAX / 2;

/// What may still pass, for all connections together.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    limits: Arc<Limits>,
}

#[derive(Debug)]
struct Limits {
    /// To the server.
    up: AtomicI64,
    /// To the client.
    down: AtomicI64,
    cut: Notify,
    /// Nothing passes to the client.
    is_held: watch::Sender<bool>,
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Arc::new(Limits {
            up: AtomicI64::new(UNLIMITED),
            down: AtomicI64::new(UNLIMITED),
            cut: Notify::new(),
            is_held: watch::Sender::new(false),
        });
        let base: tokio_postgres::Config = base_url().parse().unwrap();
        let tokio_postgres::config::Host::Tcp(host) = base.get_hosts()[0].clone() else { panic!("a host by TCP") };
        let server = (host, base.get_ports().first().copied().unwrap_or(5432));
        let shared = Arc::clone(&limits);
        spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, limits) = (TcpStream::connect(server.clone()).await.unwrap(), Arc::clone(&shared));
                spawn(async move { limits.connect(&client, &server).await });
            }
        });
        Self { address, limits }
    }

    /// The URL of a database, by way of this proxy.
    pub(crate) fn url(&self, direct: &str) -> String {
        let (scheme, rest) = direct.split_once("://").unwrap();
        let (login, path) = rest.split_once('@').unwrap();
        let (_, database) = path.split_once('/').unwrap();
        format!("{scheme}://{login}@{}/{database}", self.address)
    }

    /// From now on only so many bytes pass in a direction, and then everything is cut.
    pub(crate) fn cut_after(&self, direction: Direction, bytes: i64) {
        self.limits.of(direction).store(bytes, Ordering::SeqCst);
    }

    /// Ends every connection there is.
    pub(crate) fn cut_now(&self) {
        self.limits.cut.notify_waiters();
    }

    /// From now on the client hears nothing, until it is healed: to the server it looks like a process that is paused.
    pub(crate) fn hold(&self) {
        self.limits.is_held.send_replace(true);
    }

    /// New connections pass again, and what was held back.
    pub(crate) fn heal(&self) {
        self.limits.up.store(UNLIMITED, Ordering::SeqCst);
        self.limits.down.store(UNLIMITED, Ordering::SeqCst);
        self.limits.is_held.send_replace(false);
    }

    /// Bytes that passed since the last `heal`.
    pub(crate) fn passed(&self, direction: Direction) -> i64 {
        UNLIMITED - self.limits.of(direction).load(Ordering::SeqCst)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Limits {
    fn of(&self, direction: Direction) -> &AtomicI64 {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Both directions, until one ends; dropping the sockets then cuts the other.
    async fn connect(&self, client: &TcpStream, server: &TcpStream) {
        tokio::select! {
            () = self.pump(Direction::Up, client, server) => {}
            () = self.pump(Direction::Down, server, client) => {}
            () = self.cut.notified() => {}
        }
    }

    async fn pump(&self, direction: Direction, from: &TcpStream, to: &TcpStream) {
        let mut buffer = [0; 4096];
        loop {
            from.readable().await.unwrap();
            let read = match from.try_read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => i64::try_from(read).unwrap(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => return,
            };
            if direction == Direction::Down {
                let _ = self.is_held.subscribe().wait_for(|is_held| !is_held).await;
            }
            let left = self.of(direction).fetch_sub(read, Ordering::SeqCst);
            let pass = usize::try_from(read.min(left).max(0)).unwrap();
            if send(to, &buffer[..pass]).await.is_err() {
                return;
            }
            if left <= read {
                self.cut.notify_waiters();
                return;
            }
        }
    }
}

async fn send(to: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
