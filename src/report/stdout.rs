//! Lines on stdout and stderr for people. Writing them never panics: a reader that goes away, or a full disk, is noted and
//! told at the end of the program.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;

/// The first failure to write to stdout.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes a line to stdout.
pub fn to_stdout(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    if let Err(e) = out.write_fmt(text).and_then(|()| out.write_all(b"\n")) {
        failed(e);
    }
}

/// Writes a line to stderr. Where that fails nobody is left to be told.
pub fn to_stderr(text: Arguments<'_>) {
    let mut err = io::stderr().lock();
    let _ = err.write_fmt(text).and_then(|()| err.write_all(b"\n"));
}

/// Notes that stdout could not be written.
pub fn failed(error: io::Error) {
    if let Ok(mut first) = FAILURE.lock() {
        first.get_or_insert(error);
    }
}

/// What became of stdout, to be asked once, at the end.
#[derive(Debug)]
pub enum Outcome {
    Written,
    /// Its reader went away, as `head` does.
    Closed,
    Failed(io::Error),
}

/// Flushes, and says what became of stdout.
pub fn outcome() -> Outcome {
    if let Err(e) = io::stdout().flush() {
        failed(e);
    }
    match FAILURE.lock().ok().and_then(|mut f| f.take()) {
        None => Outcome::Written,
        Some(e) if e.kind() == ErrorKind::BrokenPipe => Outcome::Closed,
        Some(e) => Outcome::Failed(e),
    }
}

/// `println!` that cannot panic.
macro_rules! say {
    () => { $crate::report::stdout::to_stdout(format_args!("")) };
    ($($text:tt)*) => { $crate::report::stdout::to_stdout(format_args!($($text)*)) };
}

/// `eprintln!` that cannot panic.
macro_rules! aside {
    ($($text:tt)*) => { $crate::report::stdout::to_stderr(format_args!($($text)*)) };
}

pub(crate) use {aside, say};
