//! Waiting for descriptors: poll(2) with a deadline.

use std::io;
use std::os::fd::RawFd;
use std::time::Instant;

/// One descriptor to wait for; a negative one is ignored by poll.
pub(super) fn entry(fd: Option<RawFd>, events: i16) -> libc::pollfd {
    libc::pollfd { fd: fd.unwrap_or(-1), events, revents: 0 }
}

/// Waits until an entry is ready or the deadline has passed (never, if there is none). Returns at
/// once, with nothing ready, when a signal arrives.
pub(super) fn wait(entries: &mut [libc::pollfd], deadline: Option<Instant>) -> io::Result<()> {
    // SAFETY: pointer and length are those of one exclusive slice, alive during the call.
    let ready = unsafe {
        libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, deadline.map_or(-1, milliseconds_until))
    };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        for entry in entries {
            entry.revents = 0;
        }
    }
    Ok(())
}

/// Rounded up, so that a wait that ends by time ends past its deadline and no caller spins.
fn milliseconds_until(deadline: Instant) -> i32 {
    let left = deadline.saturating_duration_since(Instant::now());
    i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// Makes reads and writes through this open file return at once instead of waiting.
pub(super) fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: plain system calls on a number; no memory is passed.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        if flags < 0 || libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_wait_ends_past_its_deadline() {
        let deadline = Instant::now() + Duration::from_micros(2_500);
        wait(&mut [entry(None, libc::POLLIN)], Some(deadline)).unwrap();
        assert!(Instant::now() >= deadline);
    }

    #[test]
    fn a_far_deadline_does_not_overflow() {
        let far = Instant::now() + Duration::from_secs(1 << 40);
        assert_eq!(milliseconds_until(far), i32::MAX);
    }
}
