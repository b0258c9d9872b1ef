//! Dead letters, one row each, and what a redrive did.

use servo_wire::v1::{DeadLetterList, Redriven};

use super::{Style, View};
use crate::output::style::count;
use crate::output::table::{Cell, table};

impl View for DeadLetterList {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self
            .items
            .iter()
            .map(|letter| {
                vec![
                    Cell::whole(&letter.position),
                    Cell::whole(letter.run_id.as_str()),
                    Cell::new(&letter.run_seq.to_string()),
                    Cell::new(&letter.attempts.to_string()),
                    Cell::new(&style.time(letter.buried_at)),
                    Cell::new(&letter.last_error),
                ]
            })
            .collect();
        table(style.paint(), &["POSITION", "RUN", "SEQ", "ATTEMPTS", "GIVEN UP", "ERROR"], &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|letter| letter.position.clone()).collect()
    }

    fn more(&self) -> Option<String> {
        self.next_after.as_ref().map(|after| format!("--after {after}"))
    }
}

impl View for Redriven {
    fn table(&self, _: &Style) -> String {
        format!("{} will be published again\n", count(self.redriven, "event"))
    }
}
