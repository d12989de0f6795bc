//! Starting and ending child processes.
