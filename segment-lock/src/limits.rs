//! Every limit of this crate.

/// Greatest amount, and the most money of one segment, including held money: an `i64`, which every language and Redis
/// have.
pub const AMOUNT_MAX: i64 = i64::MAX;

/// Longest code of a unit, in bytes.
pub const UNIT_LEN_MAX: usize = 16;

/// Length of a request's reference, in bytes.
pub const REFERENCE_LEN: usize = 16;

/// Most labels of one account: each manifest has them, and the segments have copies of it.
pub const LABELS_MAX: usize = 16;

/// Longest name of a label, in bytes.
pub const LABEL_NAME_LEN_MAX: usize = 63;

/// Longest value of a label, in bytes.
pub const LABEL_VALUE_LEN_MAX: usize = 255;

/// Longest name of a request, in bytes. It is kept for as long as the request's answer.
pub const REQUEST_NAME_LEN_MAX: usize = 128;

/// Longest name of an account, in bytes.
pub const ACCOUNT_NAME_LEN_MAX: usize = 255;

/// How no account's name ends, with any numbers: so end the names of segments, of copies and of sub-locks' manifests.
pub const RESERVED_ENDS: [&str; 3] = ["#0.5", "#copy.3", "#locks"];

/// Most segments of one account: a read of the whole account asks all of them.
pub const SEGMENTS_MAX: u32 = 1024;

/// Most places tried for one segment. If a shard has a ten-thousandth of the slots, one place in ten thousand fits.
pub const PLACES_MAX: u32 = 1 << 20;

/// Most layouts of an account. None is ever forgotten, because it decides the home of old requests.
pub const LAYOUTS_MAX: usize = 256;

/// Longest freeze, in ms. A crashed process must not block others for long.
pub const FREEZE_MS_MAX: u64 = 1000;

/// Most reservations that one request expires besides its own work.
pub const EXPIRED_PER_CALL_MAX: usize = 16;

/// Most answers that one purge drops: a fraction of a millisecond's work, which delays other requests.
pub const PURGED_PER_CALL_MAX: usize = 256;

/// Most answers older than `idempotency_for` that a new request drops besides its own work: more than the one that it
/// adds.
pub const PURGED_PER_REQUEST_MAX: usize = 2;

/// Most unfinished transfers in one answer.
pub const PAGE_LEN_MAX: usize = 100;

/// Longest time an answer is remembered, in ms: 30 days.
pub const IDEMPOTENCY_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;

/// Most replicas that an account may ask for.
pub const REPLICAS_MAX: u8 = 8;

/// How far ahead of a segment's clock a request's creation time may be at most, in ms: one hour.
pub const SKEW_MS_MAX: u64 = 60 * 60 * 1000;

/// How far a segment's clock and that of a caller who accepts a loss may differ, in addition to the skew, in ms: requests
/// may be refused for this much longer than the skew. So long after its last plan an account's segments cannot be removed.
pub const CLOCKS_APART_MS_MAX: u64 = 60 * 1000;

/// Most answers one segment remembers.
pub const IDS_MAX: usize = 10_000_000;

/// Changes per second from which on a segment is hot: more segments, on other shards, would share them. Below it, more
/// segments only make reads of the whole account dearer.
pub const HOT_CHANGES_PER_S: u64 = 10_000;

/// Most legs of one transfer or capture.
pub const LEGS_MAX: usize = 16;

/// Shortest time over which changes per second are counted, in ms.
pub const RATE_MS_MIN: u64 = 1000;

/// Most effects that one segment keeps.
pub const EFFECTS_MAX: usize = 100_000_000;

/// Longest time an effect is kept, in ms: ten years.
pub const EFFECTS_MS_MAX: u64 = 10 * 366 * 24 * 60 * 60 * 1000;

/// Most effects of one segment in one answer.
pub const EFFECTS_PAGE_LEN_MAX: u32 = 2048;

/// Most rounds of a call that others disturb, before it gives up.
pub const ROUNDS_MAX: u32 = 64;

/// How long a call waits for segments that other callers have frozen before that counts as a round, in ms.
pub const BUSY_MS_MAX: u64 = 5000;

/// Most sub-locks that one call reads before it waits for one.
pub const TRIES_MAX: usize = 16;
