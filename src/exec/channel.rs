//! Lines between supervisor and worker, with deadlines.
//!
//! While a channel waits, for a line or for room to write one, it also keeps the child's stderr
//! moving, and it takes in lines while it writes: neither side can end up waiting for the other.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::child::Child;
use super::inbox::Inbox;
use super::poll;

pub use super::inbox::MAX_LINE_BYTES;

/// Bytes queued before they are sent without being asked to.
const SEND_AT: usize = 32 * 1024;

/// A channel failed.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    #[error(
        "failed to open the channel between supervisor and worker ({0}); raise the limit on open files (ulimit -n)"
    )]
    Open(#[source] io::Error),
    #[error("the other side of the channel has closed it; see how its process ended")]
    Closed,
    #[error(
        "the other side of the channel did not take a line before the deadline; raise the time limit or end the process"
    )]
    Deadline,
    #[error("a line to send contains a line break; escape it")]
    LineBreak,
    #[error("failed to use the channel between supervisor and worker ({0}); end the process and start another")]
    Io(#[source] io::Error),
}

/// What reading a line came to, where the line itself goes to a string of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadState {
    Line,
    Deadline,
    /// The other side closed the channel. What it sent after its last line break is dropped: a
    /// process that was killed in the middle of a line did not say it.
    Closed,
    /// More than [`MAX_LINE_BYTES`] without a line break; reading again says the same.
    TooLong,
}

/// What reading a line came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOutcome {
    Line(String),
    Deadline,
    /// As [`ReadState::Closed`].
    Closed,
    /// As [`ReadState::TooLong`].
    TooLong,
}

/// A stream beside the channel that must be kept moving while the channel waits.
pub trait SideStream {
    /// The descriptor to wait for; `None` once there is nothing to wait for.
    fn side_fd(&self) -> Option<RawFd>;
    /// Takes what is there, without blocking.
    fn drain_side(&mut self);
}

/// For a worker, which has nothing to watch but its channel.
#[derive(Debug, Default)]
pub struct NoSide;

impl SideStream for NoSide {
    fn side_fd(&self) -> Option<RawFd> {
        None
    }

    fn drain_side(&mut self) {}
}

impl SideStream for Child {
    fn side_fd(&self) -> Option<RawFd> {
        self.stderr_fd().map(|fd| fd.as_raw_fd())
    }

    fn drain_side(&mut self) {
        self.drain_stderr();
    }
}

/// Both directions of a conversation in lines.
#[derive(Debug)]
pub struct LineChannel {
    pipe: Pipe,
    inbox: Inbox,
    outbox: Vec<u8>,
}

#[derive(Debug)]
enum Pipe {
    Socket(UnixStream),
    Pair { read: File, write: File },
}

impl LineChannel {
    /// A connected pair: our end, and the descriptor for the child to inherit.
    pub fn pair() -> Result<(LineChannel, OwnedFd), ChannelError> {
        let (ours, theirs) = UnixStream::pair().map_err(ChannelError::Open)?;
        Ok((LineChannel::from_socket(ours.into())?, theirs.into()))
    }

    /// Over a connected stream socket, such as the end that a worker inherited.
    pub fn from_socket(socket: OwnedFd) -> Result<LineChannel, ChannelError> {
        poll::set_nonblocking(socket.as_raw_fd()).map_err(ChannelError::Open)?;
        Ok(LineChannel::over(Pipe::Socket(socket.into())))
    }

    /// Over the stdout (`read`) and stdin (`write`) of a program.
    ///
    /// Writing to a closed pipe is an error only while SIGPIPE is ignored, as it is in every Rust
    /// program that does not change it.
    pub fn from_pipes(read: OwnedFd, write: OwnedFd) -> Result<LineChannel, ChannelError> {
        for fd in [&read, &write] {
            poll::set_nonblocking(fd.as_raw_fd()).map_err(ChannelError::Open)?;
        }
        Ok(LineChannel::over(Pipe::Pair { read: read.into(), write: write.into() }))
    }

    fn over(pipe: Pipe) -> LineChannel {
        LineChannel { pipe, inbox: Inbox::default(), outbox: Vec::new() }
    }

    /// Sends one line, and all that was queued before it.
    pub fn write_line(
        &mut self,
        line: &str,
        deadline: Option<Instant>,
        side: &mut impl SideStream,
    ) -> Result<(), ChannelError> {
        self.queue_line(line, deadline, side)?;
        self.flush(deadline, side)
    }

    /// Queues one line, to be sent with others; sends by itself only once 32 KiB are queued.
    pub fn queue_line(
        &mut self,
        line: &str,
        deadline: Option<Instant>,
        side: &mut impl SideStream,
    ) -> Result<(), ChannelError> {
        if line.as_bytes().contains(&b'\n') {
            return Err(ChannelError::LineBreak);
        }
        self.outbox.extend_from_slice(line.as_bytes());
        self.outbox.push(b'\n');
        if self.outbox.len() >= SEND_AT {
            return self.flush(deadline, side);
        }
        Ok(())
    }

    /// Sends what is queued; on an error, what was not sent stays queued.
    pub fn flush(&mut self, deadline: Option<Instant>, side: &mut impl SideStream) -> Result<(), ChannelError> {
        let mut sent = 0;
        let result = loop {
            if sent == self.outbox.len() {
                break Ok(());
            }
            match self.pipe.send(&self.outbox[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Err(error) = self.wait_for_room(deadline, side) {
                        break Err(error);
                    }
                }
                Err(error) => break Err(closed_or(error)),
            }
        };
        self.outbox.drain(..sent);
        result
    }

    /// The next line, without its line break. Bytes that are not UTF-8 are replaced.
    pub fn read_line(
        &mut self,
        deadline: Option<Instant>,
        side: &mut impl SideStream,
    ) -> Result<ReadOutcome, ChannelError> {
        let mut line = String::new();
        Ok(match self.read_line_into(&mut line, deadline, side)? {
            ReadState::Line => ReadOutcome::Line(line),
            ReadState::Deadline => ReadOutcome::Deadline,
            ReadState::Closed => ReadOutcome::Closed,
            ReadState::TooLong => ReadOutcome::TooLong,
        })
    }

    /// As [`LineChannel::read_line`], replacing the contents of `line`. A deadline in the past
    /// still takes a line that is there.
    pub fn read_line_into(
        &mut self,
        line: &mut String,
        deadline: Option<Instant>,
        side: &mut impl SideStream,
    ) -> Result<ReadState, ChannelError> {
        line.clear();
        loop {
            if self.inbox.take_line(line) {
                return Ok(ReadState::Line);
            }
            if self.inbox.is_too_long() {
                return Ok(ReadState::TooLong);
            }
            if self.inbox.is_closed() {
                return Ok(ReadState::Closed);
            }
            let expired = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let took = self.take_in(deadline, side)?;
            if expired && !took {
                return Ok(ReadState::Deadline);
            }
        }
    }

    /// Waits for input or the side stream, and takes it; whether there was input.
    fn take_in(&mut self, deadline: Option<Instant>, side: &mut impl SideStream) -> Result<bool, ChannelError> {
        let mut entries =
            [poll::entry(Some(self.pipe.read_fd()), libc::POLLIN), poll::entry(side.side_fd(), libc::POLLIN)];
        poll::wait(&mut entries, deadline).map_err(ChannelError::Io)?;
        if entries[1].revents != 0 {
            side.drain_side();
        }
        if entries[0].revents == 0 {
            return Ok(false);
        }
        self.receive()
    }

    /// Waits until something can be written, taking in lines and the side stream meanwhile.
    fn wait_for_room(&mut self, deadline: Option<Instant>, side: &mut impl SideStream) -> Result<(), ChannelError> {
        let listen = self.inbox.has_room() && !self.inbox.is_closed();
        let mut entries = [
            poll::entry(Some(self.pipe.write_fd()), libc::POLLOUT),
            poll::entry(listen.then(|| self.pipe.read_fd()), libc::POLLIN),
            poll::entry(side.side_fd(), libc::POLLIN),
        ];
        poll::wait(&mut entries, deadline).map_err(ChannelError::Io)?;
        if entries[2].revents != 0 {
            side.drain_side();
        }
        if entries[1].revents != 0 {
            self.receive()?;
        }
        let room = entries[0].revents != 0;
        if !room && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(ChannelError::Deadline);
        }
        Ok(())
    }

    /// Takes in what is there; whether there was something, the end included.
    fn receive(&mut self) -> Result<bool, ChannelError> {
        match self.inbox.fill_from(&mut self.pipe) {
            Ok(()) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                // The other side died with bytes from us unread.
                io::ErrorKind::ConnectionReset => {
                    self.inbox.close();
                    Ok(true)
                }
                _ => Err(ChannelError::Io(error)),
            },
        }
    }
}

impl Pipe {
    fn read_fd(&self) -> RawFd {
        match self {
            Pipe::Socket(socket) => socket.as_raw_fd(),
            Pipe::Pair { read, .. } => read.as_raw_fd(),
        }
    }

    fn write_fd(&self) -> RawFd {
        match self {
            Pipe::Socket(socket) => socket.as_raw_fd(),
            Pipe::Pair { write, .. } => write.as_raw_fd(),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Pipe::Socket(socket) => send_without_signal(socket, bytes),
            Pipe::Pair { write, .. } => write.write(bytes),
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Pipe::Socket(socket) => socket.read(buffer),
            Pipe::Pair { read, .. } => read.read(buffer),
        }
    }
}

/// A write whose failure is an error and never a SIGPIPE, whatever the disposition of that signal.
fn send_without_signal(socket: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length are those of `bytes`, which outlives the call.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    // Negative is the one thing that does not fit.
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn closed_or(error: io::Error) -> ChannelError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ChannelError::Closed,
        _ => ChannelError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::spawn::{ChildSpec, Spawner, Stdin, Stdout};
    use std::thread;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(20);

    fn soon() -> Option<Instant> {
        Some(Instant::now() + LONG)
    }

    fn pair() -> (LineChannel, LineChannel) {
        let (ours, theirs) = LineChannel::pair().unwrap();
        (ours, LineChannel::from_socket(theirs).unwrap())
    }

    fn line(text: &str) -> ReadOutcome {
        ReadOutcome::Line(text.into())
    }

    #[test]
    fn lines_arrive_whole_and_in_order() {
        let (mut ours, mut theirs) = pair();
        ours.queue_line("", None, &mut NoSide).unwrap();
        ours.queue_line("second ü", None, &mut NoSide).unwrap();
        assert_eq!(theirs.read_line(Some(Instant::now()), &mut NoSide).unwrap(), ReadOutcome::Deadline);
        ours.write_line("third", None, &mut NoSide).unwrap();
        for text in ["", "second ü", "third"] {
            assert_eq!(theirs.read_line(soon(), &mut NoSide).unwrap(), line(text));
        }
        drop(ours);
        assert_eq!(theirs.read_line(soon(), &mut NoSide).unwrap(), ReadOutcome::Closed);
    }

    #[test]
    fn a_past_deadline_still_takes_a_line_that_is_there() {
        let (mut ours, mut theirs) = pair();
        ours.write_line("here", None, &mut NoSide).unwrap();
        let past = Some(Instant::now());
        assert_eq!(theirs.read_line(past, &mut NoSide).unwrap(), line("here"));
    }

    #[test]
    fn a_line_break_inside_a_line_is_refused() {
        let (mut ours, _theirs) = pair();
        assert!(matches!(ours.write_line("a\nb", None, &mut NoSide), Err(ChannelError::LineBreak)));
    }

    #[test]
    fn a_flood_without_a_line_break_is_too_long() {
        let (ours, mut theirs) = pair();
        let Pipe::Socket(mut socket) = ours.pipe else { panic!() };
        socket.set_nonblocking(false).unwrap();
        let flood = thread::spawn(move || socket.write_all(&vec![b'x'; MAX_LINE_BYTES + 1]));
        for _ in 0..2 {
            assert_eq!(theirs.read_line(soon(), &mut NoSide).unwrap(), ReadOutcome::TooLong);
        }
        drop(theirs);
        drop(flood.join().unwrap());
    }

    #[test]
    fn the_longest_line_passes() {
        let (mut ours, mut theirs) = pair();
        let longest = "x".repeat(MAX_LINE_BYTES);
        let sent = longest.clone();
        let writer = thread::spawn(move || ours.write_line(&sent, soon(), &mut NoSide));
        assert_eq!(theirs.read_line(soon(), &mut NoSide).unwrap(), line(&longest));
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        let (mut ours, mut theirs) = pair();
        ours.outbox.extend_from_slice(b"a\xffb\n");
        ours.flush(None, &mut NoSide).unwrap();
        assert_eq!(theirs.read_line(soon(), &mut NoSide).unwrap(), line("a\u{fffd}b"));
    }

    #[test]
    fn writing_to_a_closed_channel_is_an_error_and_not_a_signal() {
        let (mut ours, theirs) = pair();
        drop(theirs);
        // A child that another test has just forked may hold the other end until it runs its program.
        let end = soon();
        while ours.write_line("x", end, &mut NoSide).is_ok() && end.is_some_and(|end| Instant::now() < end) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(matches!(ours.write_line("x", None, &mut NoSide), Err(ChannelError::Closed)));
    }

    #[test]
    fn what_came_before_a_death_can_be_read_after_it() {
        let (mut ours, mut theirs) = pair();
        ours.write_line("unread by the dead", None, &mut NoSide).unwrap();
        theirs.write_line("last words", None, &mut NoSide).unwrap();
        drop(theirs);
        assert_eq!(ours.read_line(soon(), &mut NoSide).unwrap(), line("last words"));
        assert_eq!(ours.read_line(soon(), &mut NoSide).unwrap(), ReadOutcome::Closed);
    }

    #[test]
    fn a_side_that_takes_nothing_ends_in_the_deadline() {
        let (mut ours, _theirs) = pair();
        let long = "x".repeat(MAX_LINE_BYTES);
        let deadline = Some(Instant::now() + Duration::from_millis(30));
        assert!(matches!(ours.write_line(&long, deadline, &mut NoSide), Err(ChannelError::Deadline)));
    }

    #[test]
    fn both_sides_may_send_at_once() {
        let (mut ours, mut theirs) = pair();
        let text = "x".repeat(600_000);
        let both = text.clone();
        let writer = thread::spawn(move || {
            theirs.write_line(&both, soon(), &mut NoSide).unwrap();
            theirs.read_line(soon(), &mut NoSide).unwrap()
        });
        ours.write_line(&text, soon(), &mut NoSide).unwrap();
        assert_eq!(ours.read_line(soon(), &mut NoSide).unwrap(), line(&text));
        assert_eq!(writer.join().unwrap(), line(&text));
    }

    #[test]
    fn a_program_that_floods_stderr_is_still_heard() {
        let mut spec = ChildSpec::new("/bin/sh");
        let script = "read x; head -c 2000000 /dev/zero >&2; echo got $x; read y";
        spec.args = vec!["-c".into(), script.into()];
        (spec.stdin, spec.stdout) = (Stdin::Pipe, Stdout::Pipe);
        let mut child = Spawner::start().unwrap().spawn(spec).unwrap();
        let (read, write) = (child.take_stdout().unwrap(), child.take_stdin().unwrap());
        let mut channel = LineChannel::from_pipes(read, write).unwrap();
        channel.write_line("it", soon(), &mut child).unwrap();
        assert_eq!(channel.read_line(soon(), &mut child).unwrap(), line("got it"));
        assert_eq!(child.stderr_total(), 2_000_000);
        let now = Some(Instant::now());
        assert_eq!(channel.read_line(now, &mut child).unwrap(), ReadOutcome::Deadline);
        child.kill_group();
        assert_eq!(channel.read_line(soon(), &mut child).unwrap(), ReadOutcome::Closed);
        // A dying process does not close its descriptors all at once.
        assert!(child.wait(LONG).is_some());
        assert!(matches!(channel.write_line("x", soon(), &mut child), Err(ChannelError::Closed)));
    }

    /// Echoes every line, sending whenever no further line is there.
    fn echo(mut theirs: LineChannel) {
        let mut line = String::new();
        loop {
            let now = Some(Instant::now());
            let mut state = theirs.read_line_into(&mut line, now, &mut NoSide).unwrap();
            if state == ReadState::Deadline {
                theirs.flush(None, &mut NoSide).unwrap();
                state = theirs.read_line_into(&mut line, None, &mut NoSide).unwrap();
            }
            if state != ReadState::Line {
                return;
            }
            theirs.queue_line(&line, None, &mut NoSide).unwrap();
        }
    }

    /// Run with `cargo test --release --lib echo_rate -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures, and wants a release build and a quiet machine"]
    fn echo_rate() {
        let case = format!(r#"{{"id":1234567,"params":{{{}}}}}"#, r#""m":64,"#.repeat(20));
        for batch in [1, 16, 64, 256, 1024] {
            let (mut ours, theirs) = pair();
            let echoer = thread::spawn(move || echo(theirs));
            let mut line = String::new();
            let (start, mut lines) = (Instant::now(), 0);
            while start.elapsed() < Duration::from_secs(1) {
                for _ in 0..batch {
                    ours.queue_line(&case, soon(), &mut NoSide).unwrap();
                }
                ours.flush(soon(), &mut NoSide).unwrap();
                for _ in 0..batch {
                    let state = ours.read_line_into(&mut line, soon(), &mut NoSide).unwrap();
                    assert_eq!((state, line.len()), (ReadState::Line, case.len()));
                }
                lines += batch;
            }
            let rate = f64::from(lines) / start.elapsed().as_secs_f64();
            println!("{} bytes, batch {batch}: {rate:.0} lines/s", case.len());
            drop(ours);
            echoer.join().unwrap();
        }
    }
}
