//! Connections of workers to one port: accepted up to a limit, and known by their end.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use servo_ingress::{Arrived, Bounds, Connections, Place};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::port::PortId;
use crate::pull::Hub;
use crate::{runtime_api, tasks};

const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 64;
/// Connections beyond those that have a place, which are told to come back.
const BEYOND_MAX: usize = 16;
/// After an error of `accept` (usually: no file descriptors), the next try needs a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

static NEWEST: AtomicU64 = AtomicU64::new(0);

/// One connection, as requests on it see it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: u64,
    /// The address of this end.
    pub(crate) local: Option<IpAddr>,
    place: Place<Arc<Notify>>,
    ending: Arc<Notify>,
    /// Its worker has a call, and is not idle although it asks nothing.
    works: AtomicBool,
}

/// A request, until its answer has been sent.
#[derive(Debug)]
pub(crate) struct Exchange(Arc<Connection>);

impl Connection {
    fn new(local: Option<IpAddr>, place: Place<Arc<Notify>>, ending: Arc<Notify>) -> Self {
        let id = NEWEST.fetch_add(1, Ordering::Relaxed) + 1;
        Self { id, local, place, ending, works: AtomicBool::new(false) }
    }

    /// The id of the newest one of this process.
    pub(crate) fn newest() -> u64 {
        NEWEST.load(Ordering::Relaxed)
    }

    /// Whether there is no place for it.
    pub(crate) fn is_beyond(&self) -> bool {
        self.place.is_beyond()
    }

    /// Ends it after what it has begun.
    pub(crate) fn end(&self) {
        self.ending.notify_one();
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Exchange {
        self.place.begin();
        Exchange(self.clone())
    }

    /// Its worker has a call now, or none any more.
    pub(crate) fn works(&self, works: bool) {
        match (self.works.swap(works, Ordering::Relaxed), works) {
            (false, true) => self.place.begin(),
            (true, false) => self.place.end(),
            _ => {}
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.place.end();
    }
}

/// Serves the Runtime API at one port until it is stopped.
pub(crate) async fn serve(
    listener: TcpListener,
    hub: Arc<Hub>,
    port: PortId,
    stop: CancellationToken,
    tracker: TaskTracker,
) {
    let router = runtime_api::router(hub.clone(), port);
    let places = hub.settings.connections_max;
    let connections = Connections::new(Bounds { places, fresh: places.div_ceil(2), beyond: BEYOND_MAX });
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                let ending = Arc::new(Notify::new());
                // Without room for it nothing can be said to it either.
                let Some(Arrived { place, ended }) = connections.arrive(ending.clone()) else { continue };
                if let Some(ended) = ended {
                    ended.notify_one();
                }
                let local = stream.local_addr().map(|address| address.ip()).ok();
                let link = Arc::new(Connection::new(local, place, ending));
                let (hub, router, stop) = (hub.clone(), router.clone(), stop.clone());
                tasks::spawn(&tracker, async move { connection(stream, &hub, router, link, stop).await });
            }
            Err(error) => {
                tracing::warn!(%error, function = hub.function, "connection of a worker not accepted");
                tasks::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    hub: &Hub,
    router: Router,
    connection: Arc<Connection>,
    stop: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "connection without TCP_NODELAY");
    }
    let service = TowerToHyperService::new(router.layer(Extension(connection.clone())));
    // No header timeout: hyper's also runs between requests, and a handler may work for minutes between two of them.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    {
        let mut requests = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut first = std::pin::pin!(tasks::sleep(hub.settings.first_request));
        let (mut is_ending, mut is_first) = (false, true);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                ended = requests.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(error, function = hub.function, "connection of a worker ended");
                    }
                    break;
                }
                () = connection.ending.notified(), if !is_ending => is_ending = true,
                () = first.as_mut(), if is_first => is_first = false,
            }
            if (is_ending || !is_first) && !connection.place.was_heard() {
                tracing::debug!(function = hub.function, "connection without a request closed");
                break;
            }
            if is_ending {
                requests.as_mut().graceful_shutdown();
            }
        }
    }
    // No sign of death: some runtimes make a connection for each request, and pools close those that are idle while the handler
    // works. The deadline decides, or the end of a process that we started.
    hub.hung_up(connection.id);
}
