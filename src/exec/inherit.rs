//! The child's side of an inherited descriptor.

use std::ffi::OsString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// An inherited descriptor was not found.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    #[error(
        "the environment variable {0} does not hold a descriptor number; let shrinkfault start this program instead of starting it by hand"
    )]
    Variable(String),
    #[error(
        "the descriptor that {variable} names is not open ({source}); let shrinkfault start this program instead of starting it by hand"
    )]
    Closed {
        variable: String,
        #[source]
        source: io::Error,
    },
}

/// Opens again, close-on-exec, the descriptor whose number the environment variable holds.
///
/// The inherited number itself stays open until this process ends, and is made close-on-exec too,
/// so that nothing that a library starts keeps the supervisor's channel alive.
pub fn inherited_fd(variable: &str) -> Result<OwnedFd, InheritError> {
    let number = std::env::var_os(variable)
        .map(OsString::into_string)
        .and_then(Result::ok)
        .and_then(|text| text.parse::<i32>().ok())
        .ok_or_else(|| InheritError::Variable(variable.into()))?;
    // SAFETY: plain system calls on a number, which fail if it is not open. Setting close-on-exec
    // takes nothing from whoever may own it; the duplicate is new and ours alone.
    unsafe {
        let duplicate = libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3);
        if duplicate < 0 || libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) < 0 {
            let source = io::Error::last_os_error();
            return Err(InheritError::Closed { variable: variable.into(), source });
        }
        Ok(OwnedFd::from_raw_fd(duplicate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::channel::{LineChannel, NoSide, ReadOutcome};
    use crate::exec::child::Exit;
    use crate::exec::intent::IntentPage;
    use crate::exec::spawn::{Inherit, InheritFd, Spawner};
    use crate::exec::testing::{alone, is_alone};
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant};

    /// A worker in small: takes a line, announces a case, answers a word and dies.
    fn work() -> ! {
        let page = IntentPage::from_fd(inherited_fd("TEST_PAGE").unwrap()).unwrap();
        let socket = inherited_fd("TEST_CHANNEL").unwrap();
        let mut channel = LineChannel::from_socket(socket).unwrap();
        let line = channel.read_line(None, &mut NoSide).unwrap();
        assert_eq!(line, ReadOutcome::Line("case".into()));
        page.announce(7);
        channel.write_line("launched", None, &mut NoSide).unwrap();
        std::process::abort()
    }

    #[test]
    fn a_dead_worker_names_its_culprit() {
        if is_alone() {
            work();
        }
        let page = IntentPage::create().unwrap();
        let (mut channel, socket) = LineChannel::pair().unwrap();
        let mut spec = alone("exec::inherit::tests::a_dead_worker_names_its_culprit");
        spec.inherit = vec![
            Inherit { variable: "TEST_PAGE".into(), fd: InheritFd::Lent(page.as_raw_fd()) },
            Inherit { variable: "TEST_CHANNEL".into(), fd: InheritFd::Given(socket) },
        ];
        let mut child = Spawner::start().unwrap().spawn(spec).unwrap();
        let soon = Some(Instant::now() + Duration::from_secs(20));
        channel.write_line("case", soon, &mut child).unwrap();
        let line = channel.read_line(soon, &mut child).unwrap();
        assert_eq!(line, ReadOutcome::Line("launched".into()));
        let end = channel.read_line(soon, &mut child).unwrap();
        assert_eq!(end, ReadOutcome::Closed);
        let exit = child.wait(Duration::from_secs(20));
        assert_eq!(exit, Some(Exit::Signal(libc::SIGABRT)));
        assert_eq!(page.in_flight(), Some(7));
    }

    #[test]
    fn a_program_started_by_hand_is_told_so() {
        let error = inherited_fd("SHRINKFAULT_TEST_UNSET").unwrap_err();
        assert!(error.to_string().contains("let shrinkfault start"));
    }
}
