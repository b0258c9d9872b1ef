//! Lists as a whole: pages while the list changes, orders by several fields, and the lists of the published interface.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use servo_entrypoint::odata::{ENTRYPOINTS, Filter, INVOCATIONS, Literal, OrderBy, Row};
use servo_entrypoint::{
    Entrypoint, EntrypointListFilter, InvocationListFilter, InvocationRecord, InvocationStatus as S, Page, PageQuery,
    RestRuntime as _, RuntimeErrorPayload, ServerlessRuntime as _,
};

use super::support::{Bed, FUNCTION, definition, me};

/// A draft of its own address, over the one function that there is. Gives its id.
fn draft(bed: &Bed, version: usize, title: &str) -> String {
    let mut document = definition(FUNCTION, "f");
    document["entrypoint_id"] = format!("{FUNCTION}vendor.app.f.v{version}~").into();
    document["title"] = title.into();
    bed.register(&document).unwrap().id.unwrap()
}

/// A bed with that function, and no entrypoint that is not archived.
fn bed(seed: u64) -> Bed {
    let bed = Bed::new(seed);
    bed.functions.define_as(
        &bed.world,
        "f",
        &servo_model::function::FunctionSpec {
            durable: false,
            ..servo_model::function::FunctionSpec::new(servo_model::function::Reach::InProcess)
        },
        |_| async move { Ok("{}".to_owned()) },
    );
    bed
}

fn remove(bed: &Bed, id: &str) {
    let id = id.to_owned();
    bed.run(|serverless| async move { serverless.delete_registration(&me(), &id).await }).unwrap();
}

fn page(
    bed: &Bed,
    order: Option<&str>,
    limit: u32,
    cursor: Option<String>,
) -> Result<Page<Entrypoint>, RuntimeErrorPayload> {
    let order = order.map(|text| OrderBy::parse(text, &ENTRYPOINTS).unwrap());
    let page = PageQuery { limit: Some(limit), cursor, filter: None, order };
    let filter = EntrypointListFilter { page, ..EntrypointListFilter::default() };
    bed.run(|serverless| async move { serverless.page_entrypoints(&me(), filter).await })
}

fn ids(page: &Page<Entrypoint>) -> Vec<String> {
    page.items.iter().map(|entrypoint| entrypoint.id.clone().unwrap()).collect()
}

/// SR-326, SR-327, SR-328: sixty entrypoints page by page, forth and back by pages of another size, each once and in order, while
/// others are registered and removed between the pages.
#[test]
fn entrypoints_come_and_go_between_pages() {
    for (seed, order) in [(101, None), (102, Some("title")), (103, Some("title desc,created_at")), (104, Some("id"))] {
        let bed = bed(seed);
        let mut version = 0;
        let mut another = |title: usize| {
            version += 1;
            // Several of one title, and several of one time.
            if version % 3 == 0 {
                bed.world.pass(Duration::from_millis(1));
            }
            draft(&bed, version, &format!("t{title}"))
        };
        for number in 0..60 {
            another(number * 7 % 5);
        }
        let whole = ids(&page(&bed, order, 200, None).unwrap());
        assert_eq!(whole.len(), 60);
        let mut gone = BTreeSet::new();
        let (mut seen, mut cursor, mut last) = (Vec::new(), None, None);
        for number in 0.. {
            let found = page(&bed, order, 7, cursor).unwrap();
            assert_eq!(found.page_info.has_more, found.page_info.next_cursor.is_some());
            assert_eq!(found.page_info.prev_cursor.is_some(), number > 0);
            seen.extend(ids(&found));
            cursor = found.page_info.next_cursor.clone();
            last = Some(found);
            if cursor.is_none() {
                break;
            }
            if number == 2 {
                // One that was seen, the one at which the next page begins, and one that nobody will see.
                for id in [&seen[3], seen.last().unwrap(), &whole[40]] {
                    remove(&bed, id);
                    gone.insert(id.clone());
                }
                for title in 0..5 {
                    another(title);
                }
            }
        }
        let unseen = &whole[40];
        let old = |ids: &[String]| ids.iter().filter(|id| whole.contains(id)).cloned().collect::<Vec<_>>();
        let expected: Vec<_> = whole.iter().filter(|id| *id != unseen).cloned().collect();
        assert_eq!(old(&seen), expected, "{order:?}");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "{order:?}: each once");

        let mut back = last.unwrap();
        let mut seen = ids(&back);
        let mut number = 0;
        while let Some(cursor) = back.page_info.prev_cursor.take() {
            number += 1;
            back = page(&bed, order, 11, Some(cursor)).unwrap();
            assert!(back.page_info.has_more);
            seen.splice(0..0, ids(&back));
            if number == 1 {
                for id in [seen.last().unwrap().clone(), seen[0].clone()] {
                    remove(&bed, &id);
                }
                for title in 0..5 {
                    another(title);
                }
            }
        }
        let expected: Vec<_> = whole.iter().filter(|id| !gone.contains(*id)).cloned().collect();
        assert_eq!(old(&seen), expected, "{order:?}: back");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "{order:?}: back, each once");
    }
}

/// SR-327, SR-328: a page of which nothing is left is empty, and leads back to all that is.
#[test]
fn a_page_that_is_gone_leads_back() {
    let bed = bed(105);
    let drafts: Vec<_> = (1..=4).map(|version| draft(&bed, version, &format!("t{version}"))).collect();
    let first = page(&bed, Some("title"), 2, None).unwrap();
    let second = page(&bed, Some("title"), 2, first.page_info.next_cursor.clone()).unwrap();
    for id in &drafts[2..] {
        remove(&bed, id);
    }
    let empty = page(&bed, Some("title"), 2, first.page_info.next_cursor).unwrap();
    assert_eq!((empty.items.len(), empty.page_info.has_more), (0, false));
    let back = page(&bed, Some("title"), 2, empty.page_info.prev_cursor).unwrap();
    assert_eq!(ids(&back), drafts[..2]);
    assert_eq!((&back.page_info.prev_cursor, back.page_info.has_more), (&None, false));
    for id in &drafts[..2] {
        remove(&bed, id);
    }
    let late = draft(&bed, 5, "t5");
    let empty = page(&bed, Some("title"), 2, second.page_info.prev_cursor).unwrap();
    assert_eq!((empty.items.len(), empty.page_info.has_more), (0, true));
    assert_eq!(ids(&page(&bed, Some("title"), 2, empty.page_info.next_cursor).unwrap()), [late]);
}

/// SR-334: the longest texts fit into a cursor.
#[test]
fn a_cursor_holds_the_longest_texts() {
    let bed = bed(106);
    for version in 1..=3 {
        draft(&bed, version, &"\u{1F600}".repeat(256));
    }
    let order = Some("title,entrypoint_id,version,runtime");
    let first = page(&bed, order, 1, None).unwrap();
    assert_eq!(page(&bed, order, 2, first.page_info.next_cursor).unwrap().items.len(), 2);
}

struct Listed(InvocationRecord);

impl Row for Listed {
    fn value(&self, field: &str) -> Literal {
        match field {
            "created_at" => Literal::Time(self.0.timestamps.created_at),
            "status" => Literal::Text(self.0.status.as_str().to_owned()),
            _ => Literal::Text(self.0.invocation_id.clone()),
        }
    }
}

/// SR-339, SR-341: every sequence of fields and directions is the order of the list, page by page and back, also among those of one
/// millisecond.
#[test]
fn invocations_are_ordered_by_several_fields() {
    let bed = Bed::new(107);
    let works = bed.function("works", |_| async move { Ok("{}".to_owned()) });
    let hangs = bed.function("hangs", |_| std::future::pending());
    let mut started = Vec::new();
    for together in [1, 7, 2, 5] {
        bed.world.pass(Duration::from_secs(1));
        // Time stands still meanwhile.
        for number in 0..together {
            let address = if number % 2 == 0 { &works } else { &hangs };
            let id = bed.start(address, json!({})).unwrap().record.invocation_id;
            started.push((id, if number % 2 == 0 { S::Succeeded } else { S::Running }));
        }
    }
    for (id, status) in &started {
        bed.until(id, *status);
    }
    let page = |order: &str, limit: u32, cursor: Option<String>| {
        let order = Some(OrderBy::parse(order, &INVOCATIONS).unwrap());
        let page = PageQuery { limit: Some(limit), cursor, filter: None, order };
        let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
        bed.run(|serverless| async move { serverless.page_invocations(&me(), filter).await }).unwrap()
    };
    let ids = |page: &Page<InvocationRecord>| {
        page.items.iter().map(|record| record.invocation_id.clone()).collect::<Vec<_>>()
    };
    let mut records: Vec<_> = page("id", 200, None).items.into_iter().map(Listed).collect();
    let times: BTreeSet<_> = records.iter().map(|listed| listed.0.timestamps.created_at).collect();
    assert_eq!((records.len(), times.len()), (15, 4), "several of one millisecond");
    for order in [
        "created_at desc,status asc",
        "created_at desc,status desc",
        "created_at,status desc",
        "created_at,status,id desc",
        "created_at desc,id",
        "created_at,id",
        "status,created_at desc",
        "status desc,created_at",
        "status desc,created_at desc",
        "status,created_at,id desc",
        "status desc,id",
        "status,invocation_id",
        "id desc,status",
    ] {
        let by = OrderBy::parse(order, &INVOCATIONS).unwrap();
        records.sort_by(|left, right| by.compare(left, right));
        let expected: Vec<_> = records.iter().map(|listed| listed.0.invocation_id.clone()).collect();
        for limit in [1, 4, 15] {
            let mut found = page(order, limit, None);
            let mut seen = ids(&found);
            while let Some(cursor) = found.page_info.next_cursor.take() {
                found = page(order, limit, Some(cursor));
                seen.extend(ids(&found));
            }
            assert_eq!(seen, expected, "{order} by {limit}");
            let mut seen = ids(&found);
            while let Some(cursor) = found.page_info.prev_cursor.take() {
                found = page(order, limit + 2, Some(cursor));
                seen.splice(0..0, ids(&found));
            }
            assert_eq!(seen, expected, "{order} by {limit}, back");
        }
    }
}

/// SR-516, SR-521: without a page in the filter the published lists are whole, in every order; with one they are that page.
#[test]
fn the_published_lists_are_whole() {
    let bed = bed(108);
    let document = definition(FUNCTION, "f");
    let address = bed.register(&document).unwrap().entrypoint_id;
    bed.act(&address, servo_entrypoint::EntrypointStatusAction::Activate).unwrap();
    for version in 2..=60 {
        draft(&bed, version, "t");
    }
    let all: BTreeSet<_> = (0..260).map(|_| bed.start(&address, json!({})).unwrap().record.invocation_id).collect();
    let entrypoints = |page: PageQuery| {
        let filter = EntrypointListFilter { page, ..EntrypointListFilter::default() };
        bed.run(|serverless| async move { serverless.list_entrypoints(&me(), filter).await }).unwrap()
    };
    let invocations = |page: PageQuery| {
        let filter = InvocationListFilter { page, ..InvocationListFilter::default() };
        let found = bed.run(|serverless| async move { serverless.list_invocations(&me(), filter).await }).unwrap();
        found.into_iter().map(|record| record.invocation_id).collect::<Vec<_>>()
    };
    assert_eq!(entrypoints(PageQuery::default()).len(), 60);
    assert_eq!(entrypoints(PageQuery { limit: Some(7), ..PageQuery::default() }).len(), 7);
    for order in [None, Some("created_at"), Some("created_at desc,status"), Some("status,created_at desc")] {
        let order = order.map(|text| OrderBy::parse(text, &INVOCATIONS).unwrap());
        let found = invocations(PageQuery { order, ..PageQuery::default() });
        assert_eq!((found.len(), &found.into_iter().collect::<BTreeSet<_>>()), (260, &all));
    }
    let (none, one) = (format!("id lt '{}'", all.first().unwrap()), format!("id eq '{}'", all.first().unwrap()));
    for (filter, expected) in [(none, 0), (one, 1)] {
        let filter = Some(Filter::parse(&filter, &INVOCATIONS).unwrap());
        assert_eq!(invocations(PageQuery { filter, ..PageQuery::default() }).len(), expected);
    }
    assert_eq!(invocations(PageQuery { limit: Some(7), ..PageQuery::default() }).len(), 7);
    assert!(bed.run(|serverless| async move {
        let nobody = super::support::caller("eve", "other");
        serverless.list_invocations(&nobody, InvocationListFilter::default()).await.unwrap().is_empty()
    }));
}
