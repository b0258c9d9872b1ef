//! An allocator in front of the program's own: in children it keeps the one large block that every call takes and gives back,
//! the interpreter's stack. Children give memory back to the system at once, so that limits count what a program holds; for
//! this block that would be two system calls and some page faults a call, which is more than a small program costs.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// What the interpreter asks for when an evaluation begins. If it asks for something else one day, nothing is kept.
const STACK_BYTES: usize = 1_000_000;

static IS_CHILD: AtomicBool = AtomicBool::new(false);
static KEPT: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// To be the global allocator of a program that has children, around the allocator that it would have otherwise.
#[derive(Debug)]
pub struct KeptStack<A>(pub A);

/// This process is a child.
pub(crate) fn keep() {
    IS_CHILD.store(true, Ordering::Relaxed);
}

// SAFETY: what is handed out comes from the allocator inside, with the layout that is asked for, and is nobody else's: a block
// is in the slot only after it was given back, and a swap takes it out of there for one caller.
#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
unsafe impl<A: GlobalAlloc> GlobalAlloc for KeptStack<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() == STACK_BYTES && layout.align() == align_of::<u64>() {
            let kept = KEPT.swap(null_mut(), Ordering::Acquire);
            if !kept.is_null() {
                return kept;
            }
        }
        // SAFETY: as the caller promises.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() == STACK_BYTES
            && layout.align() == align_of::<u64>()
            && IS_CHILD.load(Ordering::Relaxed)
            && KEPT.compare_exchange(null_mut(), block, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            return;
        }
        // SAFETY: as the caller promises; a block that was kept came from the same allocator with the same layout.
        unsafe { self.0.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { self.0.realloc(block, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
    fn a_child_keeps_one_stack_and_nothing_else() {
        let allocator = KeptStack(System);
        let stack = Layout::array::<u64>(STACK_BYTES / size_of::<u64>()).unwrap();
        // SAFETY: every block is given back once, with its layout.
        unsafe {
            let first = allocator.alloc(stack);
            allocator.dealloc(first, stack);
            assert!(KEPT.load(Ordering::Relaxed).is_null(), "this process is no child yet");
            keep();
            let (first, second) = (allocator.alloc(stack), allocator.alloc(stack));
            assert_ne!(first, second);
            allocator.dealloc(first, stack);
            allocator.dealloc(second, stack);
            assert_eq!(KEPT.load(Ordering::Relaxed), first);
            let other = Layout::array::<u64>(100).unwrap();
            let small = allocator.alloc(other);
            assert_ne!(small, first);
            allocator.dealloc(small, other);
            let zeroed = allocator.alloc_zeroed(stack);
            assert_ne!(zeroed, first, "a used block is not zeroed");
            assert_eq!((*zeroed, *zeroed.add(STACK_BYTES - 1)), (0, 0));
            allocator.dealloc(zeroed, stack);
            assert_eq!(allocator.alloc(stack), first, "the next call has the stack of the last one");
            allocator.dealloc(first, stack);
        }
    }
}
