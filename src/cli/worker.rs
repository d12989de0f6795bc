//! The hidden subcommand that turns the program into a worker.

use super::args::WorkerArgs;
use crate::worker::{self, WorkerOptions};

/// Runs a worker to the end of its input; its exit code.
pub fn main(args: WorkerArgs) -> i32 {
    worker::main(WorkerOptions {
        problem: args.problem,
        target: args.target,
        int_width: args.int_width,
        arena_bytes: args.arena,
        identify: args.identify,
    })
}
