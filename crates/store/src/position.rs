//! A place in the global log, across all runs. Readers that follow it miss nothing and see each event once.

use std::fmt;

use servo_model::Invalid;

/// Compared field by field. Embedded stores have one writer, so `id` alone orders them and the rest is zero; Postgres
/// orders by transaction and shows only what lies below every open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Grows when a store is restored or moved, so that positions of the new store are behind none of the old.
    pub store_epoch: u32,
    pub transaction: u64,
    pub id: u64,
}

impl Position {
    pub const START: Self = Self { store_epoch: 0, transaction: 0, id: 0 };

    pub fn of_id(id: u64) -> Self {
        Self { store_epoch: 0, transaction: 0, id }
    }

    /// Reads `cursor-7` or `cursor-1.90210.7`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let bad = || Invalid::new("cursor", "is not a cursor such as `cursor-7`");
        let rest = text.strip_prefix("cursor-").ok_or_else(bad)?;
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if digits { part.parse::<u64>().map_err(|_| bad()) } else { Err(bad()) }
        };
        let parts: Vec<&str> = rest.split('.').collect();
        match parts[..] {
            [id] => Ok(Self::of_id(number(id)?)),
            [epoch, transaction, id] => Ok(Self {
                store_epoch: u32::try_from(number(epoch)?).map_err(|_| bad())?,
                transaction: number(transaction)?,
                id: number(id)?,
            }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.store_epoch == 0 && self.transaction == 0 {
            write!(f, "cursor-{}", self.id)
        } else {
            write!(f, "cursor-{}.{}.{}", self.store_epoch, self.transaction, self.id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_refuse_the_rest() {
        for text in ["cursor-0", "cursor-1", "cursor-1.90210.7"] {
            assert_eq!(Position::parse(text).unwrap().to_string(), text);
        }
        for bad in
            ["", "1", "cursor-", "cursor--1", "cursor-1.2", "cursor-+1", "cursor-99999999999999999999", "cursor-a"]
        {
            assert!(Position::parse(bad).is_err(), "{bad}");
        }
    }
}
