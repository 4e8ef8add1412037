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
//! | for | use | guarantee | round trips | if something fails |
//! |---|---|---|---|---|
//! | one holder of one thing | [`Client::lock`] | one holder at a time, in order, with a rising token | 1 to acquire, 1 to release; none between tasks of a process | you are warned before the lease ends; the resource refuses the old token |
//! | a lock that must not wait for a failed server | [`Lock::namespace`], in a namespace with 3 or 5 [`replicas`](Builder::replicas) | the same, by a majority of the shards that have it | 1 or 2, to 3 or 5 shards | one of three shards may fail, or two of five |
//! | at most N at a time | [`Client::semaphore`] | never more than N permits are held; a request for many is not overtaken | 1 to acquire, 1 to release | each holder has its own lease, and only its permits end with it |
//! | many readers or one writer | [`Client::rw_lock`] | a writer is alone; its token is above those of all earlier readers | 1 to acquire, 1 to release; for readers of a process together; none between its writers | if a process dies, its readers or its writer end with their lease, and no others |
//! | several things together, all or nothing | [`Client::multi_lock`] | all or none; no deadlock of sets | 1; 2 where a shard has several of the keys; one per key if one is held | if one is lost, all are; a crash frees all within a lease |
//! | data in your own database, split into rows | [`Client::segmented_lock`] | one holder per row | 1 for `any()`; one per row and 2 for `all()` | as a lock, per row |
//! | a hot balance that Ringfence may store | [`Client::counters`] | one effect per request id; nothing is deducted that is not there | mostly 1 | repeat the request with its id: one effect |
//! | one leader, and others that observe it | [`Client::election`] | one leader, with a token | as a lock; an observer asks once per second | the leader is warned first; the next candidate leads within a lease |
//! | to wait until N parts are done | [`Client::latch`] | it opens once, and never too early | 1 per count; waiting: 1 per client and 200 ms | repeat the count with its id |
//! | callers without tokio | [`blocking`]: the same locks and multi-locks; `block_on` for the rest | the same | the same | the same |

mod account;
mod account_list;
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
mod stop;
mod terms;

pub use account::Counter;
pub use account_list::{AccountList, AccountListPage, ListedAccount};
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
        AccountNames, AccountNamesPage, AcquireError, CoordinatorError, CounterFault, Danger,
        DetachedLease, EngineMetrics, Guard, LeaseRef, LiveReplicas, LockLost, Locks, LocksPage,
        Owner, ReleaseAnswer, ReplicaInspection, ShardStatus, Waiting,
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
