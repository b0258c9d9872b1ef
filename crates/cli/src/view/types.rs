//! Published types.

use servo_client::TypeItem;
use servo_entrypoint::Page;

use super::{Style, View};
use crate::output::table::{Cell, table};

impl View for Page<TypeItem> {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self.items.iter().map(|item| vec![Cell::whole(&item.id)]).collect();
        table(style.paint(), &["TYPE"], &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|item| item.id.clone()).collect()
    }
}
