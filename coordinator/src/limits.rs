//! Every bound and every number that was chosen, in one place.

use std::time::Duration;

/// Longest lock key, in bytes.
pub const KEY_BYTES_MAX: usize = 512;

/// Longest namespace, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 64;

/// Most namespaces with a declared number of replicas. Every process reads every declaration.
pub const NAMESPACES_MAX: usize = 256;

/// Longest prefix of keys on a server, in bytes.
pub const PREFIX_BYTES_MAX: usize = 64;

/// Longest label of a holder, in bytes. Longer labels are cut.
pub const LABEL_BYTES_MAX: usize = 64;

/// The shortest lease. The margin and the clocks' rates would take most of a shorter one.
pub const LEASE_MIN: Duration = Duration::from_millis(100);

/// The longest fixed hold. A lock that is to be held for longer is held until its release.
pub const HOLD_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The longest lease, unless the topology was founded with another. Also the length of a grace.
pub const LEASE_MAX: Duration = Duration::from_secs(30);

/// Greatest `max_lease` of a topology: nobody wants to wait longer than an hour for the end of a grace.
pub const MAX_LEASE_MAX: Duration = Duration::from_secs(3600);

/// The shortest view lease. With a shorter one, a busy store would be taken for a lost one.
pub const VIEW_LEASE_MIN: Duration = Duration::from_millis(100);

/// Greatest difference of two clocks' rates, in parts per thousand (`rho`).
pub const RHO_PERMILLE: u32 = 10;

/// Subtracted from every deadline, besides `rho`: for the rounding of the shard's millisecond clock, and for late
/// timers.
pub const MARGIN: Duration = Duration::from_millis(20);

/// Number of connections to a shard for acquires and releases, and again for counters. The slot decides which one
/// carries a request, so the requests of a key share one. The server works on the batch of one connection while the
/// answers of the other are on their way.
pub const LANES_BY_SLOT: usize = 2;

/// Most operations in one script call.
pub const BATCH_MAX: usize = 128;

/// Most requests about counters in one batch of the lanes that carry reads of whole accounts: an account has at most so
/// many segments. A script call still has [`BATCH_MAX`] of them.
pub const WHOLE_BATCH_MAX: usize = 1024;

/// Most requests that wait in one lane of a shard. Further acquires are refused with `Overloaded`.
pub const QUEUE_MAX: usize = 16_384;

/// Most locks that one engine holds at a time. Further acquires are refused with `TooManyHeld`. This also bounds the
/// releases that wait in the background: at most one per lock.
pub const HELD_MAX: usize = 1_000_000;

/// How long a ticket stays in a key's queue after it was last sent.
pub const TICKET_KEEP: Duration = Duration::from_secs(3);

/// The length of the grant that a shard makes to a ticket, or a lease if that is shorter. The waiter that gets it
/// renews it at once. If that waiter has died, those behind it wait this long.
pub const CLAIM_MAX: Duration = Duration::from_secs(3);

/// A waiter asks again after this long, or a third of its claim if that is shorter, less jitter. So long a lost message
/// delays it.
pub const RECHECK_MAX: Duration = Duration::from_secs(1);

/// Most tickets in one key's queue. A process has at most one.
pub const WAITERS_MAX: u32 = 10_000;

/// Most tickets in one key's queue whose callers are added up in a list of locks.
pub const COUNTED_MAX: usize = 128;

/// Most permits of a semaphore.
pub const PERMITS_MAX: u32 = 1 << 30;

/// Most tickets that one request grants, when shares become free.
pub const PASS_MAX: usize = 64;

/// Most acquisitions of one key that wait in one process.
pub const LINE_MAX: usize = 16_384;

/// Most tokens set aside at once for hand-off within a process.
pub const TOKENS_MAX: u32 = 8_192;

/// Most tokens set aside at once for a caller of the service, which hands a lock on among its own tasks. A shard has 2^35
/// between two epochs: at 20,000 grants per second they last for hours.
pub const SESSION_TOKENS_MAX: u32 = 128;

/// Once another process waits, a process hands a lock on among its own tasks this many times at most.
pub const HANDOFF_MAX: u32 = 64;

/// Once another process waits, a process hands a lock on among its own tasks for this long at most.
pub const HANDOFF_FOR: Duration = Duration::from_millis(20);

/// Records that a shard examines for one page of its locks, about. Between pages it serves other requests.
pub const LIST_PAGE: usize = 256;

/// Records that a shard reads for one page of the records left in sealed slots, about.
pub const SCAN_PAGE: usize = 64;

/// Held keys in one list for the next shard of their slots.
pub const LISTED_KEYS: usize = 48;

/// Slots in one request of a resize. The shard serves no other request meanwhile.
pub const STEP_SLOTS: usize = 32;

/// Groups (a counter's segment or manifest each) that a shard lists or drops in one request, about.
pub const GROUPS_PAGE: usize = 32;

/// Groups among which a shard looks for accounts in one request, about.
pub const ACCOUNTS_PAGE: usize = 256;

/// Slots whose accounts are looked for in one call, at most.
pub const SLOTS_PER_PAGE: usize = 1024;

/// Rows of a group in one request, about: the shard serves no other request for some milliseconds.
pub const COPY_ROWS: usize = 2048;

/// Blocks of final answers in one request. A block has about 100 kB.
pub const COPY_BLOCKS: usize = 8;

/// Most passes over the blocks of slots before the slots are sealed. New blocks may appear during a pass.
pub const COPY_AHEAD_TIMES: usize = 8;

/// How long a shard keeps pieces of a group that has not arrived.
pub const ASIDE_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Default maximum of slots that a resize migrates at a time. Requests for these slots cost more, and delay all other
/// requests to their shards.
pub const SLOTS_IN_FLIGHT: usize = 512;

/// Default of the longest pause between two requests of a resize to shards.
pub const MOVER_PAUSE: Duration = Duration::from_millis(30);

/// Greatest value for that pause.
pub const MOVER_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Segments whose keys a process caches, per namespace.
pub const SEGMENT_KEYS_MAX: usize = 16_384;

/// How long a request about a counter is repeated while its shard cannot answer.
pub const COUNTER_PATIENCE: Duration = Duration::from_secs(5);

/// Most guards of one owner on one lock.
pub const REENTRY_MAX: usize = 65_536;

/// Counter at which the driver asks for a new token epoch.
pub const COUNTER_RAISE: u64 = 1 << 34;

/// Counter above which no grants are made: the 35 bits of a token's counter must not overflow.
pub const COUNTER_MAX: u64 = (1 << 35) - (1 << 20);

/// Epochs at or above this are refused: a token has 28 bits for its epoch. At one epoch per 10 s, this lasts until the
/// year 2110.
pub const EPOCH_MAX: u64 = 1 << 28;

/// How long a server may take to make the tables of a shard, or the timeout of a request if that is longer.
pub const TABLES_WITHIN: Duration = Duration::from_secs(30);

/// Pause between two checks of a server's settings, which may change while it runs: so long it may evict keys, or not
/// sync, before that is noticed.
pub const SETTINGS_EVERY: Duration = Duration::from_secs(10);

/// Most different keys of one multi-lock. Each is renewed by itself.
pub const MULTI_LOCK_KEYS_MAX: usize = 64;
