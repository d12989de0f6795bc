//! The intent word: a shared page that outlives any kill.
//!
//! A worker stores the number of a case here before it launches it. The page belongs to a memory
//! file that supervisor and worker both map, so the number survives whatever kills the worker, and
//! reading it costs neither side a system call.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the shared page, on every machine.
const PAGE_BYTES: usize = 4096;

/// Bytes of the area for a fault record, whose layout belongs to whoever writes it.
pub const FAULT_AREA_BYTES: usize = 512;

const FAULT_AREA_WORDS: usize = FAULT_AREA_BYTES / size_of::<u64>();

/// The bytes that both processes see. Case numbers are stored plus one, so that zero is "none".
#[repr(C, align(4096))]
struct Page {
    intent: AtomicU64,
    answered: AtomicU64,
    steps: AtomicU64,
    fault: FaultArea,
}

#[repr(C, align(256))]
struct FaultArea([AtomicU64; FAULT_AREA_WORDS]);

const _: () = {
    assert!(size_of::<Page>() == PAGE_BYTES);
    assert!(size_of::<FaultArea>() == FAULT_AREA_BYTES);
    assert!(std::mem::offset_of!(Page, fault) == 256);
};

/// The shared page could not be made or mapped.
#[derive(Debug, thiserror::Error)]
pub enum IntentError {
    #[error(
        "failed to make the shared page of a worker ({0}); raise the limits on open files (ulimit -n) and their size (ulimit -f), or free some memory"
    )]
    Create(#[source] io::Error),
    #[error(
        "failed to map the shared page of a worker ({0}); raise the limit on mappings (vm.max_map_count) or free some memory"
    )]
    Map(#[source] io::Error),
    #[error(
        "the descriptor given as the shared page holds {0} bytes instead of 4096; pass the one that the supervisor named"
    )]
    Size(i64),
}

/// One page shared by supervisor and worker.
///
/// The descriptor is close-on-exec; the spawner clears that flag in the child alone.
#[derive(Debug)]
pub struct IntentPage {
    /// Only where the page was made: what a library writes to a descriptor of its process must not land in the page.
    fd: Option<OwnedFd>,
    page: NonNull<Page>,
}

// SAFETY: the mapping belongs to this value alone until drop and is not tied to a thread.
unsafe impl Send for IntentPage {}
// SAFETY: every access through `&self` is an atomic one; the fault area is only handed out as a
// raw pointer, whose user answers for its own accesses.
unsafe impl Sync for IntentPage {}

/// Maps the page behind a descriptor.
fn map(fd: &OwnedFd) -> Result<NonNull<Page>, IntentError> {
    // SAFETY: `stat` is plain old data for which zeros are valid, and fstat writes only to it.
    let bytes = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(fd.as_raw_fd(), &mut stat) != 0 {
            return Err(IntentError::Map(io::Error::last_os_error()));
        }
        stat.st_size
    };
    if bytes != PAGE_BYTES as i64 {
        return Err(IntentError::Size(bytes));
    }
    // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
    let mapped = unsafe {
        libc::mmap(ptr::null_mut(), PAGE_BYTES, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd.as_raw_fd(), 0)
    };
    if mapped == libc::MAP_FAILED {
        return Err(IntentError::Map(io::Error::last_os_error()));
    }
    match NonNull::new(mapped.cast::<Page>()) {
        Some(page) => Ok(page),
        None => Err(IntentError::Map(io::Error::from_raw_os_error(libc::EFAULT))),
    }
}

impl IntentPage {
    /// Makes a page of zeros. It is sealed against resizing, so that no program that inherits it
    /// can take the page away under the supervisor (which would be a SIGBUS here).
    pub fn create() -> Result<IntentPage, IntentError> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a NUL-terminated constant; the call touches no other memory.
        let raw = unsafe { libc::memfd_create(c"shrinkfault-intent".as_ptr(), flags) };
        if raw < 0 {
            return Err(IntentError::Create(io::Error::last_os_error()));
        }
        // SAFETY: `raw` was just opened and nothing else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: plain system calls on a descriptor that `fd` keeps open; no memory is passed.
        let sealed = unsafe {
            libc::ftruncate(raw, PAGE_BYTES as libc::off_t) == 0
                && libc::fcntl(raw, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL) == 0
        };
        if !sealed {
            return Err(IntentError::Create(io::Error::last_os_error()));
        }
        let page = map(&fd)?;
        Ok(IntentPage { fd: Some(fd), page })
    }

    /// Maps the page behind a descriptor that [`IntentPage::create`] made, perhaps in another process.
    pub fn from_fd(fd: OwnedFd) -> Result<IntentPage, IntentError> {
        Ok(IntentPage { fd: None, page: map(&fd)? })
    }

    fn page(&self) -> &Page {
        // SAFETY: `page` is a live 4096-byte mapping, aligned to a page, for as long as `self`
        // lives; every bit pattern is a valid `Page`, and the other process changing it is what
        // atomics are for.
        unsafe { self.page.as_ref() }
    }

    /// Announces that `case` is launched next. `case` is below `u64::MAX`.
    ///
    /// A kill between any two of the stores leaves either no case or this one in flight, also when
    /// a case is launched a second time.
    pub fn announce(&self, case: u64) {
        let page = self.page();
        let word = case.wrapping_add(1);
        if page.answered.load(Ordering::Relaxed) == word {
            page.intent.store(0, Ordering::Release);
            page.answered.store(0, Ordering::Release);
        }
        page.intent.store(word, Ordering::Release);
    }

    /// Notes that `case` was answered.
    pub fn set_answered(&self, case: u64) {
        let word = case.wrapping_add(1);
        self.page().answered.store(word, Ordering::Release);
    }

    /// The case announced last.
    pub fn announced(&self) -> Option<u64> {
        self.page().intent.load(Ordering::Acquire).checked_sub(1)
    }

    /// The case answered last.
    pub fn answered(&self) -> Option<u64> {
        self.page().answered.load(Ordering::Acquire).checked_sub(1)
    }

    /// The case that was announced and not answered: the culprit, if the worker is dead.
    pub fn in_flight(&self) -> Option<u64> {
        self.announced().filter(|&case| self.answered() != Some(case))
    }

    /// Notes that the target is entered, or left again.
    pub fn step(&self) {
        self.page().steps.fetch_add(1, Ordering::Release);
    }

    /// Whether the target was entered and not left.
    pub fn is_in_target(&self) -> bool {
        !self.page().steps.load(Ordering::Acquire).is_multiple_of(2)
    }

    /// Start of the [`FAULT_AREA_BYTES`] bytes for a fault record, aligned to 256 bytes and zero
    /// after a reset. Valid while `self` lives; a signal handler may write to it.
    pub fn fault_area(&self) -> *mut u8 {
        // SAFETY: the field lies inside the live mapping; no reference is made.
        unsafe { (&raw mut (*self.page.as_ptr()).fault).cast() }
    }

    /// Zeroes everything, before another worker is given the page.
    pub fn reset(&self) {
        let page = self.page();
        page.intent.store(0, Ordering::Release);
        page.answered.store(0, Ordering::Release);
        page.steps.store(0, Ordering::Release);
        for word in &page.fault.0 {
            word.store(0, Ordering::Relaxed);
        }
    }
}

impl AsRawFd for IntentPage {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for IntentPage {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, has this length, and no borrow of it is left.
        unsafe { libc::munmap(self.page.as_ptr().cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::child::Exit;
    use crate::exec::spawn::{ChildSpec, Inherit, InheritFd, Spawner};
    use std::time::Duration;

    #[test]
    fn both_mappings_see_the_same_case() {
        let supervisor = IntentPage::create().unwrap();
        let worker = IntentPage::from_fd(supervisor.fd.as_ref().unwrap().try_clone().unwrap()).unwrap();
        assert_eq!(supervisor.in_flight(), None);
        worker.announce(0);
        worker.step();
        assert_eq!(supervisor.in_flight(), Some(0));
        assert!(supervisor.is_in_target());
        worker.set_answered(0);
        assert_eq!(supervisor.in_flight(), None);
        assert_eq!(supervisor.answered(), Some(0));
        drop(worker);
        assert_eq!(supervisor.announced(), Some(0));
    }

    #[test]
    fn a_case_launched_again_is_in_flight_again() {
        let page = IntentPage::create().unwrap();
        page.announce(7);
        page.set_answered(7);
        page.announce(7);
        assert_eq!(page.in_flight(), Some(7));
    }

    #[test]
    fn reset_clears_the_fault_area() {
        let page = IntentPage::create().unwrap();
        let area = page.fault_area();
        assert_eq!(area as usize % 256, 0);
        // SAFETY: the area is live, this long, and nobody else uses it.
        unsafe { area.write_bytes(0xa5, FAULT_AREA_BYTES) };
        page.announce(3);
        assert_eq!(page.announced(), Some(3));
        page.reset();
        assert_eq!(page.announced(), None);
        // SAFETY: as above; nothing writes to it while `bytes` lives.
        let bytes = unsafe { std::slice::from_raw_parts(area, FAULT_AREA_BYTES) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn the_case_outlives_a_killed_process() {
        let page = IntentPage::create().unwrap();
        let mut spec = ChildSpec::new("/bin/bash");
        // 42 in the lowest byte is case 41 on a little-endian machine.
        spec.args = vec!["-c".into(), "printf '\\x2a' >&$PAGE_FD; kill -KILL $$".into()];
        spec.inherit = vec![Inherit { variable: "PAGE_FD".into(), fd: InheritFd::Lent(page.as_raw_fd()) }];
        let mut child = Spawner::start().unwrap().spawn(spec).unwrap();
        let exit = child.wait(Duration::from_secs(20));
        assert_eq!(exit, Some(Exit::Signal(libc::SIGKILL)));
        assert_eq!(page.in_flight(), Some(41));
    }

    #[test]
    fn the_page_cannot_be_taken_away() {
        let page = IntentPage::create().unwrap();
        // SAFETY: the seal makes the call fail; nothing is resized.
        let resized = unsafe { libc::ftruncate(page.as_raw_fd(), 0) };
        assert_eq!(resized, -1);
    }

    #[test]
    fn another_descriptor_is_refused() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(IntentPage::from_fd(null.into()), Err(IntentError::Size(0))));
    }
}
