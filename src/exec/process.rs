//! What runs cases: a worker of our own, or a foreign program. The pool knows only this.

use super::channel::ChannelError;
use super::foreign::{Program, StartingProgram};
use super::interrupt::Interrupt;
use super::protocol::{Hello, LayoutLine};
use super::spawn::Spawner;
use super::worker::{Heard, Starting, Worker, WorkerError, WorkerSpec};
use crate::problem::{Instance, Knobs, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// A process that was started and has not been heard of yet.
#[derive(Debug)]
pub enum StartingProcess {
    Worker(Starting),
    Program(StartingProgram),
}

/// A process that is ready for cases.
#[derive(Debug)]
pub enum Process {
    Worker(Box<Worker>),
    Program(Box<Program>),
}

impl StartingProcess {
    /// As [`Starting::start`].
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn start(spawner: &Spawner, spec: &WorkerSpec, identify: bool) -> Result<StartingProcess, WorkerError> {
        Ok(match &spec.foreign {
            None => StartingProcess::Worker(Starting::start(spawner, spec, identify)?),
            Some(foreign) => StartingProcess::Program(StartingProgram::start(spawner, foreign, identify)?),
        })
    }

    pub fn is_alive(&mut self) -> bool {
        match self {
            StartingProcess::Worker(w) => w.is_alive(),
            StartingProcess::Program(p) => p.is_alive(),
        }
    }

    /// Waits for the hello.
    ///
    /// # Errors
    /// A sentence, where it does not come.
    pub fn ready(self, spec: &WorkerSpec, interrupt: &Interrupt) -> Result<Process, WorkerError> {
        match (self, &spec.foreign) {
            (StartingProcess::Program(p), Some(foreign)) => {
                Ok(Process::Program(Box::new(p.ready(foreign, spec.start_timeout, interrupt)?)))
            }
            (StartingProcess::Worker(w), _) => Ok(Process::Worker(Box::new(w.ready(spec, interrupt)?))),
            (StartingProcess::Program(_), None) => Err(WorkerError::Setup("the program has no manifest".to_owned())),
        }
    }
}

impl Process {
    pub fn hello(&self) -> &Hello {
        match self {
            Process::Worker(w) => &w.hello,
            Process::Program(p) => &p.hello,
        }
    }

    /// Hands over the cases of a line.
    ///
    /// # Errors
    /// Where the process takes no more lines.
    pub fn send(&mut self, line: &LayoutLine, patience: Duration) -> Result<(), ChannelError> {
        match self {
            Process::Worker(w) => w.send(line, patience),
            Process::Program(p) => p.send(line),
        }
    }

    /// Waits for the answer to `expected`, at most `patience` from now.
    ///
    /// # Errors
    /// Where the run was interrupted, or nothing that this process says can be trusted.
    pub fn hear(
        &mut self,
        expected: u64,
        instance: &dyn Fn(u64) -> Option<Instance>,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<Heard, WorkerError> {
        match self {
            Process::Worker(w) => w.hear(expected, patience, interrupt),
            Process::Program(p) => p.hear(expected, instance, patience, interrupt),
        }
    }

    /// Asks for the knobs of a case.
    ///
    /// # Errors
    /// A sentence, where the process does not answer.
    pub fn knobs(
        &mut self,
        params: BTreeMap<String, Value>,
        in_mind: &Knobs,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<BTreeMap<String, Vec<Value>>, WorkerError> {
        match self {
            Process::Worker(w) => w.knobs(params, in_mind, patience, interrupt),
            Process::Program(p) => p.knobs(params, patience, interrupt),
        }
    }
}
