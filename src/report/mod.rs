//! What people and programs see of a run. Reporters consume events and decide nothing.

pub mod event;
pub mod json;
pub mod progress;
mod replayed;
pub mod status;
pub mod stdout;
pub mod terminal;

pub use replayed::boundary;
