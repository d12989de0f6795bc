//! Starting child processes, all from one thread that lives as long as the process.
//!
//! The kernel sends a child its PR_SET_PDEATHSIG when the *thread* that started it ends, so a child
//! started from a short-lived thread would die with that thread.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::child::Child;
use super::poll;

/// A child was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("failed to start the thread that starts children ({0}); raise the limit on processes (ulimit -u)")]
    Thread(#[source] io::Error),
    #[error("failed to make a pipe for `{program}` ({source}); raise the limit on open files (ulimit -n)")]
    Pipe {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to start `{program}` ({source}); {}", advice(source))]
    Start {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the thread that starts children has ended; report this as a bug")]
    Gone,
}

/// What to change where a program could not be started.
fn advice(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit on open files (ulimit -n)",
        Some(libc::EAGAIN) => "raise the limit on processes (ulimit -u), or lower --jobs",
        Some(libc::ENOMEM) => "free some memory, or raise the limits on it (ulimit -v, ulimit -d)",
        _ => "check that it exists and may be executed",
    }
}

/// Where a child's stdin comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    #[default]
    Null,
    /// A pipe: [`Child::take_stdin`].
    Pipe,
}

/// Where a child's stdout goes. Its stderr always goes to a pipe that [`Child`] drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdout {
    /// Into the same pipe as stderr, because libraries print there.
    #[default]
    ToStderr,
    /// A pipe of its own: [`Child::take_stdout`].
    Pipe,
}

/// A descriptor that the child inherits under its number here.
#[derive(Debug)]
pub struct Inherit {
    /// The environment variable that tells the child the number.
    pub variable: OsString,
    pub fd: InheritFd,
}

#[derive(Debug)]
pub enum InheritFd {
    /// Closed here once the child has started, such as the child's end of a socket pair.
    Given(OwnedFd),
    /// Stays open here, such as the intent page.
    Lent(RawFd),
}

impl InheritFd {
    fn number(&self) -> RawFd {
        match self {
            InheritFd::Given(fd) => fd.as_raw_fd(),
            InheritFd::Lent(fd) => *fd,
        }
    }
}

/// What to start, and with what.
#[derive(Debug)]
pub struct ChildSpec {
    /// A path, or a name looked up in the child's PATH; relative to `cwd`, if there is one.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env_set: Vec<(OsString, OsString)>,
    pub env_remove: Vec<OsString>,
    pub cwd: Option<PathBuf>,
    pub inherit: Vec<Inherit>,
    pub stdin: Stdin,
    pub stdout: Stdout,
    /// RLIMIT_DATA in bytes, lowered to the hard limit if that is below it.
    pub data_limit: Option<u64>,
}

impl ChildSpec {
    pub fn new(program: impl Into<PathBuf>) -> ChildSpec {
        ChildSpec {
            program: program.into(),
            args: Vec::new(),
            env_set: Vec::new(),
            env_remove: Vec::new(),
            cwd: None,
            inherit: Vec::new(),
            stdin: Stdin::default(),
            stdout: Stdout::default(),
            data_limit: None,
        }
    }
}

struct Request {
    spec: ChildSpec,
    reply: Sender<Result<Child, SpawnError>>,
}

/// The way into the one permanent thread of this process. Never emptied, so the thread never ends.
static THREAD: Mutex<Option<Sender<Request>>> = Mutex::new(None);

/// A handle on the thread from which all children are started.
#[derive(Debug, Clone)]
pub struct Spawner {
    requests: Sender<Request>,
}

impl Spawner {
    /// Starts the thread, or finds it if it runs already.
    pub fn start() -> Result<Spawner, SpawnError> {
        let mut thread = THREAD.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(requests) = &*thread {
            return Ok(Spawner { requests: requests.clone() });
        }
        keep_exit_statuses();
        let (requests, inbox) = mpsc::channel::<Request>();
        thread::Builder::new()
            .name("spawner".into())
            .spawn(move || {
                for Request { spec, reply } in inbox {
                    // If the asker is gone, the child comes back here and its drop kills it.
                    drop(reply.send(start(spec)));
                }
            })
            .map_err(SpawnError::Thread)?;
        *thread = Some(requests.clone());
        Ok(Spawner { requests })
    }

    /// Starts a child; returns once it has executed its program.
    pub fn spawn(&self, spec: ChildSpec) -> Result<Child, SpawnError> {
        let (reply, answer) = mpsc::channel();
        self.requests.send(Request { spec, reply }).map_err(|_| SpawnError::Gone)?;
        answer.recv().map_err(|_| SpawnError::Gone)?
    }
}

/// A parent that ignores SIGCHLD passes that on, and the kernel would then throw exit statuses away.
fn keep_exit_statuses() {
    // SAFETY: `sigaction` is plain old data for which zeros are valid. A handler is left alone; only
    // "ignore" and "do not wait" are taken back, which no code can rely on once children are waited for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut action) != 0 {
            return;
        }
        if action.sa_sigaction == libc::SIG_IGN {
            action.sa_sigaction = libc::SIG_DFL;
        }
        action.sa_flags &= !libc::SA_NOCLDWAIT;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut());
    }
}

/// Runs on the spawner thread.
fn start(spec: ChildSpec) -> Result<Child, SpawnError> {
    let no_pipe = |source| SpawnError::Pipe { program: spec.program.clone(), source };
    let (stderr, stderr_end) = io::pipe().map_err(no_pipe)?;
    poll::set_nonblocking(stderr.as_raw_fd()).map_err(no_pipe)?;
    let stdout = match spec.stdout {
        Stdout::ToStderr => stderr_end.try_clone().map_err(no_pipe)?.into(),
        Stdout::Pipe => Stdio::piped(),
    };
    let stdin = match spec.stdin {
        Stdin::Null => Stdio::null(),
        Stdin::Pipe => Stdio::piped(),
    };
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).stdin(stdin).stdout(stdout).stderr(stderr_end).process_group(0);
    for name in &spec.env_remove {
        command.env_remove(name);
    }
    command.envs(spec.env_set.iter().map(|(name, value)| (name, value)));
    for inherit in &spec.inherit {
        command.env(&inherit.variable, inherit.fd.number().to_string());
    }
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    let before_exec = BeforeExec {
        supervisor: std::process::id() as i32,
        inherit: spec.inherit.iter().map(|inherit| inherit.fd.number()).collect(),
        data_limit: spec.data_limit,
    };
    // SAFETY: between fork and exec, `run` makes only async-signal-safe system calls and allocates
    // nothing; what it reads was made before the fork.
    unsafe { command.pre_exec(move || before_exec.run()) };
    let mut child = command.spawn().map_err(|source| SpawnError::Start { program: spec.program.clone(), source })?;
    Ok(Child::adopt(
        child.id() as i32,
        child.stdin.take().map(OwnedFd::from),
        child.stdout.take().map(OwnedFd::from),
        File::from(OwnedFd::from(stderr)),
    ))
}

/// What the child does to itself before it executes its program.
struct BeforeExec {
    supervisor: i32,
    inherit: Vec<RawFd>,
    data_limit: Option<u64>,
}

impl BeforeExec {
    /// Every call is on the list of async-signal-safe ones or a bare system call. std has set the
    /// process group, emptied the signal mask and will report an error through its own pipe.
    fn run(&self) -> io::Result<()> {
        // SAFETY: plain system calls on numbers.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // The supervisor may have died before that took effect.
            if libc::getppid() != self.supervisor {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            // An ignored signal stays ignored across exec. The numbers that are not settable fail.
            for signal in 1..=64 {
                libc::signal(signal, libc::SIG_DFL);
            }
            for &fd in &self.inherit {
                check(libc::fcntl(fd, libc::F_SETFD, 0))?;
            }
        }
        lower_limit(libc::RLIMIT_CORE, 0)?;
        self.data_limit.map_or(Ok(()), |bytes| lower_limit(libc::RLIMIT_DATA, bytes))
    }
}

/// Sets both limits of a resource to `value`, or to the hard limit if that is lower.
fn lower_limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives both calls.
    unsafe {
        check(libc::getrlimit(resource, &mut limit))?;
        let value = limit.rlim_max.min(value);
        limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        check(libc::setrlimit(resource, &limit))
    }
}

fn check(rc: i32) -> io::Result<()> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::child::Exit;
    use crate::exec::intent::IntentPage;
    use crate::exec::testing::{alone, is_alone, is_gone};
    use std::io::{Read, Write};
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(20);

    fn spec(program: &str, args: &[&str]) -> ChildSpec {
        let mut spec = ChildSpec::new(program);
        spec.args = args.iter().map(OsString::from).collect();
        spec
    }

    /// What a shell script prints, at most 16 KiB of it.
    fn output(mut spec: ChildSpec, script: &str) -> String {
        spec.args = vec!["-c".into(), script.into()];
        let mut child = Spawner::start().unwrap().spawn(spec).unwrap();
        assert_eq!(child.wait(LONG), Some(Exit::Code(0)));
        String::from_utf8_lossy(child.stderr_tail()).into_owned()
    }

    fn status_of(text: &str, field: &str) -> String {
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        line.unwrap().trim().to_string()
    }

    #[test]
    fn a_child_starts_with_default_signals_its_own_group_and_no_core() {
        // SAFETY: SIGUSR2 is used by nothing else in this program.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        let mut limited = ChildSpec::new("/bin/sh");
        limited.data_limit = Some(1 << 30);
        let text = output(limited, "cat /proc/self/status /proc/self/limits; cat /proc/self/stat; echo leader $$");
        for field in ["SigBlk:", "SigIgn:", "SigCgt:"] {
            let mask = u64::from_str_radix(&status_of(&text, field), 16).unwrap();
            // The C library keeps signals 32 and 33 to itself.
            assert_eq!(mask & !(3 << 31), 0, "{field}");
        }
        assert!(status_of(&text, "Max core file size").starts_with("0 "));
        assert!(status_of(&text, "Max data size").starts_with("1073741824 "));
        let leader = status_of(&text, "leader ");
        let stat = text.lines().find(|line| line.contains("(cat)")).unwrap();
        assert_eq!(stat.split(' ').nth(4), Some(leader.as_str()));
    }

    #[test]
    fn children_outlive_the_thread_that_asked_for_them() {
        let asker = thread::spawn(|| Spawner::start().unwrap().spawn(spec("/bin/sleep", &["100"])));
        let mut child = asker.join().unwrap().unwrap();
        assert_eq!(child.wait(Duration::from_millis(100)), None);
    }

    #[test]
    fn a_child_inherits_what_it_is_given_and_nothing_else() {
        let page = IntentPage::create().unwrap();
        let secret = IntentPage::create().unwrap();
        let (given, mut ours) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut spec = ChildSpec::new("/bin/bash");
        spec.inherit = vec![
            Inherit { variable: "PAGE_FD".into(), fd: InheritFd::Lent(page.as_raw_fd()) },
            Inherit { variable: "SOCKET_FD".into(), fd: InheritFd::Given(given.into()) },
        ];
        spec.env_set = vec![("GREETING".into(), "hello".into())];
        let text = output(spec, "ls /proc/$$/fd; printf '\\x2a' >&$PAGE_FD; echo $GREETING >&$SOCKET_FD");
        let open: Vec<i32> = text.lines().map(|fd| fd.parse().unwrap()).collect();
        assert!(open.contains(&page.as_raw_fd()) && !open.contains(&secret.as_raw_fd()));
        assert_eq!(page.announced(), Some(41));
        let mut greeting = String::new();
        // The end of the stream also shows that no copy of the given end is left open.
        ours.read_to_string(&mut greeting).unwrap();
        assert_eq!(greeting, "hello\n");
    }

    #[test]
    fn children_die_with_their_supervisor() {
        if is_alone() {
            let sleep = Spawner::start().unwrap().spawn(spec("/bin/sleep", &["100"]));
            println!("\nsleep {} is up", sleep.as_ref().unwrap().pid());
            thread::sleep(LONG);
        }
        let name = "exec::spawn::tests::children_die_with_their_supervisor";
        let mut supervisor = Spawner::start().unwrap().spawn(alone(name)).unwrap();
        let sleep = loop {
            assert_eq!(supervisor.wait(Duration::from_millis(5)), None);
            let text = String::from_utf8_lossy(supervisor.stderr_tail());
            if let Some((_, rest)) = text.split_once("\nsleep ")
                && let Some((pid, _)) = rest.split_once(" is up\n")
            {
                break pid.parse().unwrap();
            }
        };
        // The group of the supervisor alone: its child has a group of its own.
        supervisor.kill_group();
        assert!(is_gone(sleep));
    }

    fn open_descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    #[test]
    fn thousands_of_children_leave_nothing_behind() {
        // Alone in a process of its own, because other tests open descriptors and start children.
        if !is_alone() {
            let name = "exec::spawn::tests::thousands_of_children_leave_nothing_behind";
            let mut child = Spawner::start().unwrap().spawn(alone(name)).unwrap();
            let exit = child.wait(Duration::from_secs(300));
            let text = String::from_utf8_lossy(child.stderr_tail());
            println!("{text}");
            assert_eq!(exit, Some(Exit::Code(0)), "{text}");
            assert!(text.contains("1 passed"), "{text}");
            return;
        }
        let spawner = Spawner::start().unwrap();
        let before = open_descriptors();
        let segv = ["-c", "kill -SEGV $$"];
        let kinds: [(&str, &str, &[&str], Exit); 2] = [
            ("/bin/true", "/bin/true", &[], Exit::Code(0)),
            ("death by SIGSEGV", "/bin/sh", &segv, Exit::Signal(libc::SIGSEGV)),
        ];
        for (what, program, args, exit) in kinds {
            let start = std::time::Instant::now();
            for _ in 0..2_500 {
                let mut child = spawner.spawn(spec(program, args)).unwrap();
                assert_eq!(child.wait(LONG), Some(exit));
            }
            println!("{what}: {:?} a child", start.elapsed() / 2_500);
        }
        for _ in 0..100 {
            drop(spawner.spawn(spec("/bin/sleep", &["100"])).unwrap());
        }
        assert_eq!(open_descriptors(), before);
        // SAFETY: no status is asked for; -1 is any child, and an error says that there is none.
        let any = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
        assert_eq!(any, -1, "a child or a zombie is left");
    }

    #[test]
    fn stdin_and_stdout_can_be_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let mut cat = spec("sh", &["-c", "cat; pwd; echo log >&2; echo ${HOME-none}"]);
        cat.stdin = Stdin::Pipe;
        cat.stdout = Stdout::Pipe;
        cat.cwd = Some(folder.path().into());
        cat.env_remove = vec!["HOME".into()];
        let mut child = Spawner::start().unwrap().spawn(cat).unwrap();
        let mut stdin = File::from(child.take_stdin().unwrap());
        stdin.write_all(b"in\n").unwrap();
        drop(stdin);
        let mut text = String::new();
        File::from(child.take_stdout().unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("in\n{}\nnone\n", folder.path().display()));
        assert_eq!(child.wait(LONG), Some(Exit::Code(0)));
        assert_eq!(child.stderr_tail(), b"log\n");
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let error = Spawner::start().unwrap().spawn(spec("/no/such/program", &[]));
        assert!(error.unwrap_err().to_string().contains("/no/such/program"));
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_an_error() {
        let mut spec = spec("/bin/true", &[]);
        spec.inherit = vec![Inherit { variable: "X".into(), fd: InheritFd::Lent(987_654) }];
        assert!(matches!(Spawner::start().unwrap().spawn(spec), Err(SpawnError::Start { .. })));
    }
}
