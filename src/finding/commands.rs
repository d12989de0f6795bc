//! The commands that go with a finding, ready to type.

/// Runs the minimal case once.
pub fn run(what: &str) -> String {
    format!("shrinkfault run {what}")
}

/// Shrinks further, from the minimal case on.
pub fn shrink(what: &str) -> String {
    format!("shrinkfault shrink {what}")
}

/// Copies the finding to where it is committed.
pub fn keep(what: &str) -> String {
    format!("shrinkfault keep {what}")
}

/// The head of a finding file: what it is and what to type next. `name` works in place of the path, because commands look
/// for it in regressions/ and in the output folder.
pub fn head(name: &str) -> String {
    format!(
        "# A finding of shrinkfault; docs/findings.md explains every line.\n\
         # run it:            {}\n\
         # shrink it further: {}\n\
         # keep it:           {}\n\n",
        run(name),
        shrink(name),
        keep(name)
    )
}
