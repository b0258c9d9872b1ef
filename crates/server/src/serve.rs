//! Connections: accepted up to a limit, served with timeouts, and at the end given time to finish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use servo_runtime::Tasks;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower_http::add_extension::AddExtension;

use crate::app::App;
use crate::identity::keys::note_uses;
use crate::request::Peer;
use crate::tls::Tls;

/// Bytes of a request's head; also what one idle connection may hold.
const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 64;
/// Requests at once on one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 128;
const UPKEEP_EVERY: Duration = Duration::from_secs(10);
/// After an error of `accept` (usually: no file descriptors), the next try needs a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the app's shutdown is triggered, then waits for requests under way, up to the runtime's grace period.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, app: App, tasks: &Tasks) {
    let server = Server {
        router: app.router(),
        http1: builder(Duration::from_millis(app.config.header_timeout_ms)).http1_only(),
        http2: builder(Duration::from_millis(app.config.header_timeout_ms)).http2_only(),
        handshake: Duration::from_millis(app.config.header_timeout_ms),
        tls,
    };
    let server = Arc::new(server);
    let slots = Arc::new(Semaphore::new(app.config.connections_max));
    let graceful = GracefulShutdown::new();
    let clock = app.runtime.engine().clock().clone();
    tasks.spawn("metrics-upkeep", upkeep(app.clone()));
    tasks.spawn("series", crate::series::run(app.clone()));
    if let Some(work) = app.recorder.work(clock.clone()) {
        tasks.spawn("audit", work.run());
    }
    if let Some(uses) = app.key_uses.lock().await.take() {
        tasks.spawn("key-uses", note_uses(app.runtime.engine().store().clone(), uses));
    }
    while let Some((stream, peer, slot)) = next(&listener, &slots, &app).await {
        let (server, watcher) = (server.clone(), graceful.watcher());
        tasks.spawn("connection", async move {
            server.connection(stream, Peer(peer.ip()), watcher).await;
            drop(slot);
        });
    }
    drop(listener);
    let grace = Duration::from_millis(app.runtime.engine().config().shutdown_grace_ms);
    tokio::select! {
        biased;
        () = graceful.shutdown() => {}
        () = clock.sleep(grace) => tracing::warn!("connections were still open when the grace period ended"),
    }
    tokio::select! {
        biased;
        () = app.recorder.flush() => {}
        () = clock.sleep(grace) => tracing::error!("audit entries were still waiting when the grace period ended"),
    }
}

/// The next connection, once there is a slot for it; `None` when the server stops.
async fn next(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    app: &App,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let accept = async {
        let slot = slots.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => return Some((stream, peer, slot)),
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    app.runtime.engine().clock().sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = app.shutdown.triggered() => None,
        accepted = accept => accepted,
    }
}

async fn upkeep(app: App) {
    let clock = app.runtime.engine().clock().clone();
    loop {
        tokio::select! {
            biased;
            () = app.shutdown.triggered() => return,
            () = clock.sleep(UPKEEP_EVERY) => app.metrics.upkeep(),
        }
    }
}

fn builder(header_timeout: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(header_timeout)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_concurrent_streams(HTTP2_STREAMS_MAX);
    builder
}

/// The version is agreed on by TLS or is 1.1. It is not guessed from the first bytes: that would wait for them without a
/// limit.
struct Server {
    router: Router,
    http1: Builder<TokioExecutor>,
    http2: Builder<TokioExecutor>,
    handshake: Duration,
    tls: Option<Tls>,
}

impl Server {
    async fn connection(&self, stream: TcpStream, peer: Peer, watcher: Watcher) {
        // Answers are small: waiting to fill a packet would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "connection without TCP_NODELAY");
        }
        match &self.tls {
            None => self.requests(&self.http1, stream, peer, watcher).await,
            Some(Tls(acceptor)) => match tokio::time::timeout(self.handshake, acceptor.accept(stream)).await {
                Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                    self.requests(&self.http2, stream, peer, watcher).await;
                }
                Ok(Ok(stream)) => self.requests(&self.http1, stream, peer, watcher).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake refused"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            },
        }
    }

    async fn requests<S>(&self, builder: &Builder<TokioExecutor>, stream: S, peer: Peer, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = TowerToHyperService::new(AddExtension::new(self.router.clone(), peer));
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection.into_owned()).await {
            tracing::debug!(error, "connection ended");
        }
    }
}
