//! The hidden subcommand: a process that says hello, answers lines and can be lost.

use super::ground::{CudaGround, Ground, HostGround};
use super::oracle::BrokenOracle;
use super::session::{Listener, Session, State};
use crate::device::Device;
use crate::device::cpu::{self, CpuArena, FaultRecord};
use crate::device::cuda::Gpu;
use crate::evidence::symbol::Modules;
use crate::exec::channel::{ChannelError, LineChannel, NoSide, ReadState};
use crate::exec::inherit::inherited_fd;
use crate::exec::intent::{FAULT_AREA_BYTES, IntentPage};
use crate::exec::protocol::{Answer, AskKnobs, Hello, LayoutLine, SetupFailed, VERSION};
use crate::exec::worker::{CHANNEL_VARIABLE, INTENT_VARIABLE};
use crate::problem::Builtin;
use crate::target::{Description, TargetSpec, load};
use serde::Serialize;
use std::os::fd::OwnedFd;

/// Least address space that a worker starts with: three operands with moats of 1 GiB, and room for a slot.
const LEAST_ARENA: u64 = 8 << 30;

/// Exit codes of a worker.
const DONE: i32 = 0;
const HARNESS_ERROR: i32 = 3;

/// What a worker is told on its command line.
#[derive(Debug)]
pub struct WorkerOptions {
    pub problem: String,
    pub target: TargetSpec,
    /// Bits of the library's integers, where the user names them.
    pub int_width: Option<u32>,
    /// Bytes of address space to ask for; less is taken where the system grants less.
    pub arena_bytes: u64,
    /// Say in the hello which files and versions the target consists of.
    pub identify: bool,
}

/// Runs a worker to the end of its input, over the descriptors that it inherited. Gives the exit status: 0, or 3 where it
/// could not start or was told nonsense.
pub fn main(options: WorkerOptions) -> i32 {
    stdout_to_stderr();
    let descriptors = inherited_fd(CHANNEL_VARIABLE).and_then(|c| Ok((c, inherited_fd(INTENT_VARIABLE)?)));
    match descriptors.map_err(|e| e.to_string()).and_then(|(channel, intent)| work(&options, channel, intent)) {
        Ok(()) => DONE,
        Err(why) => {
            eprintln!("shrinkfault worker: {why}");
            HARNESS_ERROR
        }
    }
}

/// The answering end of a worker.
struct Line {
    channel: LineChannel,
    intent: &'static IntentPage,
}

impl Line {
    fn send(&mut self, message: &impl Serialize) -> Result<(), String> {
        let text = serde_json::to_string(message).map_err(|e| e.to_string())?;
        self.channel.write_line(&text, None, &mut NoSide).map_err(|e| e.to_string())
    }
}

impl Listener for Line {
    fn launching(&mut self, id: u64) {
        self.intent.announce(id);
    }

    fn step(&mut self) {
        if !self.intent.is_in_target() {
            // A library may have put a handler of its own in place, and its faults would pass unseen. What was accepted once
            // is accepted again.
            let _ = crate::device::cpu::arm();
        }
        self.intent.step();
    }

    fn answer(&mut self, answer: &Answer) -> Result<(), String> {
        self.send(answer)?;
        self.intent.set_answered(answer.id);
        Ok(())
    }
}

fn work(options: &WorkerOptions, channel: OwnedFd, intent: OwnedFd) -> Result<(), String> {
    let text = |e: ChannelError| e.to_string();
    // Never dropped: the fault handler writes there until the process is gone.
    let intent: &'static IntentPage = Box::leak(Box::new(IntentPage::from_fd(intent).map_err(|e| e.to_string())?));
    let channel = LineChannel::from_socket(channel).map_err(text)?;
    let mut line = Line { channel, intent };
    let mut session = match start(options, intent) {
        Ok(session) => session,
        Err(why) => {
            line.send(&SetupFailed { setup_failed: why.clone() })?;
            return Err(why);
        }
    };
    line.send(&Hello {
        shrinkfault: VERSION,
        can: ["knobs", "place", "layout"].map(String::from).to_vec(),
        description: Description {
            identity: if options.identify { session.target().identity() } else { vec![] },
            ..session.target().describe()
        },
        arena: session.arena(),
        // Without them a fault has an address and no symbol.
        modules: Modules::read_self().unwrap_or_default(),
    })?;
    let mut input = String::new();
    loop {
        match line.channel.read_line_into(&mut input, None, &mut NoSide).map_err(text)? {
            ReadState::Line if hear(&input, &mut session, &mut line)? == State::Lost => leave(),
            ReadState::Line => {}
            ReadState::Closed => return Ok(()),
            ReadState::Deadline => {}
            ReadState::TooLong => return Err("the supervisor sent a line without end".to_owned()),
        }
    }
}

fn hear(input: &str, session: &mut Session, line: &mut Line) -> Result<State, String> {
    match serde_json::from_str::<LayoutLine>(input) {
        Ok(layout) => session.layout(&layout, line),
        Err(not_a_layout) => match serde_json::from_str::<AskKnobs>(input) {
            Ok(ask) if ask.ask == "knobs" => line.send(&session.knobs(&ask)?).map(|()| State::Usable),
            _ => Err(format!("a line of the supervisor is neither a layout nor a question ({not_a_layout}): {input}")),
        },
    }
}

/// Ends the process at once: libraries of a device that is lost may wait for it for ever when they are told to clean up.
fn leave() -> ! {
    // SAFETY: ends the process without running what was registered for its end.
    unsafe { libc::_exit(DONE) }
}

/// Everything that can fail before the first case.
fn start(options: &WorkerOptions, intent: &'static IntentPage) -> Result<Session, String> {
    const { assert!(size_of::<FaultRecord>() <= FAULT_AREA_BYTES && align_of::<FaultRecord>() <= 256) };
    let builtin =
        Builtin::find(&options.problem).ok_or_else(|| format!("there is no problem '{}'", options.problem))?;
    let broken = BrokenOracle::from_env()?;
    // SAFETY: the area is aligned and large enough (checked above) and stays mapped, because the page is never
    // dropped. Others look at it through shared references only.
    unsafe { cpu::install(intent.fault_area().cast()) }.map_err(|e| e.to_string())?;
    let problem = builtin.problem();
    let (ground, target): (Box<dyn Ground>, _) = match load::device(&options.target) {
        Device::Cpu => {
            let arena = CpuArena::reserve(options.arena_bytes, LEAST_ARENA).map_err(|e| e.to_string())?;
            let target = load::load(&options.target, &problem, options.int_width)?;
            (Box::new(HostGround::new(arena, broken)), target)
        }
        Device::Cuda => {
            let gpu = Gpu::open(0)?;
            let ground = CudaGround::open(&gpu, options.arena_bytes, LEAST_ARENA, broken)?;
            (Box::new(ground), load::load_cuda(&options.target, &problem, &gpu)?)
        }
    };
    Ok(Session::new(builtin, target, ground, broken))
}

/// Libraries print to stdout; nobody reads it there.
fn stdout_to_stderr() {
    // SAFETY: two descriptor numbers; where either is closed, nothing happens.
    unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) };
}
