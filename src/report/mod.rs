//! What people and programs see of a run. Reporters consume events and decide nothing.

pub mod event;
pub mod json;
pub mod progress;
pub mod stdout;
pub mod terminal;
