//! The locks of a run that have several replicas.

use ringfence_client::Namespace;

use crate::election;

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
    let name = match key {
        key if has(key) => NAMESPACE,
        key if election::has(key) => election::NAMESPACE,
        _ => return Namespace::default(),
    };
    Namespace::new(name).expect("a valid name")
}
