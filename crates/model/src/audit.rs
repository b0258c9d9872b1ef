//! Who did what, or tried to: one entry of the audit log. It names objects and never holds what they contain.

use serde::{Deserialize, Serialize};

use crate::limits::LABEL_CHARS_MAX;
use crate::{EventId, Role, TenantId, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    /// It was done.
    Allowed,
    /// The caller is unknown or may not do it.
    Denied,
    /// The caller may do it, and it could not be done. With a server fault it may have been done all the same.
    Failed,
}

impl AuditOutcome {
    pub const ALL: [AuditOutcome; 3] = [AuditOutcome::Allowed, AuditOutcome::Denied, AuditOutcome::Failed];

    pub fn as_str(self) -> &'static str {
        match self {
            AuditOutcome::Allowed => "allowed",
            AuditOutcome::Denied => "denied",
            AuditOutcome::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Sorts by time.
    pub id: EventId,
    pub at: Timestamp,
    /// The caller's; `_system` where there is no caller.
    pub tenant_id: TenantId,
    /// The caller's subject; empty where nobody is known.
    pub actor: String,
    pub roles: Vec<Role>,
    /// A stable dotted name such as `function.publish`.
    pub action: String,
    pub object_kind: String,
    pub object_id: String,
    pub outcome: AuditOutcome,
    pub correlation_id: String,
    /// The code of the error that the caller was answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The address that the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How many requests it stands for: refused ones that come too fast share an entry.
    pub count: u64,
}

impl AuditEntry {
    /// Cut where too long and without NUL, which Postgres cannot store. An entry is never refused for its length.
    #[must_use]
    pub fn clipped(mut self) -> Self {
        let optional = [&mut self.reason, &mut self.source].into_iter().flatten();
        let texts =
            [&mut self.actor, &mut self.action, &mut self.object_kind, &mut self.object_id, &mut self.correlation_id];
        for text in texts.into_iter().chain(optional) {
            if text.contains('\0') {
                *text = text.replace('\0', "\u{fffd}");
            }
            text.truncate(text.floor_char_boundary(LABEL_CHARS_MAX));
        }
        self
    }

    /// Whether cutting it would change nothing.
    pub fn is_clipped(&self) -> bool {
        let texts = [&self.actor, &self.action, &self.object_kind, &self.object_id, &self.correlation_id];
        let mut texts = texts.into_iter().chain(&self.reason).chain(&self.source);
        texts.all(|text| text.len() <= LABEL_CHARS_MAX && !text.contains('\0'))
    }
}

/// The lowest id that an entry of this time can have.
pub fn first_id_at(at: Timestamp) -> EventId {
    let mut bytes = [0u8; 16];
    bytes[..6].copy_from_slice(&at.as_millis().clamp(0, (1 << 48) - 1).to_be_bytes()[2..]);
    EventId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_cut_and_not_refused() {
        let entry = AuditEntry {
            id: first_id_at(Timestamp::from_millis(5)),
            at: Timestamp::from_millis(5),
            tenant_id: TenantId::system(),
            actor: "ä".repeat(400),
            roles: Vec::new(),
            action: "a\0b".to_owned(),
            object_kind: String::new(),
            object_id: "x".repeat(LABEL_CHARS_MAX + 1),
            outcome: AuditOutcome::Denied,
            correlation_id: String::new(),
            reason: Some("r".repeat(1_000)),
            source: None,
            count: 1,
        };
        assert!(!entry.is_clipped());
        let clipped = entry.clipped();
        assert!(clipped.is_clipped());
        for wrong in ["x".repeat(LABEL_CHARS_MAX + 1), "\0".to_owned()] {
            for place in 0..7 {
                let mut changed = clipped.clone();
                match place {
                    0 => changed.actor = wrong.clone(),
                    1 => changed.action = wrong.clone(),
                    2 => changed.object_kind = wrong.clone(),
                    3 => changed.object_id = wrong.clone(),
                    4 => changed.correlation_id = wrong.clone(),
                    5 => changed.reason = Some(wrong.clone()),
                    _ => changed.source = Some(wrong.clone()),
                }
                assert!(!changed.is_clipped() && changed != changed.clone().clipped(), "{place}");
            }
        }
        assert_eq!(clipped.actor, "ä".repeat(LABEL_CHARS_MAX / 2));
        assert_eq!((clipped.action.as_str(), clipped.object_id.len()), ("a\u{fffd}b", LABEL_CHARS_MAX));
        assert_eq!(clipped.reason.unwrap().len(), LABEL_CHARS_MAX);
    }

    #[test]
    fn ids_of_a_time_sort_behind_its_first() {
        let first = first_id_at(Timestamp::from_millis(1_000));
        assert!(first_id_at(Timestamp::from_millis(999)) < first && first < first_id_at(Timestamp::from_millis(1_001)));
        assert_eq!(first_id_at(Timestamp::from_millis(-1)), EventId::nil());
    }
}
