//! Room on a disk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Has the file system set `bytes` aside for a file, which is that long at least afterwards.
///
/// # Errors
/// Where there is no such room, or a limit on the size of files is below it.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let len = libc::off_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    loop {
        // SAFETY: a plain system call on a descriptor that is open for as long as `file` is borrowed.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}
