//! The runtime contract: the snapshot as a few lines, its events one per line.

use serde_json::Value;
use servo_model::Timestamp;
use servo_model::contract::{RuntimeEvent, RuntimeSnapshot};
use servo_wire::v1::{Executed, RuntimeEventPage};

use super::{Style, View};
use crate::output::style::{Color, clean};
use crate::output::table::fields;

impl View for RuntimeSnapshot {
    fn table(&self, style: &Style) -> String {
        let (authority, backlog, replay) = (&self.authority, &self.backlog, &self.replay);
        let ready = match (self.readiness.ready, self.readiness.reasons.as_slice()) {
            (true, _) => style.paint().apply(Color::Green, "yes"),
            (false, reasons) => {
                format!("{}: {}", style.paint().apply(Color::Red, "no"), clean(&reasons.join("; ")))
            }
        };
        let holder = match (&authority.owner, &authority.stale_reason) {
            (None, _) => "nobody".to_owned(),
            (Some(owner), Some(reason)) => format!("{owner}, stale: {reason}"),
            (Some(owner), None) => owner.clone(),
        };
        // The contract keeps the text it was given; where it is a time, it is shown as one.
        let until = authority.leased_until.as_ref().map(|text| match Timestamp::parse(text) {
            Ok(at) => style.time(at),
            Err(_) => clean(text),
        });
        let mut position = replay.cursor.clone().unwrap_or_else(|| "none".to_owned());
        if replay.pending_events > 0 {
            position.push_str(&format!(", {} events pending", replay.pending_events));
        }
        if replay.deferred_leader_notification {
            position.push_str(", waits for an authority");
        }
        fields(&[
            ("Ready", Some(ready)),
            ("Authority", Some(clean(&holder))),
            ("Lease", authority.lease_id.as_deref().map(clean)),
            ("Leased until", until),
            (
                "Dispatches",
                Some(format!(
                    "{} pending, {} notified, {} delivered, {} failed",
                    backlog.pending, backlog.notified, backlog.delivered, backlog.failed
                )),
            ),
            ("Replay", Some(clean(&position))),
            ("Last replayed", replay.last_replayed_event_id.as_deref().map(clean)),
        ])
    }
}

/// `DispatchQueued  request_id=r1 target=worker-a`
fn line(event: &RuntimeEvent, style: &Style) -> String {
    let fields = match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let pairs: Vec<_> = fields
        .iter()
        .filter(|(name, _)| *name != "event")
        .map(|(name, value)| format!("{name}={}", clean(value.as_str().unwrap_or_default())))
        .collect();
    let padding = " ".repeat(22_usize.saturating_sub(event.name().len()));
    let name = style.paint().apply(Color::Blue, event.name());
    format!("{name}{padding}{}", pairs.join(" ")).trim_end().to_owned() + "\n"
}

impl View for Executed {
    fn table(&self, style: &Style) -> String {
        let mut text: String = self.events.iter().map(|event| line(event, style)).collect();
        if let Some(snapshot) = &self.snapshot {
            text.push('\n');
            text.push_str(&snapshot.table(style));
        }
        text
    }
}

impl View for RuntimeEventPage {
    const ITEMS: Option<&'static str> = Some("events");

    fn table(&self, style: &Style) -> String {
        let events: String = self.events.iter().map(|event| line(event, style)).collect();
        format!("{events}next: --after {}\n", clean(&self.next))
    }
}
