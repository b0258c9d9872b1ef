//! Pages that are limited in bytes as well as in rows: no reader can be made to hold a thousand of the largest payloads.

/// Counts what a page holds. A page ends before the item that would not fit, but never before its first one.
#[derive(Debug, Clone, Copy)]
pub struct PageBytes {
    left: usize,
    is_empty: bool,
}

impl PageBytes {
    pub fn new(max: usize) -> Self {
        Self { left: max, is_empty: true }
    }

    /// Whether the next item belongs to the page.
    pub fn takes(&mut self, bytes: usize) -> bool {
        let Some(left) = self.left.checked_sub(bytes) else {
            self.left = 0;
            return std::mem::take(&mut self.is_empty);
        };
        self.left = left;
        self.is_empty = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(max: usize, sizes: &[usize]) -> usize {
        let mut page = PageBytes::new(max);
        sizes.iter().take_while(|size| page.takes(**size)).count()
    }

    #[test]
    fn a_page_ends_before_what_does_not_fit() {
        assert_eq!(taken(10, &[4, 6, 1]), 2);
        assert_eq!(taken(10, &[4, 7, 1]), 1);
        assert_eq!(taken(10, &[11, 1]), 1);
        assert_eq!(taken(10, &[10, 0, 0, 1]), 3);
        assert_eq!(taken(0, &[5, 5]), 1);
        assert_eq!(taken(10, &[]), 0);
    }
}
