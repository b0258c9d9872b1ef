//! The authority's row.

use servo_store::{AuthorityRow, Result};

use crate::pipeline::{Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

/// Always one row: the time after the locks were taken, and the authority if there is one.
pub(crate) const CLOCK_AND_AUTHORITY: &str = "SELECT
        COALESCE($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now,
        a.owner, a.lease_id, a.leased_until, a.leased_until_at, a.epoch, a.resigned
    FROM (VALUES (true)) AS one (only_row) LEFT JOIN authority a ON a.only_row = one.only_row";

const PUT: &str = "INSERT INTO authority (owner, lease_id, leased_until, leased_until_at, epoch, resigned)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (only_row) DO UPDATE SET owner = EXCLUDED.owner, lease_id = EXCLUDED.lease_id,
        leased_until = EXCLUDED.leased_until, leased_until_at = EXCLUDED.leased_until_at, epoch = EXCLUDED.epoch,
        resigned = EXCLUDED.resigned";

pub(crate) fn put(pipeline: &mut Pipeline<'_>, row: &AuthorityRow) -> Result<()> {
    let AuthorityRow { owner, lease_id, leased_until, leased_until_at, epoch, resigned } = row.clone();
    let epoch = rows::exact("epoch", epoch)?;
    pipeline.query(PUT, params![owner, lease_id, leased_until, leased_until_at.as_millis(), epoch, resigned]);
    Ok(())
}

impl PostgresStore {
    pub(crate) async fn read_authority(&self) -> Result<Option<AuthorityRow>> {
        let rows = self.engine_read(CLOCK_AND_AUTHORITY, params![None::<i64>]).await?;
        rows.first().map_or(Ok(None), rows::authority)
    }
}
