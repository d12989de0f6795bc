//! Any CBLAS or Fortran BLAS, loaded at run time.
//!
//! `adapter` makes it a target; the other files know shapes, leading dimensions and libraries, nothing of the rest of the
//! program.
//!
//! What a library says about an argument it dislikes differs: the reference CBLAS and ATLAS call `exit(255)`, GSL
//! aborts, ATLAS's Fortran interface stops the process with status 0, OpenBLAS, BLIS and MKL print a line and return
//! (Debian 12, seen with m = -1, lda = 1 < m and ldc = 0). A library loaded with `RTLD_LOCAL` binds its own `xerbla`,
//! so the complaint cannot be caught. It is prevented: [`GemmCall::check`] applies the BLAS rules first and
//! [`Library::gemm`] answers [`Refusal`] without calling. A library that leaves the process over a legal call is
//! therefore a crash of the caller's process, even if the exit status is 0.
//!
//! One file a concern: `library` finds and opens, `symbols` knows names, `width` knows the size of an int, `routine` lists
//! the routines and their arguments, `invoke` holds the prototypes, `call` is the plain GEMM that opening a library tries,
//! `identity` says which file answered, `choice` and `threads` set what picks its code path beside the shape.

mod adapter;
mod call;
mod choice;
mod identity;
mod invoke;
mod library;
mod routine;
mod symbols;
mod threads;
mod width;

#[cfg(test)]
mod tests;

pub use adapter::Adapter;
pub use call::{GemmCall, Real, Refusal};
pub use choice::Choice;
pub use identity::{NO_BRAND, file_facts};
pub use library::{CblasError, Description, Library, describe, find, find_file};
pub use routine::{Routine, call_text};
pub use symbols::{Decoration, Interface};
pub use width::IntWidth;
