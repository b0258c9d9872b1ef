//! Log lines of runs. What a run has is summed up in `line_heads`, whose row also makes writers of one run take turns;
//! appends do not wait for them.

use async_trait::async_trait;
use servo_model::{RunId, TenantId};
use servo_store::lines::{Addition, LineHead, LineSource, LineStore, LogLine, prepare};
use servo_store::{Error, Result, Scope};

use crate::error::corrupt;
use crate::pipeline::{Pipeline, params};
use crate::pool::Connection;
use crate::rows;
use crate::store::PostgresStore;

const BEGIN_HEAD: &str = "INSERT INTO line_heads (run_id, tenant_id, first_number, last_number, bytes)
    SELECT run_id, tenant_id, 1, 0, 0 FROM runs WHERE run_id = $1 AND tenant_id = $2
    ON CONFLICT (run_id) DO NOTHING";
const HEAD: &str = "SELECT first_number, last_number, bytes FROM line_heads
    WHERE run_id = $1 AND tenant_id = $2 FOR UPDATE";
const MOVE_HEAD: &str = "UPDATE line_heads SET first_number = $3, last_number = $4, bytes = $5
    WHERE run_id = $1 AND tenant_id = $2";

const OLDEST: &str = "SELECT octet_length(text)::bigint AS size FROM lines
    WHERE run_id = $1 AND number >= $2 ORDER BY number LIMIT $3";
const REMOVE_OLDEST: &str = "DELETE FROM lines WHERE run_id = $1 AND number < $2";
const INSERT: &str = "INSERT INTO lines (number, at, run_id, tenant_id, request_id, source, text)
    SELECT u.number, u.at, $1, $2, u.request_id, u.source, u.text
    FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[]) AS u (number, at, request_id, source, text)";

const RUN: &str = "SELECT FROM runs WHERE run_id = $1 AND ($2::text IS NULL OR tenant_id = $2)";
const READ: &str = "SELECT number, at, request_id, source, text FROM lines
    WHERE run_id = $1 AND number > $2 AND ($4::text IS NULL OR tenant_id = $4) ORDER BY number LIMIT $3";

/// Lines looked at together while old ones leave.
const OLDEST_MAX: i64 = 500;

/// Lets the oldest lines go until the addition fits beside the others.
async fn make_room(connection: &Connection, run_id: &RunId, head: &mut LineHead, addition: &Addition) -> Result<()> {
    while !head.has_room_for(addition) {
        let mut pipeline = Pipeline::new();
        let oldest = pipeline.query(OLDEST, params![run_id.as_str(), rows::bound(head.first), OLDEST_MAX]);
        let answers = connection.ask(pipeline).await?;
        let sizes = answers[oldest].rows.iter().map(|row| rows::number(row, "size")).collect::<Result<Vec<_>>>()?;
        if sizes.is_empty() {
            return Err(corrupt("a run has fewer log lines than are counted"));
        }
        for size in sizes {
            if head.has_room_for(addition) {
                break;
            }
            head.drop_first(size);
        }
    }
    Ok(())
}

#[async_trait]
impl LineStore for PostgresStore {
    async fn put_lines(&self, run_id: &RunId, tenant: &TenantId, lines: Vec<LogLine>) -> Result<()> {
        self.core.check_open()?;
        let lines = prepare(lines, &self.core.limits)?;
        let connection = self.core.pools.borrow(&self.core.pools.tenant).await?;
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(super::SET_TENANTS, params![tenant.as_str()]);
        pipeline.query(BEGIN_HEAD, params![run_id.as_str(), tenant.as_str()]);
        let head = pipeline.query(HEAD, params![run_id.as_str(), tenant.as_str()]);
        let answers = connection.ask(pipeline).await?;
        let Some(row) = answers[head].rows.first() else {
            connection.roll_back().await;
            return Err(Error::NotFound);
        };
        let mut head = LineHead {
            first: rows::number(row, "first_number")?,
            last: rows::number(row, "last_number")?,
            bytes: rows::number(row, "bytes")?,
        };
        let addition = head.add(lines, &self.core.limits);
        make_room(&connection, run_id, &mut head, &addition).await?;
        let mut pipeline = Pipeline::new();
        pipeline.query(REMOVE_OLDEST, params![run_id.as_str(), rows::bound(head.first)]);
        if !addition.lines.is_empty() {
            let of = |text: for<'a> fn(&'a LogLine) -> &'a str| {
                addition.lines.iter().map(|(_, line)| text(line)).collect::<Vec<_>>()
            };
            let numbers: Vec<_> = addition.lines.iter().map(|(number, _)| rows::bound(*number)).collect();
            let times: Vec<_> = addition.lines.iter().map(|(_, line)| line.at.as_millis()).collect();
            let (requests, sources) = (of(|line| &line.request_id), of(|line| line.source.as_str()));
            let texts = of(|line| &line.text);
            let params = params![run_id.as_str(), tenant.as_str(), numbers, times, requests, sources, texts];
            pipeline.query(INSERT, params);
        }
        let head = head.with(&addition);
        let (first, last, bytes) = (rows::bound(head.first), rows::bound(head.last), rows::bound(head.bytes));
        pipeline.query(MOVE_HEAD, params![run_id.as_str(), tenant.as_str(), first, last, bytes]);
        connection.commit(pipeline).await
    }

    async fn read_lines(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<Vec<(u64, LogLine)>> {
        let mut read = self.reading(scope);
        let tenant = read.tenant();
        let run = read.query(RUN, params![run_id.as_str(), tenant]);
        let lines = read.query(READ, params![run_id.as_str(), rows::bound(after), i64::from(limit), tenant]);
        let answers = self.read(read).await?;
        if answers[run].rows.is_empty() {
            return Err(Error::NotFound);
        }
        let mut list = Vec::with_capacity(answers[lines].rows.len());
        for row in &answers[lines].rows {
            let line = LogLine {
                at: rows::time(row, "at")?,
                request_id: rows::get(row, "request_id")?,
                source: LineSource::parse(rows::get(row, "source")?)
                    .ok_or_else(|| corrupt("a log line has an unknown source"))?,
                text: rows::get(row, "text")?,
            };
            list.push((rows::number(row, "number")?, line));
        }
        Ok(list)
    }
}
