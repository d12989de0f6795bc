//! The child: places cases in layouts, runs them on a target, compares what came out.
