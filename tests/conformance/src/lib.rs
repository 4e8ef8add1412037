//! The tests that every backend of Ringfence passes, for the backends of this repository and for those of other authors.
//!
//! A backend implements a fixture, and one macro generates a test per property: [`shard_conformance!`] for a
//! [`Shard`](ringfence_coordinator::shard::Shard), [`store_conformance!`] for a
//! [`Store`](ringfence_coordinator::shard::docs::Store) of documents, [`topology_conformance!`] for a
//! [`TopologyStore`](ringfence_coordinator::topology::TopologyStore). [`cancel`] has helpers for tests of cancel safety.

pub mod cancel;
pub mod shard;
pub mod store;
pub mod topology;
