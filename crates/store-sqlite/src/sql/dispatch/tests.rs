//! The plans of claims, as SQLite explains them.

use rusqlite::Connection;
use servo_model::Timestamp;

use super::*;

fn plan(conn: &Connection, sql: &str) -> String {
    let mut steps = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let count = steps.parameter_count();
    let steps = steps.query_map(rusqlite::params_from_iter(vec![1; count]), |row| row.get::<_, String>(3)).unwrap();
    steps.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
}

/// A claim enters each index at its own tenant, however much the others have.
#[test]
fn a_claim_of_one_tenant_walks_over_nobody_elses_dispatches() {
    let conn = Connection::open_in_memory().unwrap();
    crate::schema::migrate(&conn, Timestamp::EPOCH).unwrap();
    let open = plan(&conn, OPEN);
    assert!(open.contains("INDEX dispatches_pending (tenant_id=? AND (queued_at,request_id)>(?,?))"), "{open}");
    assert!(open.contains("INDEX dispatches_notified (tenant_id=? AND epoch<?)"), "{open}");
    let left = plan(&conn, LEFT);
    assert!(left.contains("INDEX dispatches_notified (tenant_id>?)"), "{left}");
    assert!(!left.contains("TEMP B-TREE"), "{left}");
}
