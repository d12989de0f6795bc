//! The system's calls on memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ptr;

/// Where an arena is asked for: 64 TiB from here lie between the program and its libraries on x86-64 and aarch64, so that
/// every worker gets the same addresses and a fault can be compared with another by its address alone. Only a wish.
const HINT: u64 = 16 << 40;

/// Bytes in a page of this system.
pub(super) fn page_bytes() -> u64 {
    // SAFETY: `sysconf` has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).expect("every Linux system tells its page size")
}

fn at(address: u64) -> *mut libc::c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Addresses without access or memory, and the first of them.
pub(super) fn reserve(bytes: u64) -> io::Result<u64> {
    let bytes = usize::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: without MAP_FIXED the kernel picks addresses that nothing uses.
    let base = unsafe { libc::mmap(at(HINT), bytes, libc::PROT_NONE, flags, -1, 0) };
    if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(base.expose_provenance() as u64) }
}

/// Gives a reservation back.
///
/// # Safety
/// The range is one that `reserve` gave, and nothing uses an address in it any more.
pub(super) unsafe fn release(base: u64, bytes: u64) {
    // SAFETY: the caller owns the whole range. Unmapping whole mappings does not fail.
    unsafe { libc::munmap(at(base), bytes as usize) };
}

/// Access to pages that have none. By `mprotect`, because the kernel lets `mmap` over a reservation exceed RLIMIT_DATA
/// (it takes the replaced pages off the count, though they never were on it), and then the next allocation of the library
/// under test fails instead. Huge pages are left to the system's setting: a range is filled whole before a case runs, so
/// they cost no memory that was not going to be used, and a range below 2 MiB cannot have one.
///
/// # Safety
/// The range consists of whole pages that `reserve` gave.
pub(super) unsafe fn open_pages(start: u64, bytes: u64) -> io::Result<()> {
    // SAFETY: pages without access are in no use that more access could disturb.
    unsafe { protect_pages(start, bytes, libc::PROT_READ | libc::PROT_WRITE) }
}

/// Takes access and memory away.
///
/// # Safety
/// The range consists of whole pages that `reserve` gave, and no reference points into it.
pub(super) unsafe fn close_pages(start: u64, bytes: u64) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: MAP_FIXED replaces what lies there, which is the caller's own and in no use.
    let result = unsafe { libc::mmap(at(start), bytes as usize, libc::PROT_NONE, flags, -1, 0) };
    if result != libc::MAP_FAILED {
        return Ok(());
    }
    // At the limit on mappings `mmap` fails whatever it would leave behind, but a whole mapping can still be protected.
    // SAFETY: the caller owns the pages, which are in no use.
    unsafe { protect_pages(start, bytes, libc::PROT_NONE)? };
    // SAFETY: as above.
    match unsafe { libc::madvise(at(start), bytes as usize, libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Changes what may be done with pages.
///
/// # Safety
/// The range consists of whole pages that `reserve` gave, and no reference into it needs the access that is taken away.
pub(super) unsafe fn protect_pages(start: u64, bytes: u64, access: libc::c_int) -> io::Result<()> {
    // SAFETY: the caller owns the pages and answers for their users.
    match unsafe { libc::mprotect(at(start), bytes as usize, access) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `vm.max_map_count`, if this process is too close to it to split one more mapping in three.
pub(super) fn mapping_limit_reached() -> Option<u64> {
    let limit = fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    let limit: u64 = limit.trim().parse().ok()?;
    let mut maps = File::open("/proc/self/maps").ok()?;
    // On the stack, because the heap may be what ran out.
    let mut buffer = [0_u8; 8192];
    let mut mappings = 0;
    loop {
        let bytes = maps.read(&mut buffer).ok()?;
        if bytes == 0 {
            break;
        }
        let lines = buffer[..bytes].iter().filter(|&&byte| byte == b'\n');
        mappings += lines.count() as u64;
    }
    (mappings + 2 > limit).then_some(limit)
}
