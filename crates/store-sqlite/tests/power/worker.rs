//! The program whose power is cut: several threads append, and each acknowledged append is printed.

use std::io::Write as _;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use servo_canon::Digest;
use servo_model::invocation::InvocationStatus;
use servo_model::{EventId, RunId, RunStatus, TenantId, Timestamp};
use servo_store::{Append, Expected, LogStore as _, NewEvent, RunRow, StreamAppend};
use servo_store_sqlite::{Config, SqliteStore};

pub(crate) const FOLDER: &str = "SERVO_POWER_FOLDER";
pub(crate) const VARIANT: &str = "SERVO_POWER_VARIANT";

const WRITERS: u64 = 4;

#[expect(clippy::disallowed_methods, reason = "the worker is a program of its own")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(0))
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Two events in one transaction: both are there, or neither.
fn pair(run: &RunId, after: u64) -> StreamAppend {
    let tenant = TenantId::default_tenant();
    let expected = if after == 0 { Expected::New } else { Expected::Seq(after) };
    let mut stream = StreamAppend::new(run.clone(), tenant.clone(), expected);
    for number in [after + 1, after + 2] {
        let key = Digest::of_parts(&[run.as_str(), &number.to_string()], '|');
        stream.events.push(NewEvent {
            event_id: EventId::from_u128(u128::from(number)),
            event_type: "StepStarted".into(),
            idempotency_key: key,
            emitted_by: "worker".into(),
            occurred_at: None,
            payload: format!(r#"{{"note":"{}"}}"#, "x".repeat(usize::try_from(number % 7 * 150).unwrap_or(0))),
        });
    }
    if after == 0 {
        stream.row = Some(RunRow {
            run_id: run.clone(),
            tenant,
            project: "".into(),
            environment: "".into(),
            plan_id: "power".into(),
            plan_version: "1".to_owned(),
            status: RunStatus::Running,
            visible: InvocationStatus::Running,
            request_key: None,
            created_at: now(),
            finished_at: None,
            changed_seq: 2,
            quarantined: None,
            name: None,
            outcome: None,
            invocation: false,
            mode: None,
            correlation_id: None,
            root: None,
        });
    }
    stream
}

/// Not a test: the campaigns start it as a process of its own. Without their variable it does nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "the campaign hands over the folder")]
fn worker() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut config = Config::new(PathBuf::from(folder), Arc::new(now));
    #[cfg(feature = "sabotage")]
    {
        config.sabotage = std::env::var(VARIANT).ok().filter(|variant| !variant.is_empty());
    }
    config.readers = 1;
    let store = Arc::new(SqliteStore::open(config).expect("the store opens"));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let store = store.clone();
            std::thread::spawn(move || {
                let run = RunId::parse(&format!("run-{number}")).expect("an id");
                let mut seq = 0;
                // Bounded: a campaign that forgot to kill it still ends.
                while seq < 20_000 {
                    block_on(store.append(Append::one(pair(&run, seq)))).expect("the append");
                    seq += 2;
                    let mut out = std::io::stdout().lock();
                    let _ = writeln!(out, "ack {run} {seq}");
                    let _ = out.flush();
                }
            })
        })
        .collect();
    for writer in writers {
        let _ = writer.join();
    }
}
