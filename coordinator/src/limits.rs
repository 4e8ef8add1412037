//! Every bound and every number that was chosen, in one place.

use std::time::Duration;

/// Bytes in a lock key, at most.
pub const KEY_BYTES_MAX: usize = 512;

/// Bytes in a namespace, at most.
pub const NAMESPACE_BYTES_MAX: usize = 64;

/// Longest prefix of keys on a server, in bytes.
pub const PREFIX_BYTES_MAX: usize = 64;

/// Bytes in a holder's label, at most. Longer ones are cut.
pub const LABEL_BYTES_MAX: usize = 64;

/// The shortest lease. Below it the margin and the rates of clocks would eat most of it.
pub const LEASE_MIN: Duration = Duration::from_millis(100);

/// The longest lease, unless the topology was founded with another. Also the length of a grace.
pub const LEASE_MAX: Duration = Duration::from_secs(30);

/// `max_lease` of a topology, at most: a grace of an hour helps nobody.
pub const MAX_LEASE_MAX: Duration = Duration::from_secs(3600);

/// The shortest view lease: below it a busy store would be taken for one that is gone.
pub const VIEW_LEASE_MIN: Duration = Duration::from_millis(100);

/// How much two clocks' rates may differ, in parts per thousand (`rho`).
pub const RHO_PERMILLE: u32 = 10;

/// Taken off every deadline, beside `rho`: what the shard's millisecond clock rounds away, and a
/// timer's lateness.
pub const MARGIN: Duration = Duration::from_millis(20);

/// Connections a shard's acquires and releases are spread over, by slot, and as many its counters: while one
/// batch is on its way the server works on the other's. A key's requests always share one.
pub const LANES_BY_SLOT: usize = 2;

/// Operations in one script call, at most.
pub const BATCH_MAX: usize = 128;

/// Requests waiting in one lane of a shard; beyond it acquires are refused with `Overloaded`.
pub const QUEUE_MAX: usize = 16_384;

/// Locks one engine holds at a time; beyond it acquires are refused with `TooManyHeld`. It also
/// bounds the releases waiting in the background, of which there is at most one a lock.
pub const HELD_MAX: usize = 1_000_000;

/// How long a ticket stays in a key's queue without being sent again.
pub const TICKET_KEEP: Duration = Duration::from_secs(3);

/// The grant that a shard makes to a ticket lasts this long, or a lease if that is shorter; a waiter that
/// gets it renews it at once. It is also what a waiter that died costs those behind it.
pub const CLAIM_MAX: Duration = Duration::from_secs(3);

/// A waiter asks again after this long, or a third of its claim if that is shorter, less jitter: what a
/// lost message costs.
pub const RECHECK_MAX: Duration = Duration::from_secs(1);

/// Tickets in one key's queue. A process has one at most.
pub const WAITERS_MAX: u32 = 10_000;

/// Acquisitions of one key that wait in one process.
pub const LINE_MAX: usize = 16_384;

/// Tokens set aside at once for hand-off within a process.
pub const TOKENS_MAX: u32 = 8_192;

/// Once another process waits, a process hands a lock on among its own tasks this many times at most.
pub const HANDOFF_MAX: u32 = 64;

/// Once another process waits, a process hands a lock on among its own tasks for this long at most.
pub const HANDOFF_FOR: Duration = Duration::from_millis(20);

/// Records that a shard looks at for one page of its locks, about: it serves everybody else in between.
pub const LIST_PAGE: usize = 256;

/// Records that a shard reads for one page of the records left in sealed slots, about.
pub const SCAN_PAGE: usize = 64;

/// Keys that a shard is told of at a time as held in the shard that their slots come from.
pub const LISTED_KEYS: usize = 48;

/// Slots that a shard changes, or learns everything of, at a time, in a resize: nobody else is served
/// meanwhile.
pub const STEP_SLOTS: usize = 32;

/// Groups of keys, each a counter's segment or manifest, that a shard names or drops at a time, about.
pub const GROUPS_PAGE: usize = 32;

/// Rows of a group that move at a time, about.
pub const COPY_ROWS: usize = 512;

/// Blocks of final answers that move at a time: each is about 100 kB.
pub const COPY_BLOCKS: usize = 8;

/// How often the blocks of slots are looked through before the slots are sealed, at most: while they are copied there may be
/// new ones.
pub const COPY_AHEAD_TIMES: usize = 8;

/// How long a shard keeps what was copied of a group that has not arrived.
pub const ASIDE_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Default maximum of slots that a resize migrates at a time: requests for these cost more, and all
/// others of their shards wait for that.
pub const SLOTS_IN_FLIGHT: usize = 512;

/// Longest pause between two pieces of what a resize asks of shards, unless it is told another.
pub const MOVER_PAUSE: Duration = Duration::from_millis(30);

/// The most it may be told.
pub const MOVER_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Segments whose keys a process remembers, for each namespace.
pub const SEGMENT_KEYS_MAX: usize = 16_384;

/// How long a request about a counter is asked again while its shard cannot answer.
pub const COUNTER_PATIENCE: Duration = Duration::from_secs(5);

/// Guards of one owner on one lock.
pub const REENTRY_MAX: usize = 65_536;

/// Counter at which the driver asks for a new token epoch.
pub const COUNTER_RAISE: u64 = 1 << 34;

/// Counter from which no more grants are made: the last of a token's 35 bits must not overflow.
pub const COUNTER_MAX: u64 = (1 << 35) - (1 << 20);

/// Epochs are refused from here on: a token has 28 bits for one. At one per 10 s: the year 2110.
pub const EPOCH_MAX: u64 = 1 << 28;

/// A server may sync no more, or evict, for so long before that is noticed: its settings may be changed while it runs.
pub const SETTINGS_EVERY: Duration = Duration::from_secs(10);
