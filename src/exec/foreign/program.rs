//! One foreign program seen from outside: its process, its pipes, what it owes.

use super::Foreign;
use super::identity::description;
use super::lines::{Line, Reply, cut, parse};
use super::verdict::{Said, Told, of_death};
use crate::evidence::symbol::Modules;
use crate::exec::channel::{ChannelError, LineChannel};
use crate::exec::child::{Child, Exit};
use crate::exec::interrupt::Interrupt;
use crate::exec::protocol::{ArenaSpan, AskKnobs, Hello, LayoutLine, VERSION, WireCase};
use crate::exec::spawn::{ChildSpec, Spawner, Stdin, Stdout};
use crate::exec::tail::Tail;
use crate::exec::verdict::Verdict;
use crate::exec::worker::{Death, Heard, Read, WorkerError, describe_exit, last_line, read};
use crate::problem::{Flush, Instance, Knobs, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Cases that a program has in its stdin at most. They stay far below what a pipe holds, so that writing never waits for a
/// program that works.
const WINDOW: usize = 4;
/// How long a program whose pipes are closed may take to end.
const ENDING: Duration = Duration::from_secs(2);
/// How long an idle program may take to end once its stdin is closed.
const GRACE: Duration = Duration::from_millis(300);
/// Pages of a CPU: what coverage counts edges by.
const PAGE_BYTES: u64 = 4096;

/// A program that was started and has not been heard of yet.
#[derive(Debug)]
pub struct StartingProgram {
    child: Child,
    channel: LineChannel,
    started: Instant,
    identify: bool,
}

/// A program that is ready.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// `None` once it was closed for good.
    channel: Option<LineChannel>,
    foreign: Foreign,
    pub hello: Hello,
    /// Cases that it was not told of yet, with the number of their layout.
    pending: VecDeque<(u64, WireCase)>,
    /// Cases that it owes an answer for: the job's number, and its own, which is never used twice.
    owed: VecDeque<(u64, u64)>,
    next: u64,
    told: Told,
    /// What it wrote to stdout that is not of the protocol.
    log: Tail,
    /// Bytes of stderr and of the log at the last answer.
    heard: (u64, u64),
    /// It takes no more lines.
    deaf: bool,
}

impl StartingProgram {
    /// Starts a program without waiting for it.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn start(spawner: &Spawner, foreign: &Foreign, identify: bool) -> Result<StartingProgram, WorkerError> {
        let setup = |e: &dyn std::fmt::Display| WorkerError::Setup(format!("{}: {e}", foreign.manifest.path.display()));
        let manifest = &foreign.manifest;
        let folder = std::fs::canonicalize(manifest.folder()).map_err(|e| setup(&e))?;
        let name = &manifest.command[0];
        let mut spec = ChildSpec::new(if name.contains('/') { folder.join(name) } else { name.into() });
        spec.args = manifest.command[1..].iter().map(Into::into).collect();
        spec.env_set = manifest.env.iter().map(|(k, v)| (k.into(), v.into())).collect();
        (spec.cwd, spec.stdin, spec.stdout) = (Some(folder), Stdin::Pipe, Stdout::Pipe);
        let mut child = spawner.spawn(spec).map_err(|e| setup(&e))?;
        let (Some(stdout), Some(stdin)) = (child.take_stdout(), child.take_stdin()) else {
            return Err(setup(&"the program has no pipes"));
        };
        let channel = LineChannel::from_pipes(stdout, stdin).map_err(|e| setup(&e))?;
        Ok(StartingProgram { child, channel, started: Instant::now(), identify })
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.is_alive()
    }

    /// Waits for the hello; lines before it are log.
    ///
    /// # Errors
    /// A sentence, where it ends, stays silent or says something else.
    pub fn ready(
        mut self,
        foreign: &Foreign,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Program, WorkerError> {
        let (mut line, deadline) = (String::new(), self.started + timeout);
        let named = foreign.named();
        let silent = || {
            let waited = timeout.as_secs_f64();
            let fix = "print {\"shrinkfault\":1} and flush once it is, or raise start_timeout_s";
            Err(WorkerError::Setup(format!("{named} was not ready within {waited} s: {fix}")))
        };
        let can = loop {
            match read(&mut self.channel, &mut self.child, &mut line, deadline, interrupt)? {
                Read::Line if !line.starts_with('{') && Instant::now() < deadline => continue,
                Read::Line if !line.starts_with('{') => return silent(),
                Read::Line => match parse(&line) {
                    Ok(Line::Hello { version, can }) if version == u64::from(VERSION) => break can,
                    Ok(Line::Hello { version, .. }) => {
                        let text = format!("{named} speaks version {version} of the protocol, not {VERSION}");
                        return Err(WorkerError::Setup(text));
                    }
                    Ok(Line::SetupFailed(why)) => return Err(WorkerError::Setup(format!("{named}: {}", cut(&why)))),
                    Ok(_) => {
                        let text = format!("{named} said {} before {{\"shrinkfault\":1}}", cut(&line));
                        return Err(WorkerError::Setup(text));
                    }
                    Err(why) => return Err(WorkerError::Setup(format!("{named} wrote {why}: {}", cut(&line)))),
                },
                Read::Deadline => return silent(),
                Read::Ended(why) => return Err(self.ended(&named, why)),
            }
        };
        let modules = Modules::read_of(self.child.pid()).unwrap_or_default();
        let hello = Hello {
            shrinkfault: VERSION,
            can,
            description: description(foreign, self.identify),
            arena: ArenaSpan { base: 0, len: 0, page_bytes: PAGE_BYTES },
            modules: modules.clone(),
        };
        Ok(Program {
            heard: (self.child.stderr_total(), 0),
            child: self.child,
            channel: Some(self.channel),
            foreign: foreign.clone(),
            hello,
            pending: VecDeque::new(),
            owed: VecDeque::new(),
            next: 0,
            told: Told { modules, ..Told::default() },
            log: Tail::default(),
            deaf: false,
        })
    }

    fn ended(&mut self, named: &str, why: &str) -> WorkerError {
        let exit = self.child.wait(ENDING);
        self.child.drain_stderr();
        let tail = String::from_utf8_lossy(self.child.stderr_tail()).into_owned();
        let how = exit.map_or_else(|| why.to_owned(), describe_exit);
        let said = format!("{named} ended before it was ready ({how}): {}", cut(last_line(&tail)));
        match exit {
            Some(Exit::Signal(_)) => WorkerError::Died(said),
            _ => WorkerError::Setup(said),
        }
    }
}

impl Program {
    fn can(&self, what: &str) -> bool {
        self.hello.can.iter().any(|c| c == what)
    }

    /// Takes over the cases of a line that are to run, and tells the program of the first ones.
    ///
    /// # Errors
    /// Where it has ended since its last answer.
    pub fn send(&mut self, line: &LayoutLine) -> Result<(), ChannelError> {
        if !self.child.is_alive() {
            return Err(ChannelError::Closed);
        }
        let cases = line.run.iter().filter_map(|id| line.cases.iter().find(|c| c.id == *id));
        self.pending.extend(cases.map(|c| (line.layout, c.clone())));
        Ok(())
    }

    /// Waits for the answer to `expected`, at most `patience` from now; `instance` says which operands the case has.
    ///
    /// # Errors
    /// Where the run was interrupted, or the program broke the protocol: one sentence.
    pub fn hear(
        &mut self,
        expected: u64,
        instance: &dyn Fn(u64) -> Option<Instance>,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<Heard, WorkerError> {
        let deadline = Instant::now() + patience;
        self.tell(instance, deadline);
        if self.owed.front().is_none_or(|(id, _)| *id != expected) {
            return self.undelivered();
        }
        let mut line = String::new();
        loop {
            let Some(channel) = self.channel.as_mut() else { return self.undelivered() };
            let state = read(channel, &mut self.child, &mut line, deadline, interrupt)?;
            match state {
                Read::Line => {
                    if let Some(reply) = self.take(&line)? {
                        return self.answered(reply);
                    }
                    // A flood of log is no progress.
                    if Instant::now() >= deadline {
                        return Ok(self.hung(expected, patience));
                    }
                }
                Read::Deadline => return Ok(self.hung(expected, patience)),
                Read::Ended(why) => return self.ended(expected, why),
            }
        }
    }

    /// The verdict on the case that was in flight when the program ended.
    pub fn blame(&self, death: &Death, instance: Option<&Instance>) -> Verdict {
        of_death(death, &self.told, &self.said(), instance, &self.foreign)
    }

    /// The verdict that an answer states.
    ///
    /// # Errors
    /// One sentence, where it contradicts the manifest.
    pub fn verdict(&self, reply: &Reply, told: &Told, instance: &Instance) -> Result<Verdict, String> {
        super::verdict::of_reply(reply, told, instance, &self.foreign)
            .map_err(|why| format!("{} answered {why}", self.foreign.named()))
    }

    /// Asks for the knobs of a case, where the program has some of its own; those of the manifest otherwise.
    ///
    /// # Errors
    /// A sentence, where it does not answer.
    pub fn knobs(
        &mut self,
        params: BTreeMap<String, Value>,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<BTreeMap<String, Vec<Value>>, WorkerError> {
        let mut all = self.foreign.manifest.knobs.clone();
        if !self.can("knobs") {
            return Ok(all);
        }
        let (id, deadline) = (self.next, Instant::now() + patience);
        self.next += 1;
        let ask = AskKnobs { id, ask: "knobs".to_owned(), params, knobs: Knobs::new() };
        let text = serde_json::to_string(&ask).unwrap_or_default();
        let named = self.foreign.named();
        let failed = |why: String| WorkerError::Setup(format!("{named} {why}"));
        let Some(channel) = self.channel.as_mut() else { return Err(failed("has ended".to_owned())) };
        channel.write_line(&text, Some(deadline), &mut self.child).map_err(|e| failed(format!("took no line: {e}")))?;
        let mut line = String::new();
        loop {
            match read(channel, &mut self.child, &mut line, deadline, interrupt)? {
                Read::Line if !line.starts_with('{') && Instant::now() < deadline => {
                    self.log.push(line.as_bytes());
                }
                Read::Line => match parse(&line) {
                    Ok(Line::Knobs { id: theirs, knobs }) if theirs == id => {
                        all.extend(knobs);
                        return Ok(all);
                    }
                    Ok(_) => return Err(failed(format!("answered the question for knobs with {}", cut(&line)))),
                    Err(why) => {
                        return Err(failed(format!("answered the question for knobs with {why}: {}", cut(&line))));
                    }
                },
                Read::Deadline | Read::Ended(_) => {
                    return Err(failed("did not answer which knobs a case has".to_owned()));
                }
            }
        }
    }

    /// Fills the program's stdin up to the window. A program that takes no line shows that by its silence.
    fn tell(&mut self, instance: &dyn Fn(u64) -> Option<Instance>, deadline: Instant) {
        while self.owed.len() < WINDOW && !self.deaf {
            let Some((layout, case)) = self.pending.pop_front() else { return };
            let text = self.text(layout, &case, instance(case.id).as_ref());
            let Some(channel) = self.channel.as_mut() else { return };
            match channel.write_line(&text, Some(deadline), &mut self.child) {
                Ok(()) | Err(ChannelError::Deadline) => {
                    self.owed.push_back((case.id, self.next));
                    self.next += 1;
                }
                Err(_) => {
                    self.deaf = true;
                    self.pending.push_front((layout, case));
                }
            }
        }
    }

    fn text(&self, layout: u64, case: &WireCase, instance: Option<&Instance>) -> String {
        let mut line = json!({"id": self.next, "seed": case.seed, "params": case.params, "knobs": case.knobs});
        if let (true, Some(instance)) = (self.can("place"), instance) {
            line["place"] = Json::Object(self.places(case, instance));
        }
        if self.can("layout") {
            line["layout"] = layout.into();
        }
        line.to_string()
    }

    fn places(&self, case: &WireCase, instance: &Instance) -> Map<String, Json> {
        let own = instance.views.iter().flatten().filter(|v| v.alias.is_none());
        let place = |v: &crate::problem::View| {
            let flush = if case.place.flush == Flush::End { "end" } else { "start" };
            let align = case.place.align.max(self.foreign.manifest.extras[v.operand].align);
            let place = json!({"flush": flush, "pad": case.place.pad, "align": align});
            (instance.problem.operands[v.operand].name.clone(), place)
        };
        own.map(place).collect()
    }

    /// Takes in one line; the reply, where it is one.
    fn take(&mut self, line: &str) -> Result<Option<Box<Reply>>, WorkerError> {
        if !line.starts_with('{') {
            self.log.push(line.as_bytes());
            self.log.push(b"\n");
            return Ok(None);
        }
        let (id, parsed) = match parse(line) {
            Ok(Line::Hello { .. } | Line::SetupFailed(_)) => return Err(self.broken("said hello a second time")),
            Ok(Line::Knobs { .. }) => return Err(self.broken("named knobs without being asked")),
            Ok(parsed @ (Line::Launch { id, .. } | Line::Evidence { id, .. } | Line::Answer { id, .. })) => {
                (id, parsed)
            }
            Err(why) => return Err(self.broken(&format!("wrote {why}: {}", cut(line)))),
        };
        let due = self.owed.front().map_or(self.next, |(_, theirs)| *theirs);
        if id < due {
            return Err(self.broken(&format!("spoke of case {id}, which it had answered already: {}", cut(line))));
        }
        if id > due {
            return Err(self.broken(&format!("spoke of case {id} where case {due} was due: {}", cut(line))));
        }
        match parsed {
            Line::Launch { memory, .. } => {
                self.told.announced = true;
                self.told.memory = memory;
                self.foreign.announces.store(true, Ordering::Relaxed);
            }
            Line::Evidence { evidence, .. } => {
                self.told.evidence = Some(evidence);
                // What it has loaded and grown since; it may be gone already.
                if let Some(now) = Modules::read_of(self.child.pid()).ok().filter(|m| !m.regions.is_empty()) {
                    self.told.modules = now;
                }
            }
            Line::Answer { reply, .. } => return Ok(Some(reply)),
            Line::Hello { .. } | Line::SetupFailed(_) | Line::Knobs { .. } => {}
        }
        Ok(None)
    }

    fn answered(&mut self, reply: Box<Reply>) -> Result<Heard, WorkerError> {
        self.owed.pop_front();
        let modules = self.told.modules.clone();
        let told = std::mem::replace(&mut self.told, Told { modules, ..Told::default() });
        self.child.drain_stderr();
        self.heard = (self.child.stderr_total(), self.log.total());
        if reply.word == super::lines::Word::Fault {
            // A device context does not survive a fault.
            self.child.kill_group();
        }
        Ok(Heard::Said(reply, Box::new(told)))
    }

    fn hung(&mut self, expected: u64, patience: Duration) -> Heard {
        self.child.kill_group();
        self.child.wait(ENDING);
        Heard::Died { culprit: Some(expected), death: Death::Deadline { after: patience } }
    }

    fn ended(&mut self, expected: u64, why: &str) -> Result<Heard, WorkerError> {
        let Some(exit) = self.child.wait(ENDING) else {
            return Err(self.broken(&format!("owed an answer and stayed alive, but {why}")));
        };
        self.child.drain_stderr();
        let dead_before_launch = !self.told.announced && self.foreign.announces.load(Ordering::Relaxed);
        Ok(Heard::Died { culprit: (!dead_before_launch).then_some(expected), death: self.death(exit) })
    }

    /// The case that is due never reached the program.
    fn undelivered(&mut self) -> Result<Heard, WorkerError> {
        match self.child.wait(ENDING) {
            Some(exit) => Ok(Heard::Died { culprit: None, death: self.death(exit) }),
            None => Err(self.broken("closed its stdin while there were cases to run")),
        }
    }

    fn death(&self, exit: Exit) -> Death {
        Death::Ended { exit, fault: None, stderr_tail: self.said().last_words().to_owned() }
    }

    /// What it wrote since its last answer.
    fn said(&self) -> Said {
        let since = |bytes: &[u8], fresh: u64| {
            let fresh = usize::try_from(fresh).unwrap_or(usize::MAX);
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(fresh)..]).into_owned()
        };
        Said {
            stderr: since(self.child.stderr_tail(), self.child.stderr_total() - self.heard.0),
            log: since(self.log.bytes(), self.log.total() - self.heard.1),
        }
    }

    /// Ends a program that broke the protocol.
    fn broken(&mut self, what: &str) -> WorkerError {
        self.child.kill_group();
        self.child.wait(ENDING);
        WorkerError::Setup(format!("{} {what}", self.foreign.named()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // End of input means exit; whoever does not heed it is killed.
        self.channel = None;
        if self.owed.is_empty() {
            self.child.wait(GRACE);
        }
    }
}
