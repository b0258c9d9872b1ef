//! The allocator of the programs: mimalloc. It does nothing of its own; it only asks mimalloc in the cheaper of its two ways.
//!
//! Rust names an alignment with every request, and the usual binding passes it on. mimalloc 3 then takes its way for unusual
//! alignments: most blocks over a kilobyte become larger than asked for and are marked, which makes freeing all blocks of their
//! page slower. Alignments up to 16 bytes, which is nearly all, need none of that: every block of more than 8 bytes has them.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

/// To be the global allocator of a program.
#[derive(Debug)]
pub struct Heap;

/// Blocks of more than a word are aligned to two.
const WORD: usize = size_of::<usize>();

/// Whether every block of a size has an alignment.
#[inline]
const fn is_usual(size: usize, align: usize) -> bool {
    align <= WORD || (align <= 2 * WORD && size > WORD)
}

// SAFETY: mimalloc hands out blocks that are nobody else's, of at least the size asked for, and aligned as `is_usual` says or as
// it was asked. Its blocks are freed and resized the same way however they were asked for.
#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: both take any size; an alignment of a layout is a power of two.
        let block = unsafe { if is_usual(size, align) { mi_malloc(size) } else { mi_malloc_aligned(size, align) } };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as above.
        let block = unsafe { if is_usual(size, align) { mi_zalloc(size) } else { mi_zalloc_aligned(size, align) } };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller has it from here.
        unsafe { mi_free(block.cast::<c_void>()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (block, align) = (block.cast::<c_void>(), layout.align());
        // SAFETY: the caller has the block from here, and asks for a size that is not zero.
        let block = unsafe {
            if is_usual(size, align) { mi_realloc(block, size) } else { mi_realloc_aligned(block, size, align) }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many blocks of each kind, so that no single one is aligned by chance.
    #[test]
    #[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
    fn blocks_are_aligned_as_asked_also_after_they_were_resized() {
        let sizes = (1..130).chain([511, 1_000, 1_025, 3_000, 9_001, 70_000, 1_000_000]);
        for size in sizes {
            for align in [1, 2, 4, 8, 16, 32, 64, 128, 4_096] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let mut blocks = Vec::new();
                // SAFETY: every block is given back once, with the layout that it has then.
                unsafe {
                    for turn in 0..8_u8 {
                        let plain = if turn % 2 == 0 { Heap.alloc(layout) } else { Heap.alloc_zeroed(layout) };
                        assert_eq!(plain.align_offset(align), 0, "{layout:?}");
                        plain.write(turn);
                        plain.add(size - 1).write(turn);
                        blocks.push(plain);
                    }
                    for (turn, plain) in blocks.into_iter().enumerate() {
                        let larger = Layout::from_size_align(size * 3, align).unwrap();
                        let block = Heap.realloc(plain, layout, larger.size());
                        assert_eq!(block.align_offset(align), 0, "{larger:?}");
                        assert_eq!(usize::from(block.add(size - 1).read()), turn, "{larger:?}");
                        let smaller = Layout::from_size_align(1, align).unwrap();
                        let block = Heap.realloc(block, larger, 1);
                        assert_eq!(block.align_offset(align), 0, "{smaller:?}");
                        Heap.dealloc(block, smaller);
                    }
                }
            }
        }
    }
}
