//! Parses the command line, dispatches, exits.

use shrinkfault::cli;

fn main() {
    std::process::exit(cli::main());
}
