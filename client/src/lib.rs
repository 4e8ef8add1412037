//! Locks from Ringfence: fenced, renewed while held, with a notice when one is lost.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ringfence_client::{Client, ReleaseAnswer};
//!
//! let client = Client::builder().embedded(3).build().await?;
//! let guard = client.lock("order/42").acquire().await?;
//! assert!(client.lock("order/42").try_acquire().await.is_err());
//! assert_eq!(guard.release().await, ReleaseAnswer::Held);
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! | for | use |
//! |---|---|
//! | one holder of one thing | [`Client::lock`] |
//! | several things together, all or nothing | [`Client::multi_lock`] |
//! | data in your own database, split into rows | [`Client::segmented_lock`] |
//! | a hot balance that Ringfence may store | [`Client::counters`] |
//! | one leader, and others that observe it | [`Client::election`] |
//! | to wait until N parts are done | [`Client::latch`] |
//! | any of these without tokio | [`blocking`] |

mod account;
pub mod blocking;
mod builder;
mod client;
mod counters;
mod election;
mod embedded;
mod error;
mod key;
mod latch;
mod lock;
mod multi;
#[cfg(feature = "metrics")]
mod prometheus;
mod ring;
mod seeds;
mod segmented;
mod servers;
#[cfg(feature = "service")]
mod service;
mod shares;
mod terms;

pub use account::Counter;
pub use builder::{BuildError, Builder};
pub use client::Client;
pub use counters::Counters;
pub use election::{Election, Leader, Leadership, Observer};
pub use error::Error;
pub use key::Key;
pub use latch::{Latch, LatchError};
pub use lock::Lock;
pub use multi::{MultiGuard, MultiLock, MultiLockError};
pub use ring::{NewShard, Reshape, ReshapeError, Resize, Ring};
pub use ringfence_coordinator::{
    clock::{BootClock, Clock, Instant, TokioClock},
    engine::{
        AcquireError, CoordinatorError, CounterFault, Danger, DetachedLease, EngineMetrics, Guard,
        LeaseRef, LiveReplicas, LockLost, Locks, LocksPage, Owner, ReleaseAnswer,
        ReplicaInspection, ShardStatus, Waiting,
    },
    ids::{ClientId, Epoch, Nonce, Token},
    limits, metrics,
    mover::{Pace, Progress, Resized, WaitingFor},
    name::{Label, LockKey, NameError, Namespace},
    shard::{
        Effect, HeldLock, Holder, Inspection, LockKind, LockMode, QueuedWaiter, ShardError,
        memory::Faults,
    },
    topology::{Constants, Removal, ResizeError, Topology, TopologyError},
};
pub use ringfence_ring::{Replicas, RingError, ShardId, Weight};
pub use ringfence_segment_lock::lock::{AllGuard, Contention, SegmentGuard, SegmentedLockError};
pub use ringfence_segment_lock::{self as counter, Failure};
pub use seeds::{OneUrl, RedisUrls, UrlList};
pub use segmented::{SegmentedLock, SegmentedLockBuilder};
#[cfg(feature = "service")]
pub use service::Coordinators;
pub use shares::{Preference, RwLock, Semaphore};
