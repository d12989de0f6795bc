//! What to try: groups of cases drawn from a problem's description.
//!
//! Nothing here knows an operation. A [`Space`] holds what can be read off a narrowed problem; a group is a base case
//! that fixes a layout of mapped pages and variations on it. Bases come from lines of the hypothesis grammar
//! (`directed`), tile edges and plain draws (`edges`), and changes of the corpus (`mutate`). [`Generator`] deals them out
//! in rounds, reproducibly and in parallel.

pub mod aliasing;
pub mod corpus;
pub mod coverage;
mod directed;
mod draw;
mod edges;
pub mod generator;
pub mod group;
pub mod limits;
mod mutate;
pub mod novelty;
pub mod placing;
mod plan;
pub mod shard;
mod space;
pub mod strategy;
#[cfg(test)]
mod tests;

pub use coverage::Coverage;
pub use generator::{GROUPS, Generator};
pub use group::{Group, Origin, Planned};
pub use limits::SpanLimits;
pub use novelty::Outcome;
pub use shard::Shard;
pub use space::{Options, Profile, SearchError, Space, Weights};
pub use strategy::{GROUP, Groups, cases, groups};
