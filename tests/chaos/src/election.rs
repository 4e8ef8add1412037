//! The election of a run: one worker of each process stands for it.

/// The namespace of the locks that elections use.
pub const NAMESPACE: &str = "election";
/// Its name.
pub const KEY: &str = "election/0";

/// Whether the lock called `key` is an election: its name says so.
pub fn has(key: &str) -> bool {
    key.starts_with("election/")
}
