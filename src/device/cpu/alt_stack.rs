//! A stack for the fault handler, so that a thread whose own stack ran out can still say where.

use std::cell::RefCell;
use std::{io, mem, ptr};

use super::fault::InstallError;
use super::system::page_bytes;

/// Gives the calling thread a stack of its own for the fault handler, until the thread ends. Without one, faults are
/// still recorded, except stack overflows. Does nothing if the thread has it already.
///
/// # Errors
/// The system refused the memory, or the thread runs on an alternate stack just now.
pub fn install_alt_stack_for_this_thread() -> Result<(), InstallError> {
    thread_local! {
        static STACK: RefCell<Option<AltStack>> = const { RefCell::new(None) };
    }
    STACK.with_borrow_mut(|stack| {
        if stack.is_none() {
            *stack = Some(AltStack::install()?);
        }
        Ok(())
    })
}

/// A stack for signal handlers with an inaccessible page below it.
struct AltStack {
    mapping: *mut libc::c_void,
    bytes: usize,
}

impl AltStack {
    fn install() -> Result<AltStack, InstallError> {
        let page = page_bytes() as usize;
        // SAFETY: `getauxval` has no preconditions; it gives 0 for what the kernel does not tell.
        let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        let stack = (frame + (64 << 10)).next_multiple_of(page);
        let bytes = page + stack;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: without MAP_FIXED the kernel picks addresses that nothing uses.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(InstallError::Stack(io::Error::last_os_error()));
        }
        let owned = AltStack { mapping, bytes };
        let lowest = mapping.wrapping_byte_add(page);
        // SAFETY: the pages are those of the mapping made above, less the first.
        if unsafe { libc::mprotect(lowest, stack, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(InstallError::Stack(io::Error::last_os_error()));
        }
        let alternate = libc::stack_t { ss_sp: lowest, ss_flags: 0, ss_size: stack };
        // SAFETY: the stack is mapped, used for nothing else, and given up by `drop` before it is unmapped.
        if unsafe { libc::sigaltstack(&alternate, ptr::null_mut()) } != 0 {
            return Err(InstallError::Switch(io::Error::last_os_error()));
        }
        Ok(owned)
    }
}

impl Drop for AltStack {
    fn drop(&mut self) {
        // SAFETY: `stack_t` is plain data, for which zero bytes are valid, and `sigaltstack` fills it.
        let mut current: libc::stack_t = unsafe { mem::zeroed() };
        // SAFETY: both pointers are null or valid; asking changes nothing.
        let asked = unsafe { libc::sigaltstack(ptr::null(), &mut current) };
        let within = self.mapping.addr()..self.mapping.addr() + self.bytes;
        if asked == 0 && within.contains(&current.ss_sp.addr()) {
            let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: the thread is ending and runs no handler on this stack, so it can be given up.
            if unsafe { libc::sigaltstack(&none, ptr::null_mut()) } != 0 {
                return;
            }
        }
        // SAFETY: the mapping is this value's own, and the thread does not use it as a signal stack any more.
        unsafe { libc::munmap(self.mapping, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_and_go_with_their_alternate_stacks() {
        for _ in 0..100 {
            std::thread::spawn(|| {
                install_alt_stack_for_this_thread().unwrap();
                install_alt_stack_for_this_thread().unwrap();
            })
            .join()
            .unwrap();
        }
    }
}
