//! A page of one tenant's entrypoints, ended early where the documents exceed the bytes of a page.

use servo_store::entrypoints::{EntrypointOrder, EntrypointQuery, SortValue};

use crate::pipeline::params;
use crate::store::Reading;

/// Adds the question and says where its answer will stand. `whose` is a condition on `$1`.
pub(super) fn ask<'a>(
    read: &mut Reading<'a>,
    whose: &str,
    tenant: Option<&'a str>,
    query: &'a EntrypointQuery,
    bytes: i64,
) -> usize {
    let column = match query.order {
        EntrypointOrder::Created => "created_at",
        EntrypointOrder::Updated => "updated_at",
        EntrypointOrder::Address => "address",
    };
    let (behind, direction) = if query.ascending { (">", "ASC") } else { ("<", "DESC") };
    let order = format!("{column} {direction}, entrypoint_id {direction}, tenant_id {direction}");
    let kind = if query.order == EntrypointOrder::Address { "text" } else { "bigint" };
    let sql = format!(
        "SELECT e.* FROM (SELECT e.*, row_number() OVER page AS number,
                sum(octet_length(e.document)) OVER page AS total FROM (SELECT * FROM entrypoints
            WHERE {whose} AND ($2::text IS NULL OR address = $2)
                AND ($3::text IS NULL OR starts_with(address, $3))
                AND ($4::text[] IS NULL OR status = ANY ($4)) AND NOT ($5::boolean AND status = 'archived')
                AND ($6::text IS NULL OR owner_type = $6) AND ($7::text IS NULL OR owner_id = $7)
                AND ($8::text IS NULL OR owner_type <> 'user' OR owner_id = $8)
                AND ($9::text IS NULL OR adapter = $9) AND tags @> $10::text[]
                AND ($11::{kind} IS NULL OR ({column}, entrypoint_id, tenant_id) {behind} ($11, $12::text, $13::text))
            ORDER BY {order} LIMIT $14) e
            WINDOW page AS (ORDER BY {order} ROWS UNBOUNDED PRECEDING)) e
         WHERE e.number = 1 OR e.total <= $15::bigint ORDER BY {order}"
    );
    let after = query.after.as_ref();
    let mut params = params![
        tenant,
        query.address.as_deref(),
        query.address_prefix.as_deref(),
        (!query.statuses.is_empty()).then_some(&query.statuses),
        query.exclude_archived,
        query.owner_type.as_deref(),
        query.owner_id.as_deref(),
        query.subject.as_deref(),
        query.adapter.as_deref(),
        &query.tags,
    ];
    params.extend(match after.map(|after| &after.value) {
        Some(SortValue::Time(at)) => params![Some(at.as_millis())],
        Some(SortValue::Text(text)) => params![Some(text.as_str())],
        None if query.order == EntrypointOrder::Address => params![None::<&str>],
        None => params![None::<i64>],
    });
    params.extend(params![
        after.map(|after| after.id.as_str()),
        after.map(|after| after.tenant.as_str()),
        i64::from(query.limit),
        bytes,
    ]);
    read.query_built(sql, params)
}
