//! Filters and orders of lists.

use proptest::prelude::*;
use servo_entrypoint::odata::{
    DEPTH_MAX, Direction, ENTRYPOINTS, Filter, INVOCATIONS, Literal, OrderBy, Row, TERMS_MAX,
};
use servo_model::Timestamp;

use crate::check::{check_gts, check_query};

#[derive(Debug, Clone)]
struct Run {
    id: &'static str,
    status: &'static str,
    created: &'static str,
}

impl Row for Run {
    fn value(&self, field: &str) -> Literal {
        match field {
            "invocation_id" | "id" => Literal::Text(self.id.to_owned()),
            "status" => Literal::Text(self.status.to_owned()),
            "created_at" => Literal::Time(Timestamp::parse(self.created).unwrap()),
            _ => Literal::Text(String::new()),
        }
    }
}

fn runs() -> [Run; 4] {
    [
        Run { id: "a", status: "running", created: "2025-12-31T23:59:59.999Z" },
        Run { id: "b", status: "running", created: "2026-01-01T00:00:00.000Z" },
        Run { id: "c", status: "queued", created: "2026-02-01T00:00:00.000Z" },
        Run { id: "d'", status: "failed", created: "2026-01-01T00:00:00.000Z" },
    ]
}

fn found(filter: &str) -> String {
    let filter = Filter::parse(filter, &INVOCATIONS).unwrap_or_else(|error| panic!("{filter}: {error}"));
    runs().iter().filter(|run| filter.matches(*run)).map(|run| run.id).collect()
}

fn fault(filter: &str) -> String {
    match Filter::parse(filter, &INVOCATIONS) {
        Ok(filter) => panic!("{filter:?}"),
        Err(error) => error.to_string(),
    }
}

/// SR-335, SR-336, SR-337, SR-338: operators, lists, and how they bind.
#[test]
fn filters_find_what_they_say() {
    for (filter, ids) in [
        ("status eq 'running' and created_at ge 2026-01-01T00:00:00.000Z", "b"),
        ("status eq 'running'", "ab"),
        ("status ne 'running'", "cd'"),
        ("created_at lt 2026-01-01T00:00:00Z", "a"),
        ("created_at le 2026-01-01T00:00:00Z", "abd'"),
        ("created_at gt 2026-01-01T00:00:00Z", "c"),
        ("created_at ge 2026-01-01T01:00:00+01:00", "bcd'"),
        ("status in ('running','queued')", "abc"),
        ("status in ( 'failed' )", "d'"),
        ("not status eq 'running'", "cd'"),
        ("not (status eq 'running' or status eq 'queued')", "d'"),
        ("not not status eq 'failed'", "d'"),
        ("invocation_id eq 'a' or status eq 'running' and invocation_id eq 'b'", "ab"),
        ("(invocation_id eq 'a' or status eq 'running') and invocation_id eq 'b'", "b"),
        ("id eq 'd'''", "d'"),
        ("invocation_id gt 'b' and invocation_id lt 'd'", "c"),
        ("\tstatus  eq 'queued' ", "c"),
    ] {
        assert_eq!(found(filter), ids, "{filter}");
    }
}

/// SR-340, SR-341: what is not understood is refused, with the place and the way out.
#[test]
fn wrong_filters_say_why() {
    for (filter, message) in [
        ("", "a field is missing"),
        ("colour eq 'red'", "no field `colour`; these exist: invocation_id"),
        ("Status eq 'running'", "no field `Status`"),
        ("status", "after `status` comes"),
        ("status is 'running'", "no operator `is`"),
        ("status eq", "takes a text in single quotes"),
        ("status eq running", "takes a text in single quotes (at character 11)"),
        ("status eq 'runing'", "`status` is one of: queued"),
        ("status gt 'running'", "`status` has no order"),
        ("entrypoint_id gt 'gts.'", "`entrypoint_id` has no order; use eq, ne or in"),
        ("status eq 'running", "has no end"),
        ("status eq \"running\"", "means nothing here"),
        ("status eq 'running' status eq 'queued'", "join further conditions"),
        ("(status eq 'running'", "`)` is missing"),
        ("status eq 'running')", "the filter ends here"),
        ("status in ()", "takes a text"),
        ("status in ('running'", "`,` or `)` is missing"),
        ("created_at ge '2026-01-01T00:00:00Z'", "takes a bare time"),
        ("created_at ge yesterday", "not an RFC 3339 time"),
        ("created_at ge 2026-02-30T00:00:00Z", "not an RFC 3339 time"),
        ("startswith(status,'r')", "no field `startswith`"),
        ("status eq null", "takes a text"),
        ("ä", "`ä` means nothing here"),
    ] {
        assert!(fault(filter).contains(message), "{filter}: {}", fault(filter));
    }
}

#[test]
fn filters_are_bounded() {
    let term = "status eq 'running'";
    let nested = |depth: usize| format!("{}{term}{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&nested(DEPTH_MAX), &INVOCATIONS).is_ok());
    assert!(fault(&nested(DEPTH_MAX + 1)).contains("levels deep"));
    assert!(fault(&nested(1_500)).contains("levels deep"));
    assert!(fault(&format!("{}{term}", "not ".repeat(900))).contains("levels deep"));
    let joined = |count: usize| vec![term; count].join(" or ");
    assert!(Filter::parse(&joined(TERMS_MAX), &INVOCATIONS).is_ok());
    assert!(fault(&joined(TERMS_MAX + 1)).contains("comparisons"));
    assert!(fault(&format!("status in ({})", vec!["'failed'"; 101].join(","))).contains("at most 100 values"));
    assert!(fault(&" ".repeat(5_000)).contains("bytes"));
}

/// SR-339, SR-341: fields with a direction; newest first by default; the id breaks ties.
#[test]
fn orders_have_directions_and_no_ties() {
    let sorted = |order: OrderBy| -> String {
        let mut runs = runs();
        runs.sort_by(|left, right| order.compare(left, right));
        runs.iter().map(|run| run.id).collect()
    };
    let by = |text: &str| sorted(OrderBy::parse(text, &INVOCATIONS).unwrap());
    assert_eq!(by("created_at desc,status asc"), "cd'ba");
    assert_eq!(by("created_at"), "abd'c");
    assert_eq!(by("status , invocation_id desc"), "d'cba");
    assert_eq!(sorted(OrderBy::newest(&INVOCATIONS)), "cd'ba");
    let keys = OrderBy::parse("status desc", &ENTRYPOINTS).unwrap();
    let names: Vec<_> = keys.keys().iter().map(|key| (key.field.name, key.direction)).collect();
    assert_eq!(names, [("status", Direction::Desc), ("id", Direction::Desc)]);
    for wrong in
        ["", "colour", "status up", "status,", ",status", "status asc desc", "status,status", "'status'", "(status)"]
    {
        assert!(OrderBy::parse(wrong, &INVOCATIONS).is_err(), "{wrong}");
    }
    assert!(OrderBy::parse("id,status,title,version,runtime", &ENTRYPOINTS).is_err());
    assert!(OrderBy::parse("mode", &INVOCATIONS).is_err(), "no index has that order");
}

/// SR-341: the fields that the filters of the published interface have, and the ids, statuses and times.
#[test]
fn the_fields_cover_the_filters() {
    for name in ["tenant_id", "entrypoint_id", "status", "mode", "correlation_id", "invocation_id", "created_at"] {
        assert!(INVOCATIONS.field(name).is_some(), "{name}");
    }
    // Invocations have no such time, so nothing offers it.
    assert!(!fault("updated_at gt 2026-01-01T00:00:00Z").contains("updated_at,"));
    let order = OrderBy::parse("updated_at", &INVOCATIONS).unwrap_err().to_string();
    assert!(order.contains("no order by `updated_at`; these exist: invocation_id, id, status, created_at"), "{order}");
    for name in ["tenant_id", "entrypoint_id", "status", "owner_type", "runtime", "id", "created_at", "updated_at"] {
        assert!(ENTRYPOINTS.field(name).is_some(), "{name}");
    }
    // SR-216: a filter that asks for archived entrypoints shows them, and no other does.
    for (text, asks) in [
        ("status eq 'archived' or title eq 'x'", true),
        ("status in ('draft', 'archived')", true),
        ("not (status ne 'archived')", true),
        ("not (title eq 'x' or status eq 'archived')", false),
        ("status ne 'active'", false),
        ("status eq 'active' or title eq 'archived'", false),
    ] {
        let filter = Filter::parse(text, &ENTRYPOINTS).unwrap();
        assert_eq!(filter.asks_for("status", "archived"), asks, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_has_an_answer(text in any::<String>()) {
        check_query(&text);
        check_gts(&text);
    }

    /// Texts made of the words of the languages go deeper into the parsers.
    #[test]
    fn any_sentence_has_an_answer(
        words in prop::collection::vec(prop::sample::select(&[
            "status", "created_at", "eq", "in", "and", "or", "not", "(", ")", ",", "'failed'", "'", "''", "asc", "desc",
            "2026-01-01T00:00:00Z", "gts.", "x.core.serverless.adapter.a.v1~", "v1", "~", ".", "*", "ä",
        ][..]), 0..30),
        spaced in any::<bool>(),
    ) {
        let text = words.join(if spaced { " " } else { "" });
        check_query(&text);
        check_gts(&text);
    }
}

/// A filter wants a value when it names it, not when it does not exclude it.
#[test]
fn filters_say_which_values_they_want() {
    let wants = |text: &str| Filter::parse(text, &INVOCATIONS).unwrap().asks_for("status", "dead_lettered");
    for text in [
        "status eq 'dead_lettered'",
        "mode eq 'async' and status in ('failed','dead_lettered')",
        "status eq 'failed' or status eq 'dead_lettered'",
        "not (status ne 'dead_lettered')",
    ] {
        assert!(wants(text), "{text}");
    }
    for text in [
        "status ne 'succeeded'",
        "status eq 'failed'",
        "not (status eq 'dead_lettered')",
        "not (status in ('dead_lettered'))",
        "correlation_id eq 'dead_lettered'",
    ] {
        assert!(!wants(text), "{text}");
    }
}
