//! Exit codes. The only file that knows them.

use crate::exec::{ProbeError, interrupt};

/// How the program ends.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// At least one case ran and there is nothing new. `run`: the case passed.
    Fine = 0,
    /// New findings, or failing cases that there was no time to look into. `run`: the case went badly.
    Found = 1,
    /// The command line, or a file named on it, asks for something that cannot be.
    Usage = 2,
    /// Nothing could be tested: no worker, no target, no space, or the self-test failed; or the disk filled up meanwhile.
    Setup = 3,
    /// The device no longer passes its health check.
    Unhealthy = 4,
    /// Another kernel, library or core type answered than the one asked about.
    NotComparable = 5,
    /// Nothing ran: every case was refused or skipped.
    NothingRan = 6,
    /// A bug of shrinkfault.
    Internal = 70,
    /// SIGINT.
    Interrupted = 130,
    /// SIGTERM or SIGHUP.
    Terminated = 143,
}

/// An error that ends a command: one sentence and its exit status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    status: ExitStatus,
    pub message: String,
}

impl Failure {
    pub fn usage(message: impl std::fmt::Display) -> Failure {
        Failure { status: ExitStatus::Usage, message: message.to_string() }
    }

    pub fn setup(message: impl std::fmt::Display) -> Failure {
        Failure { status: ExitStatus::Setup, message: message.to_string() }
    }

    /// The status to exit with: an interruption has that of its signal.
    pub fn status(&self) -> ExitStatus {
        match self.status {
            ExitStatus::Interrupted => ExitStatus::of_signal(interrupt::received()),
            other => other,
        }
    }
}

impl ExitStatus {
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The status of a run that a signal ended.
    pub fn of_signal(signal: Option<i32>) -> ExitStatus {
        match signal {
            Some(libc::SIGTERM | libc::SIGHUP) => ExitStatus::Terminated,
            _ => ExitStatus::Interrupted,
        }
    }
}

impl From<ProbeError> for Failure {
    fn from(e: ProbeError) -> Failure {
        let status = match &e {
            ProbeError::Interrupted => ExitStatus::Interrupted,
            ProbeError::OutOfTime | ProbeError::Spent => ExitStatus::NothingRan,
            ProbeError::Setup(_) => ExitStatus::Setup,
            ProbeError::Unhealthy(_) => ExitStatus::Unhealthy,
        };
        Failure { status, message: e.to_string() }
    }
}
