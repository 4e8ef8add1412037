//! Every limit of this crate.

/// Greatest amount, and the most one segment may own, held money included: it is an `i64` in every
/// language, and in Redis.
pub const AMOUNT_MAX: i64 = i64::MAX;

/// Longest name of a request, in bytes. It is kept for as long as the request's answer.
pub const REQUEST_NAME_LEN_MAX: usize = 128;

/// Longest name of an account, in bytes.
pub const ACCOUNT_NAME_LEN_MAX: usize = 255;

/// Most segments of one account: every read of the whole account asks all of them.
pub const SEGMENTS_MAX: u32 = 1024;

/// Most places tried for one segment. Where a shard has a ten-thousandth of the slots, one in ten
/// thousand will do.
pub const PLACES_MAX: u32 = 1 << 20;

/// Most layouts an account has had: how often it may be resegmented. None is ever forgotten, since
/// an old request's home is where it was.
pub const LAYOUTS_MAX: usize = 256;

/// Longest freeze, in ms. It is a courtesy, and a process that crashed must not be courteous long.
pub const FREEZE_MS_MAX: u64 = 1000;

/// Most reservations that one request expires beside its own work.
pub const EXPIRED_PER_CALL_MAX: usize = 16;

/// Most entries that one purge drops: a fraction of a millisecond's work, for which others wait.
pub const PURGED_PER_CALL_MAX: usize = 256;

/// Most entries older than `idempotency_for` that a new request drops beside its own work: more than
/// the one that it adds.
pub const PURGED_PER_REQUEST_MAX: usize = 2;

/// Most unfinished transfers in one answer.
pub const PAGE_LEN_MAX: usize = 100;

/// Longest time an answer is remembered, in ms: 30 days.
pub const IDEMPOTENCY_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;

/// Most replicas that an account may ask for.
pub const REPLICAS_MAX: u8 = 8;

/// Furthest a request may come from a segment's future, in ms: one hour.
pub const SKEW_MS_MAX: u64 = 60 * 60 * 1000;

/// Most answers one segment remembers.
pub const IDS_MAX: usize = 10_000_000;

/// How often a call starts anew because others changed what it read, before it gives up.
pub const ROUNDS_MAX: u32 = 64;

/// How long a call waits for segments that others have frozen before that counts as a round, in ms.
pub const BUSY_MS_MAX: u64 = 5000;

/// Most sub-locks that one call reads before it waits for one.
pub const TRIES_MAX: usize = 16;
