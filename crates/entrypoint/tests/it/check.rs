//! Properties of the parsers on any text. The fuzz targets run the same functions on more of it.

use servo_entrypoint::gts::{Address, Gts, limits_of, matches_prefix};
use servo_entrypoint::odata::{ENTRYPOINTS, Filter, INVOCATIONS, Literal, OrderBy, Row};
use servo_model::Timestamp;

struct Same;

impl Row for Same {
    fn value(&self, field: &str) -> Literal {
        if field.ends_with("_at") { Literal::Time(Timestamp::EPOCH) } else { Literal::Text("x".to_owned()) }
    }
}

/// A query has an answer: an AST that can be evaluated, or a fault inside the text.
pub(crate) fn check_query(text: &str) {
    for resource in [&ENTRYPOINTS, &INVOCATIONS] {
        match Filter::parse(text, resource) {
            Ok(filter) => {
                let found = filter.matches(&Same);
                assert_ne!(found, Filter::Not(Box::new(filter)).matches(&Same));
            }
            Err(error) => assert!(error.at <= text.len() + 1),
        }
        match OrderBy::parse(text, resource) {
            Ok(order) => assert!(order.compare(&Same, &Same).is_eq() && !order.keys().is_empty()),
            Err(error) => assert!(error.at <= text.len() + 1),
        }
    }
}

/// An id that was read is made of its parts, and each step of its chain is an id.
pub(crate) fn check_gts(text: &str) {
    let _ = (Address::parse(text), limits_of(text), matches_prefix(text, text));
    let Ok(id) = Gts::parse(text) else { return };
    assert_eq!(format!("gts.{}~", id.segments().collect::<Vec<_>>().join("~")), text);
    assert_eq!(id.chain().last(), Some(text));
    assert!(id.chain().all(|base| Gts::parse(base).is_ok() && id.derives_from(base)));
    if let Some(limits) = limits_of(text) {
        assert!(limits.len() > 512 || Gts::parse(&limits).is_ok());
    }
}
