//! Several things of one kind, one below the other.

use super::{Style, View};

pub(crate) struct Many<T>(pub(crate) Vec<T>);

impl<T: View> View for Many<T> {
    fn table(&self, style: &Style) -> String {
        self.0.iter().map(|item| item.table(style)).collect::<Vec<_>>().join("\n")
    }

    fn ids(&self) -> Vec<String> {
        self.0.iter().flat_map(View::ids).collect()
    }
}
