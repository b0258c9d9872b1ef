//! The live log: reads behind the writer, as any reader of the log does, and costs a run nothing. Under load it shows a part
//! and says how much it left out.

use std::collections::HashMap;
use std::time::Duration;

use servo_model::event::EventBody;
use servo_model::operation::OperationAction;
use servo_model::{Event, RunId};
use servo_runtime::{Clock as _, Engine, SystemClock};
use servo_store::{Position, Scope};
use tokio::sync::watch;

use super::line::{self, Line};
use super::printer::{Colour, Printer, clean};

/// Events read together. More than these at once are not shown.
const READ_MAX: u32 = 200;
/// More is likely to come: so long until one read takes it together.
const GATHER: Duration = Duration::from_millis(50);
/// After more than could be shown, nothing is read for a while.
const REST: Duration = Duration::from_secs(1);
/// Events that are counted exactly when they are left out.
const COUNTED_MAX: u64 = 100_000;
/// Runs, and operations, whose names are remembered.
const NAMES_MAX: usize = 2_000;
/// Among these of a run is the one that says what it is called.
const FIRST_EVENTS: u32 = 8;
/// Width of the column of names.
const NAME_CHARS: usize = 22;
/// Width of the column of events.
const EVENT_CHARS: usize = 17;

pub(crate) struct Live {
    engine: Engine,
    printer: Printer,
    at: Position,
    runs: HashMap<RunId, String>,
    /// Those that have not ended.
    operations: HashMap<(RunId, String), String>,
}

impl Live {
    /// Everything from now on.
    pub(crate) async fn new(engine: &Engine, printer: Printer) -> Result<Self, servo_store::Error> {
        let at = engine.store().log_head().await?;
        Ok(Self { engine: engine.clone(), printer, at, runs: HashMap::new(), operations: HashMap::new() })
    }

    pub(crate) async fn follow(mut self) {
        let engine = self.engine.clone();
        let mut log = engine.wake().watch_log();
        loop {
            log.mark_unchanged();
            let mut pause = GATHER;
            match self.show().await {
                Ok(Shown::All) => {
                    tokio::select! {
                        biased;
                        () = engine.shutdown().triggered() => return self.last(log).await,
                        changed = log.changed() => if changed.is_err() { return },
                    }
                }
                Ok(Shown::Part) => pause = REST,
                Err(servo_store::Error::Closed) => return,
                Err(error) => {
                    tracing::debug!(%error, "the live log waits for the store");
                    pause = REST;
                }
            }
            tokio::select! {
                biased;
                () = engine.shutdown().triggered() => return self.last(log).await,
                () = SystemClock.sleep(pause) => {}
            }
        }
    }

    /// What happens while the server drains is worth a look, too. Read at once: the store closes as soon as everything is done.
    async fn last(mut self, mut log: watch::Receiver<u64>) {
        loop {
            log.mark_unchanged();
            if self.show().await.is_err() || log.changed().await.is_err() {
                return;
            }
        }
    }

    async fn show(&mut self) -> Result<Shown, servo_store::Error> {
        let store = self.engine.store().clone();
        let page = store.read_log(self.at, READ_MAX).await?;
        let events = page.events.iter().filter(|event| !event.run_id.is_system());
        // What cannot be read is an alert's business, not a line's.
        let events: Vec<Event> = events.filter_map(|event| event.decode().ok()).collect();
        // A run's name may come a moment after its first event.
        for event in &events {
            if let Some(name) = line::name(&event.body) {
                remember(&mut self.runs, event.run_id.clone(), name);
            }
        }
        for event in &events {
            self.tell(event).await;
        }
        self.at = page.next;
        if page.events.len() < READ_MAX as usize {
            return Ok(Shown::All);
        }
        let head = store.log_head().await?;
        let missed = store.count_log(self.at, head, COUNTED_MAX).await?;
        if missed == 0 {
            return Ok(Shown::All);
        }
        self.at = head;
        self.printer.line(self.printer.left_out_line(missed));
        Ok(Shown::Part)
    }

    async fn tell(&mut self, event: &Event) {
        let operation = self.operation(&event.run_id, &event.body);
        let Some(told) = line::of(event, &operation) else { return };
        let name = self.name(&event.run_id).await;
        let text = self.format(&event.run_id, &name, &event.at().to_string(), &told);
        self.printer.line(text);
    }

    /// What the operation that an event is about is called. The event that ends it does not say.
    fn operation(&mut self, run_id: &RunId, body: &EventBody) -> String {
        let (id, named, ended) = match body {
            EventBody::OperationUpdated(body) => (
                &body.operation_id,
                body.name.as_ref().or(body.sub_type.as_ref()),
                body.action != OperationAction::Start,
            ),
            EventBody::OperationResolved(body) => (&body.operation_id, None, body.status.is_terminal()),
            _ => return String::new(),
        };
        let key = (run_id.clone(), id.clone());
        let name = named.cloned().or_else(|| self.operations.get(&key).cloned()).unwrap_or_default();
        if ended {
            self.operations.remove(&key);
        } else if !name.is_empty() {
            remember(&mut self.operations, key, name.clone());
        }
        name
    }

    /// A run that began before anybody looked is looked up once, in its own first events.
    async fn name(&mut self, run_id: &RunId) -> String {
        if let Some(name) = self.runs.get(run_id) {
            return name.clone();
        }
        let first = self.engine.store().read_run(&Scope::System, run_id, 0, FIRST_EVENTS).await;
        let first = first.map(|page| page.events).unwrap_or_default();
        let name = first.iter().filter_map(|event| line::name(&event.decode().ok()?.body)).next_back();
        let name = name.unwrap_or_default();
        remember(&mut self.runs, run_id.clone(), name.clone());
        name
    }

    fn format(&self, run_id: &RunId, name: &str, at: &str, told: &Line) -> String {
        let paint = |colour, text: &str| self.printer.paint(colour, text);
        // The date is today's; the zone is said, since it is seldom the reader's own.
        let time = at.get(11..24).unwrap_or(at);
        let id = run_id.as_str();
        let short = id.get(id.len().saturating_sub(6)..).unwrap_or(id);
        let event = match told.colour {
            Some(colour) => paint(colour, &pad(told.event, EVENT_CHARS)),
            None => pad(told.event, EVENT_CHARS),
        };
        let line = format!(
            "{}  {}  {}  {event}  {}",
            paint(Colour::Dim, time),
            paint(Colour::Dim, short),
            pad(&clean(name), NAME_CHARS),
            clean(&told.detail),
        );
        line.trim_end().to_owned()
    }
}

enum Shown {
    All,
    Part,
}

/// Forgets everything at once when there is no room: names come again.
fn remember<K: std::hash::Hash + Eq>(names: &mut HashMap<K, String>, key: K, name: String) {
    if names.len() >= NAMES_MAX {
        names.clear();
    }
    names.insert(key, name);
}

/// Columns stand below each other while names are short; a long one is never cut.
fn pad(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(padding))
}
