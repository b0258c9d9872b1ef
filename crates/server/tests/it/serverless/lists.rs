//! Lists: pages forth and back, conditions, order, and what is wrong with a query.

use serde_json::{Value, json};

use super::support::{Api, FUNCTION, definition, paths, refused};

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn with_runs(count: usize) -> (Api, Vec<String>) {
    let api = Api::start().await;
    api.activate(&definition(FUNCTION)).await;
    let mut started = Vec::new();
    for _ in 0..count {
        started.push(api.begin(FUNCTION, &json!({})).await);
    }
    // Ids grow with the time; those of one millisecond are in no order of their own.
    started.sort_by(|a, b| b.cmp(a));
    (api, started)
}

/// SR-326, SR-327, SR-328, SR-332, SR-333, SR-334, SR-341: sixty items by pages of 25, forth and back, each once,
/// newest first.
async fn sixty_items_forth_and_back() {
    let (api, newest_first) = with_runs(60).await;
    let first = api.get("/invocations").await.json;
    assert_eq!(ids(&first), newest_first[..25]);
    assert_eq!(first["page_info"]["prev_cursor"], Value::Null);
    let mut pages = vec![first];
    while let Some(cursor) = pages.last().unwrap()["page_info"]["next_cursor"].as_str() {
        let next = api.get(&format!("/invocations?cursor={cursor}")).await.json;
        assert_eq!(pages.last().unwrap()["page_info"]["has_more"], json!(true));
        pages.push(next);
    }
    assert_eq!(pages.last().unwrap()["page_info"]["has_more"], json!(false));
    assert_eq!(pages.iter().flat_map(ids).collect::<Vec<_>>(), newest_first);
    let mut back = Vec::new();
    let mut page = pages.pop().unwrap();
    while let Some(cursor) = page["page_info"]["prev_cursor"].as_str() {
        page = api.get(&format!("/invocations?cursor={cursor}")).await.json;
        back.push(ids(&page));
    }
    back.reverse();
    assert_eq!(back, pages.iter().map(ids).collect::<Vec<_>>());
    assert_eq!(ids(&api.get("/invocations?limit=200").await.json), newest_first);
    let small = api.get("/invocations?limit=1").await.json;
    let cursor = small["page_info"]["next_cursor"].as_str().unwrap();
    let rest = ids(&api.get(&format!("/invocations?limit=59&cursor={cursor}")).await.json);
    assert_eq!(rest, newest_first[1..], "pages may have different sizes");
    let oldest = ids(&api.get("/invocations?%24orderby=created_at%20asc&limit=60").await.json);
    assert_eq!(oldest, newest_first.iter().rev().cloned().collect::<Vec<_>>());
}

/// SR-333, SR-516, SR-521: more than any page holds, of both lists, page by page.
async fn lists_longer_than_a_page() {
    let (api, newest_first) = with_runs(210).await;
    let mut registered = ids(&api.get("/entrypoints").await.json);
    for version in 2..=210 {
        registered.push(api.register(&definition(&FUNCTION.replace("echo.v1", &format!("echo.v{version}")))).await);
    }
    registered.sort_unstable();
    for (list, expected) in [("invocations", newest_first), ("entrypoints", registered)] {
        let (mut seen, mut sizes, mut query) = (Vec::new(), Vec::new(), "limit=100".to_owned());
        let mut times = Vec::new();
        loop {
            let page = api.get(&format!("/{list}?{query}")).await.json;
            seen.extend(ids(&page));
            times.extend(page["items"].as_array().unwrap().iter().map(|item| item["created_at"].to_string()));
            sizes.push((ids(&page).len(), page["page_info"]["has_more"].as_bool().unwrap()));
            let Some(cursor) = page["page_info"]["next_cursor"].as_str() else { break };
            query = format!("limit=100&cursor={cursor}");
        }
        assert_eq!(sizes, [(100, true), (100, true), (10, false)], "{list}");
        if list == "entrypoints" {
            // An id is made a moment before the time of the registration, so the two may have orders of their own.
            let stands: Vec<_> = times.iter().zip(&seen).collect();
            assert!(stands.is_sorted_by(|one, next| one > next), "{stands:?}");
            seen.sort_unstable();
        }
        assert_eq!(seen, expected, "{list}");
    }
    assert_eq!(ids(&api.get("/entrypoints?limit=200").await.json).len(), 200);
    assert_eq!(ids(&api.get("/entrypoints").await.json).len(), 25);
}

/// SR-339: by several fields, in the same direction and in different ones, page by page.
async fn orders_by_several_fields() {
    let api = Api::start().await;
    api.activate(&definition(FUNCTION)).await;
    let mut started = Vec::new();
    for number in 0..12 {
        let (params, status) =
            if number % 3 == 0 { (json!({"do": "hang"}), "running") } else { (json!({}), "succeeded") };
        started.push((api.begin(FUNCTION, &params).await, status));
    }
    let mut records = Vec::new();
    for (id, status) in &started {
        records.push(api.until(id, status).await);
    }
    let text = |record: &Value, name: &str| match name {
        "created_at" => record["timestamps"]["created_at"].as_str().unwrap().to_owned(),
        _ => record[name].as_str().unwrap().to_owned(),
    };
    for keys in [
        [("created_at", false), ("status", true), ("id", true)],
        [("created_at", true), ("status", false), ("id", true)],
        [("status", true), ("created_at", false), ("id", false)],
        [("status", true), ("created_at", true), ("id", false)],
        [("status", false), ("created_at", false), ("id", false)],
    ] {
        records.sort_by(|left, right| {
            let orders = keys.map(|(name, ascending)| {
                let order = text(left, name).cmp(&text(right, name));
                if ascending { order } else { order.reverse() }
            });
            orders.into_iter().find(|order| order.is_ne()).unwrap()
        });
        let order =
            keys.map(|(name, ascending)| format!("{name} {}", if ascending { "asc" } else { "desc" })).join(",");
        let (mut seen, mut more) = (Vec::new(), String::new());
        loop {
            let path = format!("/invocations?limit=5&%24orderby={}{more}", encoded(&order));
            let answer = api.get(&path).await;
            assert_eq!(answer.status, 200, "{order}: {}", answer.text);
            seen.extend(ids(&answer.json));
            let Some(cursor) = answer.json["page_info"]["next_cursor"].as_str() else { break };
            more = format!("&cursor={cursor}");
        }
        assert_eq!(seen, records.iter().map(|record| text(record, "id")).collect::<Vec<_>>(), "{order}");
    }
}

/// SR-335, SR-336, SR-337, SR-338: each operator finds what it should.
async fn conditions_restrict() {
    let (api, all) = with_runs(4).await;
    for id in &all {
        api.until(id, "succeeded").await;
    }
    let second = api.get(&format!("/invocations/{}", all[1])).await.json;
    let id = &all[1];
    for (filter, count) in [
        (format!("invocation_id eq '{id}'"), 1),
        (format!("invocation_id ne '{id}'"), 3),
        (format!("not (invocation_id eq '{id}')"), 3),
        (format!("invocation_id gt '{id}'"), 1),
        (format!("invocation_id ge '{id}'"), 2),
        (format!("invocation_id lt '{id}'"), 2),
        (format!("invocation_id le '{id}'"), 3),
        (format!("invocation_id in ('{id}','{}')", all[0]), 2),
        ("status eq 'succeeded' and created_at ge 2026-01-01T00:00:00.000Z".to_owned(), 4),
        ("status eq 'failed' or mode eq 'async'".to_owned(), 4),
        ("status eq 'failed' and mode eq 'async'".to_owned(), 0),
        (format!("correlation_id eq '{}'", second["observability"]["correlation_id"].as_str().unwrap()), 1),
        (format!("entrypoint_id eq '{FUNCTION}'"), 4),
    ] {
        let answer = api.get(&format!("/invocations?%24filter={}", encoded(&filter))).await;
        assert_eq!(answer.status, 200, "{filter}: {}", answer.text);
        assert_eq!(ids(&answer.json).len(), count, "{filter}");
    }
    for (query, count) in [("status=succeeded", 4), ("status=failed", 0), ("mode=async", 4), ("mode=sync", 0)] {
        assert_eq!(ids(&api.get(&format!("/invocations?{query}")).await.json).len(), count, "{query}");
    }
}

/// SR-333, SR-334, SR-340, SR-341: every fault of a query has its status.
async fn wrong_queries() {
    let (api, _) = with_runs(3).await;
    let page = api.get("/invocations?limit=1").await.json;
    let cursor = page["page_info"]["next_cursor"].as_str().unwrap();
    let tampered = format!("{}{}", &cursor[..cursor.len() - 1], if cursor.ends_with('A') { 'B' } else { 'A' });
    for query in [
        "%24filter=colour%20eq%20%27red%27".to_owned(),
        "%24filter=status".to_owned(),
        "%24filter=status%20eq%20%27nonsense%27".to_owned(),
        format!("%24filter={}", "(".repeat(5_000)),
        "%24orderby=colour".to_owned(),
        "%24orderby=created_at%20sideways".to_owned(),
        "status=nonsense".to_owned(),
        "colour=red".to_owned(),
        "limit=1&limit=2".to_owned(),
        "cursor=".to_owned(),
        "cursor=nonsense".to_owned(),
        format!("cursor={tampered}&limit=1"),
        format!("cursor={cursor}&limit=1&status=failed"),
        "%24filter=%FF".to_owned(),
        "correlation_id=%00".to_owned(),
        "%24filter=id%20eq%20%27a%00b%27".to_owned(),
        "%24filter=not%20(correlation_id%20in%20(%27%00%27))".to_owned(),
    ] {
        refused(&api.get(&format!("/invocations?{query}")).await, 400, "bad_request");
    }
    for list in ["invocations", "entrypoints"] {
        for limit in ["0", "201", "-1", "1.5", "many", ""] {
            let answer = api.get(&format!("/{list}?limit={limit}")).await;
            refused(&answer, 422, "validation");
            assert_eq!(paths(&answer), ["$.limit"]);
        }
        refused(&api.get(&format!("/{list}?colour=red")).await, 400, "bad_request");
    }
    for query in ["entrypoint_id_prefix=a*b", "entrypoint_id_prefix=%00", "tags=%00", "runtime=%00"] {
        refused(&api.get(&format!("/entrypoints?{query}")).await, 400, "bad_request");
    }
    let bulk = json!({"action": "cancel", "filter": "correlation_id eq '\0'"});
    refused(&api.post("/invocations:bulk", &bulk).await, 400, "bad_request");
    refused(&api.get("/invocations:counts?limit=1").await, 400, "bad_request");
}

crate::backend::on_every_store! {
    sixty_items_forth_and_back,
    lists_longer_than_a_page,
    orders_by_several_fields,
    conditions_restrict,
    wrong_queries,
}
