//! The authority: one fenced lease that lets one node schedule. The store issues the epoch; every write that its holder
//! makes as a scheduler names the epoch, and is refused once a newer one exists.

use servo_model::{Invalid, Timestamp};

/// Refuses the transaction unless this epoch is current and its lease has not expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    pub epoch: u64,
}

/// Times are RFC 3339 text, shown again as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorityChange {
    /// Refused (`AuthorityHeld`) while another owner's unexpired lease stands. Issues the next epoch.
    Acquire { owner: String, lease_id: String, leased_until: String },
    /// Refused (`AuthorityNotHeld`) unless `owner` holds it — and under `epoch`, if the caller knows one — and the lease
    /// has not expired. The epoch stays.
    Renew { owner: String, epoch: Option<u64>, lease_id: String, leased_until: String },
    /// Ends the lease now, so that another node need not wait for it to expire. `AuthorityNotHeld` if it has passed on.
    Resign { owner: String, epoch: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityRow {
    pub owner: String,
    pub lease_id: String,
    pub leased_until: String,
    pub leased_until_at: Timestamp,
    pub epoch: u64,
    pub resigned: bool,
}

impl AuthorityRow {
    /// A lease holds up to, and not at, its end.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        !self.resigned && now < self.leased_until_at
    }

    /// The row after a change, or why it is refused. Pure, so that every backend judges alike.
    pub fn change(
        current: Option<&AuthorityRow>,
        change: &AuthorityChange,
        now: Timestamp,
    ) -> Result<AuthorityRow, crate::Error> {
        let parse =
            |text: &str| Timestamp::parse(text).map_err(|e: Invalid| crate::Error::from(e.inside("leased_until")));
        match change {
            AuthorityChange::Acquire { owner, lease_id, leased_until } => {
                let at = parse(leased_until)?;
                if let Some(held) = current.filter(|held| held.is_fresh(now) && held.owner != *owner) {
                    return Err(crate::Error::AuthorityHeld {
                        owner: held.owner.clone(),
                        leased_until: held.leased_until.clone(),
                    });
                }
                Ok(AuthorityRow {
                    owner: owner.clone(),
                    lease_id: lease_id.clone(),
                    leased_until: leased_until.clone(),
                    leased_until_at: at,
                    epoch: current.map_or(0, |held| held.epoch) + 1,
                    resigned: false,
                })
            }
            AuthorityChange::Renew { owner, epoch, lease_id, leased_until } => {
                let at = parse(leased_until)?;
                let refused = || crate::Error::AuthorityNotHeld { owner: owner.clone() };
                let held = current.filter(|held| held.owner == *owner && held.is_fresh(now)).ok_or_else(refused)?;
                if epoch.is_some_and(|epoch| epoch != held.epoch) {
                    return Err(refused());
                }
                Ok(AuthorityRow {
                    lease_id: lease_id.clone(),
                    leased_until: leased_until.clone(),
                    leased_until_at: at,
                    ..held.clone()
                })
            }
            AuthorityChange::Resign { owner, epoch } => {
                let held = current.filter(|held| held.owner == *owner && held.epoch == *epoch && !held.resigned);
                let held = held.ok_or_else(|| crate::Error::AuthorityNotHeld { owner: owner.clone() })?;
                Ok(AuthorityRow { resigned: true, ..held.clone() })
            }
        }
    }
}

impl Fence {
    pub fn check(self, current: Option<&AuthorityRow>, now: Timestamp) -> Result<(), crate::Error> {
        match current {
            Some(row) if row.epoch == self.epoch && row.is_fresh(now) => Ok(()),
            _ => Err(crate::Error::Fenced { epoch: self.epoch }),
        }
    }
}
