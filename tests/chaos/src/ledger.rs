//! The locks of a run that have several replicas.

use ringfence_client::Namespace;

/// Their namespace.
pub const NAMESPACE: &str = "ledger";
/// The replicas of each lock in it.
pub const REPLICAS: u32 = 3;
/// Fewer than these are not the lock.
pub const MAJORITY: usize = 2;

/// Whether the lock called `key` has several replicas: its name says so.
pub fn has(key: &str) -> bool {
    key.starts_with("ledger/")
}

/// The namespace of the lock called `key`.
pub fn namespace_of(key: &str) -> Namespace {
    match has(key) {
        true => Namespace::new(NAMESPACE).expect("a valid name"),
        false => Namespace::default(),
    }
}
