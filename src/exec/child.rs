//! One child process: its group, its exit, the tail of what it said on stderr. This is the one
//! file that kills processes.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use super::poll;
use super::tail::Tail;

/// How long a wait sleeps between looks where the kernel has no pidfd.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How long a process may take to die of SIGKILL before it counts as stuck in a driver.
const DEATH_TAKES: Duration = Duration::from_secs(5);

/// Bytes taken from stderr in one go, so that a flood cannot keep its reader from anything else.
const DRAIN_BYTES: usize = 1 << 20;

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Somebody else in this process took the exit status. Never a verdict on a case.
    Lost,
}

/// A running child, the leader of its own process group. Dropping it kills the group and reaps it.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    /// Readable once the child has exited; none on a kernel without pidfd_open.
    pidfd: Option<OwnedFd>,
    exit: Option<Exit>,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    /// Non-blocking; none after its end was read.
    stderr: Option<File>,
    tail: Tail,
}

impl Child {
    /// Takes over a child that was just started as a group leader and that nothing else reaps.
    pub(super) fn adopt(pid: i32, stdin: Option<OwnedFd>, stdout: Option<OwnedFd>, stderr: File) -> Child {
        Child { pid, pidfd: pidfd_open(pid), exit: None, stdin, stdout, stderr: Some(stderr), tail: Tail::default() }
    }

    /// The process and group number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The write end of the child's stdin, once, if a pipe was asked for.
    pub fn take_stdin(&mut self) -> Option<OwnedFd> {
        self.stdin.take()
    }

    /// The read end of the child's stdout, once, if a pipe was asked for.
    pub fn take_stdout(&mut self) -> Option<OwnedFd> {
        self.stdout.take()
    }

    /// Sends SIGKILL to the whole group. Does nothing once the child was reaped, when its number
    /// may belong to somebody else.
    pub fn kill_group(&self) {
        self.signal_group(libc::SIGKILL);
    }

    /// Sends SIGTERM, waits up to `grace`, then kills what is left of the group. `None` if the child
    /// does not even die of SIGKILL within five seconds, because it is stuck in a driver.
    pub fn terminate_group(&mut self, grace: Duration) -> Option<Exit> {
        self.signal_group(libc::SIGTERM);
        self.wait(grace).or_else(|| {
            self.kill_group();
            self.wait(DEATH_TAKES)
        })
    }

    /// Waits for the child to exit, draining its stderr meanwhile; `None` if it still runs after
    /// `timeout`. On exit, what is left of its group is killed too.
    pub fn wait(&mut self, timeout: Duration) -> Option<Exit> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if self.has_exited() {
                return self.exit.or_else(|| Some(self.reap()));
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return None;
            }
            self.wait_for_news(deadline, now);
        }
    }

    /// The exit, if it is known already.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// The read end of the child's stderr for the owner's poll loop; `None` after its end.
    pub fn stderr_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stderr.as_ref().map(AsFd::as_fd)
    }

    /// Moves what waits in the stderr pipe (1 MiB at most a call) into the tail. Never blocks.
    pub fn drain_stderr(&mut self) {
        let Some(stderr) = &mut self.stderr else {
            return;
        };
        let mut chunk = [0; 16 * 1024];
        let mut taken = 0;
        while taken < DRAIN_BYTES {
            match stderr.read(&mut chunk) {
                Ok(bytes) if bytes > 0 => {
                    taken += bytes;
                    self.tail.push(&chunk[..bytes]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {
                    self.stderr = None;
                    return;
                }
            }
        }
    }

    /// The last bytes, 16 KiB at most, that were drained from stderr.
    pub fn stderr_tail(&self) -> &[u8] {
        self.tail.bytes()
    }

    /// All bytes that were drained from stderr, those that left the tail included.
    pub fn stderr_total(&self) -> u64 {
        self.tail.total()
    }

    /// Sleeps until the child exits, says something or the deadline passes.
    fn wait_for_news(&mut self, deadline: Option<Instant>, now: Instant) {
        let until = match &self.pidfd {
            Some(_) => deadline,
            None => Some(deadline.map_or(now + LOOK_EVERY, |at| at.min(now + LOOK_EVERY))),
        };
        let mut entries = [
            poll::entry(self.pidfd.as_ref().map(AsRawFd::as_raw_fd), libc::POLLIN),
            poll::entry(self.stderr.as_ref().map(AsRawFd::as_raw_fd), libc::POLLIN),
        ];
        if poll::wait(&mut entries, until).is_err() {
            std::thread::sleep(LOOK_EVERY);
        }
        if entries[1].revents != 0 {
            self.drain_stderr();
        }
    }

    /// Whether the child still runs.
    pub fn is_alive(&mut self) -> bool {
        !self.has_exited()
    }

    /// Whether the child is dead. It is not reaped, so its number stays its own.
    fn has_exited(&mut self) -> bool {
        if self.exit.is_some() {
            return true;
        }
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `siginfo_t` is plain old data for which zeros are valid; waitid writes only to it.
        let (rc, pid) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let rc = libc::waitid(libc::P_PID, self.pid as libc::id_t, &mut info, options);
            (rc, info.si_pid())
        };
        if rc != 0 {
            self.exit = Some(Exit::Lost);
        }
        rc != 0 || pid != 0
    }

    /// Of a dead child: kills what is left of its group, takes its exit status and the rest of
    /// its stderr.
    fn reap(&mut self) -> Exit {
        self.kill_group();
        let exit = wait_for(self.pid);
        self.exit = Some(exit);
        self.drain_stderr();
        exit
    }

    fn signal_group(&self, signal: i32) {
        if self.exit.is_none() {
            // SAFETY: a plain system call. The child is not reaped, so the number is still that of
            // its own group; it is above 1, so that neither our own group nor everybody is meant.
            unsafe { libc::kill(-self.pid, signal) };
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.has_exited() {
            self.kill_group();
        }
        if self.wait(DEATH_TAKES).is_none() {
            // Stuck in a driver. The supervisor must not be stuck with it.
            let pid = self.pid;
            std::thread::spawn(move || wait_for(pid));
        }
    }
}

/// Waits for a child of this process for as long as it takes, and takes its exit status.
fn wait_for(pid: i32) -> Exit {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        if unsafe { libc::waitpid(pid, &mut status, 0) } == pid {
            return exit_of(status);
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Exit::Lost;
        }
    }
}

fn exit_of(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) { Exit::Signal(libc::WTERMSIG(status)) } else { Exit::Code(libc::WEXITSTATUS(status)) }
}

fn pidfd_open(pid: i32) -> Option<OwnedFd> {
    // SAFETY: a plain system call (Linux 5.3); what it returns is close-on-exec.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the descriptor was just opened and nothing else knows it.
    (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::spawn::{ChildSpec, Spawner};
    use crate::exec::testing::is_gone;

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Child {
        let spawner = Spawner::start().unwrap();
        let mut spec = ChildSpec::new("/bin/sh");
        spec.args = vec!["-c".into(), script.into()];
        spawner.spawn(spec).unwrap()
    }

    #[test]
    fn codes_and_signals_are_told_apart() {
        assert_eq!(shell("exit 3").wait(LONG), Some(Exit::Code(3)));
        let mut segv = shell("kill -SEGV $$");
        assert_eq!(segv.wait(LONG), Some(Exit::Signal(libc::SIGSEGV)));
        assert_eq!(segv.wait(LONG), Some(Exit::Signal(libc::SIGSEGV)));
    }

    #[test]
    fn a_running_child_has_no_exit() {
        let mut child = shell("sleep 100");
        assert_eq!(child.wait(Duration::from_millis(20)), None);
        child.kill_group();
        assert_eq!(child.wait(LONG), Some(Exit::Signal(libc::SIGKILL)));
    }

    #[test]
    fn without_a_pidfd_the_exit_is_found_by_looking() {
        let mut child = shell("sleep 0.05; exit 9");
        child.pidfd = None;
        assert_eq!(child.wait(Duration::from_millis(5)), None);
        assert_eq!(child.wait(LONG), Some(Exit::Code(9)));
    }

    #[test]
    fn a_flood_on_stderr_neither_blocks_the_child_nor_grows_the_tail() {
        let mut child = shell("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 4");
        assert_eq!(child.wait(LONG), Some(Exit::Code(4)));
        child.drain_stderr();
        assert_eq!(child.stderr_total(), 3_000_004);
        assert_eq!(child.stderr_tail().len(), 16 * 1024);
        assert!(child.stderr_tail().ends_with(b"xend\n"));
        assert!(child.stderr_fd().is_none());
    }

    #[test]
    fn drop_kills_the_whole_group() {
        let mut child = shell("sleep 100 & echo $! >&2; wait");
        while child.stderr_tail().is_empty() {
            assert_eq!(child.wait(Duration::from_millis(5)), None);
        }
        let text = String::from_utf8_lossy(child.stderr_tail()).into_owned();
        let grandchild: i32 = text.trim().parse().unwrap();
        let leader = child.pid();
        drop(child);
        assert!(is_gone(leader) && is_gone(grandchild));
    }

    #[test]
    fn a_child_that_ends_on_request_is_not_killed() {
        let mut child = shell("trap 'exit 5' TERM; echo up >&2; while :; do sleep 0.01; done");
        while child.stderr_tail().is_empty() {
            assert_eq!(child.wait(Duration::from_millis(5)), None);
        }
        assert_eq!(child.terminate_group(LONG), Some(Exit::Code(5)));
    }

    #[test]
    fn a_child_that_ignores_the_request_is_killed() {
        let mut child = shell("trap '' TERM; echo up >&2; while :; do sleep 0.01; done");
        while child.stderr_tail().is_empty() {
            assert_eq!(child.wait(Duration::from_millis(5)), None);
        }
        let exit = child.terminate_group(Duration::from_millis(50));
        assert_eq!(exit, Some(Exit::Signal(libc::SIGKILL)));
    }
}
