//! The command line: one file per subcommand.

pub mod args;
mod check;
mod compare;
mod corpus;
mod doctor;
pub mod exit;
mod help;
mod hunt;
mod one;
mod output;
mod regress;
mod resume;
mod run;
pub mod session;
mod shrink;
mod status;
mod targets;
mod worker;

use crate::exec::foreign::plant;
use crate::exec::interrupt;
use crate::finding::store::{self, Kept};
use crate::manifest::Manifest;
use crate::problem::Narrow;
use crate::report::stdout::{self, Outcome, aside, say};
use args::{Cli, Command};
use clap::Parser;
use exit::{ExitStatus, Failure};
use session::Subject;
use std::path::PathBuf;
use std::sync::Arc;

/// Parses the arguments of the process, runs the command, and gives its exit code.
pub fn main() -> i32 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are no errors; clap says which stream they belong to.
            let _ = e.print();
            return if e.use_stderr() { ExitStatus::Usage.code() } else { ExitStatus::Fine.code() };
        }
    };
    if let Err(e) = interrupt::survive_file_size_limit() {
        aside!("warning: a limit on the size of files would end this program ({e})");
    }
    let code = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| dispatch(cli.command))) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            let status = failure.status();
            if status != ExitStatus::Interrupted || interrupt::received().is_some() {
                aside!("error: {failure}");
            }
            status.code()
        }
        Err(_) => {
            aside!("error: this is a bug of shrinkfault; please report it with the message above");
            ExitStatus::Internal.code()
        }
    };
    told(code)
}

/// The exit code, once it is known whether stdout could be written.
fn told(code: i32) -> i32 {
    match stdout::outcome() {
        Outcome::Closed if code == ExitStatus::Interrupted.code() && interrupt::received().is_none() => {
            aside!("error: the reader of the events went away, which ended the run; what was found by then is filed");
            code
        }
        Outcome::Written | Outcome::Closed => code,
        Outcome::Failed(e) => {
            aside!("error: failed to write to stdout ({e}): send the output elsewhere; what was found is filed");
            ExitStatus::Setup.code()
        }
    }
}

fn dispatch(command: Command) -> Result<i32, Failure> {
    let status = match command {
        Command::Gemm(hunt) => hunt::run(Subject::Builtin(session::builtin("gemm")?), &hunt, vec![])?,
        Command::Allgather { ranks, hunt } => {
            let world = Narrow::Range { param: "ranks".to_owned(), min: 1, max: ranks };
            hunt::run(Subject::Builtin(session::builtin("allgather")?), &hunt, vec![world])?
        }
        Command::Blas { routine, hunt } => hunt::run(Subject::Builtin(session::builtin(&routine)?), &hunt, vec![])?,
        Command::Fuzz { manifest, hunt } => {
            let manifest = Manifest::read(&manifest).map_err(Failure::usage)?;
            hunt::run(Subject::Manifest(Arc::new(manifest)), &hunt, vec![])?
        }
        Command::Run(args) => run::run(&args)?,
        Command::Shrink(args) => shrink::run(&args)?,
        Command::Keep { finding, out, regressions } => {
            let named = store::findings(&out).join(format!("{}.toml", finding.trim_end_matches(".toml")));
            let file = PathBuf::from(&finding);
            let file = if !file.exists() && named.exists() { named } else { file };
            match store::keep(&file, &regressions).map_err(Failure::usage)? {
                Kept::Now(path) => say!("kept as {}; commit it", path.display()),
                Kept::Already(path) => say!("{} holds it already", path.display()),
            }
            ExitStatus::Fine
        }
        Command::Regress(args) => regress::run(&args)?,
        Command::Check(args) => check::run(&args)?,
        Command::Status { out, json } => status::run(&out, json)?,
        Command::Corpus { command } => corpus::run(&command)?,
        Command::Targets => {
            targets::run();
            ExitStatus::Fine
        }
        Command::Doctor { case_timeout } => doctor::run(case_timeout)?,
        Command::Worker(args) => return Ok(worker::main(args)),
        Command::Program => return Ok(plant::main()),
    };
    Ok(status.code())
}
