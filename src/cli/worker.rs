//! The hidden subcommand that turns the program into a worker.

use super::args::WorkerArgs;
use crate::worker;

pub fn main(args: WorkerArgs) -> i32 {
    worker::main(worker::WorkerOptions {
        problem: args.problem,
        target: args.target,
        arena_bytes: args.arena,
        int_width: args.int_width,
    })
}
