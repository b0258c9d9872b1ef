//! LISTEN and NOTIFY, only to shorten a wait. All commits that carry a NOTIFY queue behind one lock of the server, so
//! none of ours does: after a while of writing a single one is sent by itself, and nobody who misses it misses anything,
//! because readers poll.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use servo_store::Result;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_postgres::AsyncMessage;

use crate::access::Access;
use crate::config::Config;
use crate::error::{Failure, Phase, corrupt};
use crate::pipeline::{Pipeline, params};
use crate::store::Core;
use crate::tasks;

/// At most one NOTIFY in this time.
const NOTIFY_EVERY: Duration = Duration::from_millis(20);

/// Between two attempts to listen again.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

const NOTIFY: &str = "SELECT pg_notify('servo_log', $1)";
/// Behind the name of whoever tells that the authority is free.
const FREED: &str = " freed";
/// What the telling of that may take: whoever resigns is about to end.
const TELL_WITHIN: Duration = Duration::from_millis(500);
const LISTEN: &str = "LISTEN servo_log";

#[derive(Debug)]
pub(crate) struct Hints {
    sender: HintSender,
    is_enabled: bool,
    is_stopped: watch::Sender<bool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct HintSender {
    hint: Arc<watch::Sender<u64>>,
    /// Counts how often another process gave the authority up.
    freed: Arc<watch::Sender<u64>>,
    wrote: Arc<Notify>,
    /// What this process calls itself.
    own_name: Arc<str>,
}

impl HintSender {
    /// Something was committed: the others are told soon. Whoever writes in this process knows it.
    pub(crate) fn wrote(&self) {
        self.wrote.notify_one();
    }

    fn bump(&self) {
        self.hint.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// What another process said; our own words come back as well.
    fn heard(&self, payload: &str) {
        match payload.strip_suffix(FREED) {
            Some(name) if name == &*self.own_name => {}
            Some(_) => self.freed.send_modify(|count| *count = count.wrapping_add(1)),
            None if payload == &*self.own_name => {}
            None => self.bump(),
        }
    }
}

impl Hints {
    pub(crate) fn start(config: &Config, access: &Access, core: &Arc<Core>) -> Result<Self> {
        let own_name = uuid::Uuid::from_bytes(random()?).to_string().into();
        let count = || Arc::new(watch::Sender::new(0));
        let sender = HintSender { hint: count(), freed: count(), wrote: Arc::new(Notify::new()), own_name };
        let is_stopped = watch::Sender::new(false);
        let mut running = Vec::new();
        if config.hints {
            let access = access.clone();
            let (core, hints, stopped) = (Arc::clone(core), sender.clone(), is_stopped.subscribe());
            running.push(tasks::spawn(async move { until(stopped, notify(&core, &hints)).await }));
            let (hints, stopped) = (sender.clone(), is_stopped.subscribe());
            running.push(tasks::spawn(async move { until(stopped, listen(&access, &hints)).await }));
        }
        Ok(Self { sender, is_enabled: config.hints, is_stopped, tasks: Mutex::new(running) })
    }

    /// Tells the others that the authority is free, at once: the process that gave it up ends soon after.
    pub(crate) async fn tell_freed(&self, core: &Core) {
        if self.is_enabled {
            let payload = format!("{}{FREED}", self.sender.own_name);
            // Who hears nothing finds it by looking.
            let _ = tokio::time::timeout(TELL_WITHIN, tell(core, &payload)).await;
        }
    }

    pub(crate) fn subscribe_freed(&self) -> watch::Receiver<u64> {
        self.sender.freed.subscribe()
    }

    pub(crate) fn sender(&self) -> HintSender {
        self.sender.clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.sender.hint.subscribe()
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.send_replace(true);
    }

    pub(crate) async fn finish(&self) {
        self.stop();
        let running = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in running {
            let _ = task.await;
        }
    }
}

fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| corrupt("the operating system gives no randomness"))?;
    Ok(bytes)
}

async fn until(mut stopped: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        _ = stopped.wait_for(|stopped| *stopped) => {}
        () = work => {}
    }
}

async fn notify(core: &Core, hints: &HintSender) {
    let mut pace = tokio::time::interval(NOTIFY_EVERY);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        hints.wrote.notified().await;
        tell(core, &hints.own_name).await;
        pace.tick().await;
    }
}

/// Lost if no connection is free: the readers' polling is the truth.
async fn tell(core: &Core, payload: &str) {
    if let Ok(connection) = core.pools.borrow(&core.pools.engine).await {
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        // It has a transaction id and would wait for the disk, for nothing.
        pipeline.plain("SET LOCAL synchronous_commit = off");
        pipeline.query(NOTIFY, params![payload]);
        let _ = connection.commit(pipeline).await;
    }
}

async fn listen(access: &Access, hints: &HintSender) {
    let mut pace = tokio::time::interval(LISTEN_AGAIN_AFTER);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        let _ = listen_once(access, hints).await;
    }
}

/// Until the connection ends.
async fn listen_once(access: &Access, hints: &HintSender) -> Result<()> {
    let (client, mut connection) = access.connect().await?;
    let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
    let mut is_listening = false;
    let mut listening = std::pin::pin!(client.batch_execute(LISTEN));
    loop {
        tokio::select! {
            result = &mut listening, if !is_listening => {
                result.map_err(lost)?;
                is_listening = true;
                // Something may have been said while nobody listened.
                hints.bump();
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(told))) => hints.heard(told.payload()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(lost(error)),
                None => return Ok(()),
            },
        }
    }
}

fn lost(error: tokio_postgres::Error) -> servo_store::Error {
    Failure::from(error).into_error(Phase::Open)
}
