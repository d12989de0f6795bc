//! One worker seen from outside: its process, its channel, its intent page.

use super::channel::{ChannelError, LineChannel, ReadState};
use super::child::{Child, Exit};
use super::foreign::Foreign;
use super::foreign::lines::Reply;
use super::foreign::verdict::Told;
use super::intent::IntentPage;
use super::interrupt::Interrupt;
use super::probe::ProbeError;
use super::protocol::{Answer, AskKnobs, Hello, KnobsAnswer, LayoutLine, SetupFailed, VERSION};
use super::spawn::{ChildSpec, Inherit, InheritFd, Spawner};
use crate::device::cpu::{Fault as RawFault, FaultRecord};
use crate::problem::{Knobs, Value};
use crate::target::TargetSpec;
use crate::worker::oracle::{BREAK_VARIABLE, DEADLINE};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Environment variables that tell a worker which descriptors it inherited.
pub const CHANNEL_VARIABLE: &str = "SHRINKFAULT_CHANNEL_FD";
pub const INTENT_VARIABLE: &str = "SHRINKFAULT_INTENT_FD";
/// Hidden subcommand that turns the program into a worker.
pub const WORKER_COMMAND: &str = "__worker";

/// How often a wait looks whether the run was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What to start workers with.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// This program.
    pub program: PathBuf,
    pub problem: String,
    pub target: TargetSpec,
    /// Width of the library's integers, where the user names it.
    pub int_width: Option<u32>,
    /// Bytes of address space to reserve.
    pub arena_bytes: u64,
    /// RLIMIT_DATA of a worker, bytes.
    pub data_limit: Option<u64>,
    /// How long a worker may take to say hello.
    pub start_timeout: Duration,
    /// How long one case may take.
    pub case_timeout: Duration,
    /// What starts the program, where it does not start itself: a tool and its arguments.
    pub wrapper: Vec<OsString>,
    /// Variables added to the environment of workers.
    pub env: Vec<(String, String)>,
    /// A program of somebody else, which is started instead of this one.
    pub foreign: Option<Foreign>,
}

/// Why a worker is of no use.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("{0}")]
    Setup(String),
    /// A signal ended it before it was ready, or it stayed silent, which says nothing yet: another one may start.
    #[error("{0}")]
    Died(String),
    #[error("interrupted")]
    Interrupted,
}

impl From<WorkerError> for ProbeError {
    fn from(e: WorkerError) -> ProbeError {
        match e {
            WorkerError::Interrupted => ProbeError::Interrupted,
            WorkerError::Setup(s) | WorkerError::Died(s) => ProbeError::Setup(s),
        }
    }
}

/// A worker that was started and has not been heard of yet.
#[derive(Debug)]
pub struct Starting {
    child: Child,
    channel: LineChannel,
    intent: IntentPage,
    started: Instant,
}

/// A worker that has said hello.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    channel: LineChannel,
    intent: IntentPage,
    pub hello: Hello,
    /// Cases it has answered.
    pub answered: u64,
    /// How long it may take before and after it enters the target: to map memory, to fill it, to compare.
    preparation: Duration,
}

/// How a worker ended while it owed answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Death {
    /// Killed by the supervisor at the deadline.
    Deadline { after: Duration },
    /// The process ended by itself.
    Ended { exit: Exit, fault: Option<RawFault>, stderr_tail: String },
    /// It broke the protocol and was killed.
    Protocol(String),
}

/// What came of asking a worker for one answer.
#[derive(Debug)]
pub enum Heard {
    Answer(Box<Answer>),
    /// A foreign program answered, after what it had told.
    Said(Box<Reply>, Box<Told>),
    /// The worker is gone; `culprit` is the case that was announced and not answered.
    Died {
        culprit: Option<u64>,
        death: Death,
    },
}

impl Death {
    /// Whether another process may have ended the worker: by a signal that no instruction raises, or by a SIGSEGV or SIGBUS
    /// that was sent. Such a death says something of the case only if it happens again.
    pub fn may_be_from_outside(&self) -> bool {
        match self {
            Death::Deadline { .. } | Death::Protocol(_) => false,
            Death::Ended { exit: Exit::Signal(libc::SIGSEGV | libc::SIGBUS), fault, .. } => {
                fault.as_ref().is_some_and(|f| f.si_code <= 0)
            }
            Death::Ended { exit: Exit::Signal(signal), .. } => {
                !matches!(*signal, libc::SIGABRT | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP | libc::SIGSYS)
            }
            Death::Ended { .. } => false,
        }
    }
}

impl Starting {
    /// Whether its process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.is_alive()
    }

    /// Starts a worker without waiting for it. `identify`: its hello says which files the target consists of.
    ///
    /// # Errors
    /// Where no process, channel or page can be had.
    pub fn start(spawner: &Spawner, spec: &WorkerSpec, identify: bool) -> Result<Starting, WorkerError> {
        let setup = |e: &dyn std::fmt::Display| WorkerError::Setup(e.to_string());
        let (channel, theirs) = LineChannel::pair().map_err(|e| setup(&e))?;
        let intent = IntentPage::create().map_err(|e| setup(&e))?;
        let mut child = ChildSpec::new(spec.wrapper.first().map_or(spec.program.as_path(), |tool| Path::new(tool)));
        if !spec.wrapper.is_empty() {
            child.args.extend(spec.wrapper[1..].iter().cloned());
            child.args.push(spec.program.clone().into());
        }
        child.args.extend([WORKER_COMMAND, "--problem", &spec.problem, "--target"].map(Into::into));
        child.args.push(spec.target.to_string().into());
        child.args.extend(["--arena".into(), spec.arena_bytes.to_string().into()]);
        if identify {
            child.args.push("--identify".into());
        }
        if let Some(width) = spec.int_width {
            child.args.extend(["--int-width".into(), width.to_string().into()]);
        }
        child.env_set.extend(spec.env.iter().map(|(k, v)| (k.into(), v.into())));
        child.inherit = vec![
            Inherit { variable: CHANNEL_VARIABLE.into(), fd: InheritFd::Given(theirs) },
            Inherit { variable: INTENT_VARIABLE.into(), fd: InheritFd::Lent(intent.as_raw_fd()) },
        ];
        child.data_limit = spec.data_limit;
        let child = spawner.spawn(child).map_err(|e| setup(&e))?;
        Ok(Starting { child, channel, intent, started: Instant::now() })
    }

    /// Waits for the hello.
    ///
    /// # Errors
    /// A sentence, where the worker says that it cannot start, ends or stays silent.
    pub fn ready(mut self, spec: &WorkerSpec, interrupt: &Interrupt) -> Result<Worker, WorkerError> {
        let mut line = String::new();
        let deadline = self.started + spec.start_timeout;
        match read(&mut self.channel, &mut self.child, &mut line, deadline, interrupt)? {
            Read::Line => {}
            Read::Deadline => {
                let waited = spec.start_timeout.as_secs_f64();
                return Err(WorkerError::Died(format!(
                    "a worker for {} was not ready within {waited} s; raise --start-timeout",
                    spec.target
                )));
            }
            Read::Ended(why) => {
                let exit = self.child.wait(Duration::from_secs(5));
                let tail = text(self.child.stderr_tail());
                let mut said = format!(
                    "a worker for {} ended before it was ready ({}{why}): {}",
                    spec.target,
                    exit.map_or_else(String::new, |e| format!("{}, ", describe_exit(e))),
                    last_line(&tail)
                );
                if exit == Some(Exit::Signal(libc::SIGILL)) {
                    said.push_str("; this processor lacks an instruction of it: name another core type (core=NAME)");
                }
                return Err(match exit {
                    Some(Exit::Signal(_)) => WorkerError::Died(said),
                    _ => WorkerError::Setup(said),
                });
            }
        }
        if let Ok(failed) = serde_json::from_str::<SetupFailed>(&line) {
            return Err(WorkerError::Setup(failed.setup_failed));
        }
        let hello: Hello = serde_json::from_str(&line)
            .map_err(|e| WorkerError::Setup(format!("the first line of a worker is no hello ({e}): {line}")))?;
        if hello.shrinkfault != VERSION {
            let theirs = hello.shrinkfault;
            return Err(WorkerError::Setup(format!("a worker speaks version {theirs} of the protocol, not {VERSION}")));
        }
        Ok(Worker {
            child: self.child,
            channel: self.channel,
            intent: self.intent,
            hello,
            answered: 0,
            preparation: spec.start_timeout,
        })
    }
}

impl Worker {
    /// Sends one layout and the cases to run in it.
    pub fn send(&mut self, line: &LayoutLine, patience: Duration) -> Result<(), ChannelError> {
        self.intent.reset();
        let text = serde_json::to_string(line).unwrap_or_default();
        self.channel.write_line(&text, Some(Instant::now() + patience), &mut self.child)
    }

    /// Waits for the answer to `expected`, at most `patience` from when the target is entered.
    ///
    /// # Errors
    /// Only where the run was interrupted; the worker stays usable for nothing then.
    pub fn hear(&mut self, expected: u64, patience: Duration, interrupt: &Interrupt) -> Result<Heard, WorkerError> {
        let mut line = String::new();
        let heard = match self.wait(expected, &mut line, patience, interrupt)? {
            Read::Line => match serde_json::from_str::<Answer>(&line) {
                Ok(answer) if answer.id == expected => {
                    self.answered += 1;
                    return Ok(Heard::Answer(Box::new(answer)));
                }
                Ok(answer) => self.broken(expected, format!("answered case {} where {expected} was due", answer.id)),
                Err(e) => self.broken(expected, format!("sent a line that is no answer ({e}): {line}")),
            },
            Read::Deadline => {
                let culprit = self.culprit(expected);
                self.child.kill_group();
                self.child.wait(Duration::from_secs(5));
                let after = if culprit.is_some() { patience } else { patience.max(self.preparation) };
                Heard::Died { culprit, death: Death::Deadline { after } }
            }
            Read::Ended(why) => match self.child.wait(Duration::from_secs(2)) {
                Some(exit) => {
                    self.child.drain_stderr();
                    let culprit = self.culprit(expected);
                    let stderr_tail = text(self.child.stderr_tail());
                    Heard::Died { culprit, death: Death::Ended { exit, fault: self.fault(), stderr_tail } }
                }
                None => self.broken(expected, format!("closed its channel and stayed alive ({why})")),
            },
        };
        Ok(heard)
    }

    /// Waits for a line. The time of a case counts from when the target is entered, to within an eighth of it.
    fn wait(
        &mut self,
        expected: u64,
        line: &mut String,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<Read, WorkerError> {
        let give_up = Instant::now() + patience.max(self.preparation);
        let look = (patience / 8).max(Duration::from_millis(1));
        let mut entered = None;
        loop {
            let deadline = entered.map_or_else(|| give_up.min(Instant::now() + look), |at| at + patience);
            match read(&mut self.channel, &mut self.child, line, deadline, interrupt)? {
                Read::Deadline => {}
                other => return Ok(other),
            }
            let now = Instant::now();
            let running = self.culprit(expected).filter(|_| self.intent.is_in_target());
            entered = match (entered, running) {
                (Some(_), Some(_)) => return Ok(Read::Deadline),
                (None, Some(_)) => Some(now),
                (_, None) if now >= give_up => return Ok(Read::Deadline),
                (_, None) => None,
            };
        }
    }

    /// Asks for the knobs of a case; `in_mind` are values that are listed where they are taken.
    ///
    /// # Errors
    /// A sentence, where the worker does not answer.
    pub fn knobs(
        &mut self,
        params: BTreeMap<String, Value>,
        in_mind: &Knobs,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<BTreeMap<String, Vec<Value>>, WorkerError> {
        let ask = AskKnobs { id: 0, ask: "knobs".to_owned(), params, knobs: in_mind.clone() };
        let text = serde_json::to_string(&ask).unwrap_or_default();
        let deadline = Instant::now() + patience;
        self.channel
            .write_line(&text, Some(deadline), &mut self.child)
            .map_err(|e| WorkerError::Setup(e.to_string()))?;
        let mut line = String::new();
        match read(&mut self.channel, &mut self.child, &mut line, deadline, interrupt)? {
            Read::Line => serde_json::from_str::<KnobsAnswer>(&line)
                .map(|a| a.knobs)
                .map_err(|e| WorkerError::Setup(format!("a worker answered the question for knobs with {line} ({e})"))),
            _ => Err(WorkerError::Setup("a worker did not answer which knobs a case has".to_owned())),
        }
    }

    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// The case in flight, where the worker announced one; else the one whose answer is due.
    fn culprit(&self, expected: u64) -> Option<u64> {
        self.intent.in_flight().filter(|id| *id == expected)
    }

    fn fault(&self) -> Option<RawFault> {
        // SAFETY: the area is 512 bytes of a shared page that lives as long as `self.intent`; the worker puts a
        // FaultRecord there and nothing else, every field is plain data, and the worker is dead by now.
        let record = unsafe { &*self.intent.fault_area().cast::<FaultRecord>() };
        record.read()
    }

    fn broken(&mut self, expected: u64, what: String) -> Heard {
        // It may have answered since; what it said before that is not heard any more.
        let culprit = self.intent.announced().filter(|id| *id == expected);
        self.child.kill_group();
        self.child.wait(Duration::from_secs(5));
        Heard::Died { culprit, death: Death::Protocol(what) }
    }
}

/// What came of waiting for a line.
pub(super) enum Read {
    Line,
    Deadline,
    Ended(&'static str),
}

/// Waits for a line, and looks now and then whether the run was interrupted or the process ended: a child of it may hold
/// the channel open.
pub(super) fn read(
    channel: &mut LineChannel,
    child: &mut Child,
    line: &mut String,
    deadline: Instant,
    interrupt: &Interrupt,
) -> Result<Read, WorkerError> {
    loop {
        if interrupt.is_set() {
            return Err(WorkerError::Interrupted);
        }
        let slice = deadline.min(Instant::now() + LOOK_EVERY);
        match channel.read_line_into(line, Some(slice), child) {
            Ok(ReadState::Line) => return Ok(Read::Line),
            Ok(ReadState::Deadline) if Instant::now() >= deadline && !deadline_is_broken() => {
                return Ok(Read::Deadline);
            }
            Ok(ReadState::Deadline) if child.is_alive() => {}
            // Its last words may have come since.
            Ok(ReadState::Deadline) => match channel.read_line_into(line, Some(Instant::now()), child) {
                Ok(ReadState::Line) => return Ok(Read::Line),
                _ => return Ok(Read::Ended("it has ended")),
            },
            Ok(ReadState::Closed) => return Ok(Read::Ended("its channel was closed")),
            Ok(ReadState::TooLong) => return Ok(Read::Ended("it sent a line of more than 1 MiB")),
            Err(_) => return Ok(Read::Ended("its channel failed")),
        }
    }
}

/// Whether SHRINKFAULT_BREAK_ORACLE=deadline switches the deadline off, to test the self-test; workers read the other values.
fn deadline_is_broken() -> bool {
    static BROKEN: OnceLock<bool> = OnceLock::new();
    *BROKEN.get_or_init(|| std::env::var_os(BREAK_VARIABLE).is_some_and(|v| v == DEADLINE))
}

/// `exit status 3` or `signal 11 (SIGSEGV)`.
pub fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("signal {signal} ({name})"),
            None => format!("signal {signal}"),
        },
        Exit::Lost => "unknown exit".to_owned(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGABRT => "SIGABRT",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGPIPE => "SIGPIPE",
        _ => return None,
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last line of a program's stderr that says something.
pub fn last_line(tail: &str) -> &str {
    tail.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing on stderr").trim()
}
