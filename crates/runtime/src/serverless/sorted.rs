//! Invocations in the order that is asked for. The stores have two: by id, which is by time to the millisecond, and by status and then
//! id. Every other one is made of these: a status is asked for after the other, and those of one millisecond are sorted here.

use std::cmp::Ordering;

use servo_entrypoint::errors;
use servo_entrypoint::odata::{Direction, OrderBy, OrderKey};
use servo_model::invocation::InvocationStatus;
use servo_model::limits::ID_CHARS_MAX;
use servo_model::{RunId, SecurityContext};
use servo_store::RunRow;
use servo_store::runs::{RunOrder, RunQuery};

use super::{Answer, Serverless, store_error};

/// `inv_` and the digits of the millisecond.
const MOMENT_CHARS: usize = 16;
/// Invocations of one millisecond that are sorted.
const MOMENT_MAX: usize = 10_000;
/// Rows that are read together where milliseconds are read as a whole.
const READ: usize = 200;

/// A run's place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) status: InvocationStatus,
    pub(super) run_id: RunId,
}

impl Place {
    pub(super) fn of(row: &RunRow) -> Self {
        Self { status: row.visible, run_id: row.run_id.clone() }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (status, run_id) = text.split_once(' ')?;
        Some(Self { status: InvocationStatus::parse(status)?, run_id: RunId::parse(run_id).ok()? })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status.as_str(), self.run_id)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sorting {
    /// First by status, where there is a direction.
    status: Option<Direction>,
    /// Then by time, and inside a millisecond by id.
    time: Direction,
    /// The order inside a millisecond where it is another.
    within: Vec<OrderKey>,
}

impl Sorting {
    pub(super) fn of(order: Option<&OrderBy>) -> Self {
        let is_id = |key: &OrderKey| matches!(key.field.name, "invocation_id" | "id");
        let mut keys = order.map(OrderBy::keys).unwrap_or_default().to_vec();
        // No two have one id, so what stands behind it decides nothing.
        if let Some(unique) = keys.iter().position(is_id) {
            keys.truncate(unique + 1);
        }
        let mut keys = keys.into_iter().peekable();
        let status = keys.next_if(|key| key.field.name == "status").map(|key| key.direction);
        let time = keys.peek().map_or(Direction::Desc, |key| key.direction);
        keys.next_if(|key| key.field.name == "created_at");
        let within: Vec<_> = keys.collect();
        let by_id = within.first().is_none_or(|key| is_id(key) && key.direction == time);
        Self { status, time, within: if by_id { Vec::new() } else { within } }
    }

    /// The same list from its end.
    pub(super) fn reversed(self) -> Self {
        let within = self.within.into_iter().map(|key| OrderKey { direction: opposite(key.direction), ..key });
        Self { status: self.status.map(opposite), time: opposite(self.time), within: within.collect() }
    }

    /// What to ask for, one after the other.
    fn queries(&self, query: RunQuery, place: Option<&Place>) -> Vec<RunQuery> {
        let oldest_first = self.time == Direction::Asc;
        let after = place.map(|place| if self.within.is_empty() { place.run_id.clone() } else { self.edge(place) });
        let Some(direction) = self.status else {
            return vec![RunQuery { order: RunOrder::RunId, oldest_first, after, ..query }];
        };
        if direction == self.time && self.within.is_empty() {
            let order = RunOrder::Visible { after: place.map(|place| place.status) };
            return vec![RunQuery { order, oldest_first, after, ..query }];
        }
        let spelled =
            |left: InvocationStatus, right: InvocationStatus| directed(direction, left.as_str().cmp(right.as_str()));
        let mut statuses = if query.visible.is_empty() { InvocationStatus::ALL.to_vec() } else { query.visible_set() };
        statuses.retain(|status| place.is_none_or(|place| spelled(*status, place.status).is_ge()));
        statuses.sort_by(|left, right| spelled(*left, *right));
        let one = |status: InvocationStatus| {
            let after = after.clone().filter(|_| place.is_some_and(|place| place.status == status));
            RunQuery { visible: vec![status], order: RunOrder::RunId, oldest_first, after, ..query.clone() }
        };
        statuses.into_iter().map(one).collect()
    }

    /// Before everything of the place's millisecond. An id that was not made here has none: other ids that begin with it have
    /// nothing to do with it.
    fn edge(&self, place: &Place) -> RunId {
        let Some(moment) = made_at(&place.run_id) else { return place.run_id.clone() };
        // Behind every id that begins so: none has a letter behind `z`.
        let last = || format!("{moment}{}", "z".repeat(ID_CHARS_MAX - moment.len()));
        let edge = if self.time == Direction::Asc { moment.to_owned() } else { last() };
        RunId::parse(&edge).unwrap_or_else(|_| place.run_id.clone())
    }

    fn compare(&self, left: &Place, right: &Place) -> Ordering {
        let orders = self.within.iter().map(|key| {
            let order = match key.field.name {
                "status" => left.status.as_str().cmp(right.status.as_str()),
                _ => left.run_id.cmp(&right.run_id),
            };
            directed(key.direction, order)
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The runs of one millisecond that are behind the place, sorted.
    fn sort(&self, rows: &mut Vec<RunRow>, place: Option<&Place>) {
        let same = |row: &RunRow, place: &Place| {
            moment(&row.run_id) == moment(&place.run_id) && (self.status.is_none() || row.visible == place.status)
        };
        rows.retain(|row| place.is_none_or(|place| !same(row, place) || self.compare(&Place::of(row), place).is_gt()));
        rows.sort_by(|left, right| self.compare(&Place::of(left), &Place::of(right)));
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Asc => Direction::Desc,
        Direction::Desc => Direction::Asc,
    }
}

fn directed(direction: Direction, order: Ordering) -> Ordering {
    if direction == Direction::Desc { order.reverse() } else { order }
}

/// What the ids of one millisecond begin with; `None` for an id that was not made here.
fn made_at(run_id: &RunId) -> Option<&str> {
    run_id.as_str().get(..MOMENT_CHARS).filter(|moment| moment.starts_with("inv_"))
}

/// Which runs are sorted together. One whose id was not made here is alone.
fn moment(run_id: &RunId) -> &str {
    made_at(run_id).unwrap_or(run_id.as_str())
}

impl Serverless {
    /// So many rows behind a place. A run whose status changes meanwhile may be met twice.
    pub(super) async fn sorted_rows(
        &self,
        ctx: &SecurityContext,
        sorting: &Sorting,
        query: RunQuery,
        place: Option<&Place>,
        most: usize,
    ) -> Answer<Vec<RunRow>> {
        let mut found = Vec::new();
        for query in sorting.queries(query, place) {
            if found.len() >= most {
                break;
            }
            let left = most - found.len();
            found.extend(if sorting.within.is_empty() {
                self.read_rows(ctx, query, left).await?
            } else {
                self.moments(ctx, sorting, query, place, left).await?
            });
        }
        found.truncate(most);
        Ok(found)
    }

    async fn read_rows(&self, ctx: &SecurityContext, query: RunQuery, most: usize) -> Answer<Vec<RunRow>> {
        let query = RunQuery { limit: u32::try_from(most).unwrap_or(u32::MAX), ..query };
        self.engine().store().list_runs(&Self::scope(ctx), &query).await.map_err(store_error)
    }

    /// Whole milliseconds until there are enough.
    async fn moments(
        &self,
        ctx: &SecurityContext,
        sorting: &Sorting,
        mut query: RunQuery,
        place: Option<&Place>,
        most: usize,
    ) -> Answer<Vec<RunRow>> {
        let size = most.max(READ);
        let (mut found, mut together) = (Vec::new(), Vec::<RunRow>::new());
        loop {
            let rows = self.read_rows(ctx, query.clone(), size).await?;
            let is_last = rows.len() < size;
            query.after = rows.last().map(|row| row.run_id.clone());
            for row in rows {
                if together.first().is_some_and(|first| moment(&first.run_id) != moment(&row.run_id)) {
                    sorting.sort(&mut together, place);
                    found.append(&mut together);
                }
                together.push(row);
            }
            if is_last {
                sorting.sort(&mut together, place);
                found.append(&mut together);
            }
            if is_last || found.len() >= most {
                return Ok(found);
            }
            if together.len() > MOMENT_MAX {
                return Err(errors::bad_request(format!(
                    "$orderby: more than {MOMENT_MAX} invocations began in one millisecond, and are ordered by `created_at` or `status` alone"
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use servo_entrypoint::odata::INVOCATIONS;

    use super::*;

    fn edges(order: &str, id: &str) -> String {
        let sorting = Sorting::of(Some(&OrderBy::parse(order, &INVOCATIONS).unwrap()));
        let place = Place { status: InvocationStatus::Queued, run_id: RunId::parse(id).unwrap() };
        sorting.edge(&place).to_string()
    }

    /// A millisecond is read as a whole, and an id that was not made here has none.
    #[test]
    fn a_millisecond_is_read_from_its_edge() {
        let made_here = "inv_0123456789abXYZ";
        assert_eq!(edges("created_at asc,status", made_here), "inv_0123456789ab");
        assert!(edges("created_at desc,status", made_here).starts_with("inv_0123456789abzzz"));
        // Behind `run_azzz` there would be `run_ab` once more, for ever.
        for order in ["created_at asc,status", "created_at desc,status"] {
            for id in ["run_a", "inv_7"] {
                assert_eq!(edges(order, id), id);
            }
        }
    }
}
