//! The hidden subcommand that turns the program into a worker.

use super::args::WorkerArgs;
use super::exit::Failure;
use crate::exec::inherit::inherited_fd;
use crate::exec::worker::{CHANNEL_VARIABLE, INTENT_VARIABLE};
use crate::worker::{self, WorkerOptions};

/// Runs a worker to the end of its input; its exit code.
///
/// # Errors
/// Usage, where the descriptors were not inherited: the command is not for people.
pub fn main(args: WorkerArgs) -> Result<i32, Failure> {
    let fd = |variable| inherited_fd(variable).map_err(Failure::usage);
    Ok(i32::from(worker::main(WorkerOptions {
        problem: args.problem,
        target: args.target,
        int_width: args.int_width,
        arena_bytes: args.arena,
        channel: fd(CHANNEL_VARIABLE)?,
        intent: fd(INTENT_VARIABLE)?,
    })))
}
