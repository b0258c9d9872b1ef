//! Alerts, one row each.

use servo_wire::v1::AlertList;

use super::{Style, View};
use crate::output::table::{Cell, table};

impl View for AlertList {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self
            .items
            .iter()
            .map(|alert| {
                vec![
                    Cell::status(&format!("{:?}", alert.severity)),
                    Cell::new(alert.code.as_str()),
                    Cell::whole(&alert.subject),
                    Cell::new(&alert.count.to_string()),
                    Cell::new(&style.time(alert.first_at)),
                    Cell::new(&style.time(alert.last_at)),
                    Cell::new(&alert.message),
                ]
            })
            .collect();
        table(style.paint(), &["SEVERITY", "CODE", "ABOUT", "TIMES", "FIRST", "LAST", "MESSAGE"], &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|alert| alert.subject.clone()).collect()
    }
}
