//! The arguments of the demo.

use std::{ops::RangeInclusive, time::Duration};

use crate::arguments::{self, list};

/// Bounds of the duration: a shorter run shows nothing, a longer one's journal is large.
const LENGTH: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);

/// Bounds of the skew: 0 is uniform; at 5, one account gets 96 of 100 requests.
const SKEW: RangeInclusive<f64> = 0.0..=5.0;

/// Deduct coins from accounts under locks, and audit every one
///
/// Workers draw accounts: a few very often, most of them rarely. Each worker acquires the account's
/// lock, reads the balance, subtracts, writes the result with the fencing token, and releases the
/// lock. At the end every balance is recomputed from the bank's journal. Exit code 1 if a coin is
/// missing.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Number of shards in this process, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = shards)]
    pub(super) shards: usize,
    /// Lock on these servers, and keep the coins there: redis://[user:password@]host[:port][/db].
    /// They need a topology: ringfence ring init
    #[arg(long, value_name = "URL")]
    #[arg(conflicts_with = "shards")]
    pub(super) redis: Vec<String>,
    /// Start N Redis servers for this run, 1 to 16, lock on them, and keep the coins there
    #[arg(long, value_name = "N", conflicts_with_all = ["shards", "redis"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) spawn_redis: Option<u32>,
    /// Number of concurrent workers, 1 to 4096
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) workers: u32,
    /// Number of accounts, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) accounts: u32,
    /// Initial number of coins in each account
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(i64).range(0..=1_000_000_000_000))]
    pub(super) coins: i64,
    /// Skew of the draw: the exponent of a Zipf distribution, 0 to 5; 0: uniform
    #[arg(long, value_name = "S", default_value_t = 0.9, value_parser = skew)]
    pub(super) skew: f64,
    /// Duration of the run: 100ms to 10m
    #[arg(long = "for", value_name = "LENGTH", default_value = "8s", value_parser = length)]
    pub(super) length: Duration,
    /// Resize the ring meanwhile: a shard joins, and leaves again. The run lasts until both resizes
    /// are over, about 20 s, even if --for is shorter: slots move 512 at a time, and their locks
    /// follow with the next renewal, every second. Exit code 1 also if a resize does not finish or
    /// moves a slot unnecessarily, or if one of 1,000 more locks, held throughout, is lost or
    /// granted twice
    #[arg(long, conflicts_with = "redis")]
    pub(super) resize: bool,
    /// Deduct from one account only: first under a lock, then from counters with more and more
    /// segments; --for is divided among them. Tells whether more segments can be faster on this
    /// machine: only if one shard is at its limit and others have idle cores
    #[arg(long)]
    #[arg(conflicts_with_all = ["redis", "resize", "unsafe_no_lock", "accounts", "skew", "coins"])]
    pub(super) hot: bool,
    /// Numbers of segments for --hot, 1 to 1024 each
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 4, 16])]
    #[arg(requires = "hot", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) segments: Vec<u32>,
    /// Seed of the draws. With shards in this process, network and time are simulated from the seed
    /// as well: the same seed prints the same report, byte for byte. With Redis, runs are not
    /// repeatable
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Lock one key per worker instead of the account's key: the same steps at the same pace, but
    /// two workers can deduct from one account at once, and the audit fails
    #[arg(long)]
    pub(super) unsafe_no_lock: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// The clock of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The real clock.
    Real,
    /// A clock that advances only while all tasks wait.
    Simulated,
}

impl Time {
    /// Its name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Simulated => "simulated",
        }
    }
}

impl Args {
    /// The URLs of the servers to lock on.
    pub(super) fn servers(&self) -> Vec<String> {
        self.redis.iter().flat_map(|urls| list(urls)).collect()
    }

    /// Simulated, if there is a seed and everything is inside this process.
    pub(super) fn time(&self) -> Time {
        let embedded = self.redis.is_empty() && self.spawn_redis.is_none();
        if self.seed.is_some() && embedded {
            Time::Simulated
        } else {
            Time::Real
        }
    }
}

fn shards(text: &str) -> Result<usize, String> {
    let shards = text.parse().map_err(|error| format!("{error}"))?;
    if (1..=64).contains(&shards) {
        Ok(shards)
    } else {
        Err("1 to 64".into())
    }
}

fn skew(text: &str) -> Result<f64, String> {
    let skew = text.parse().map_err(|error| format!("{error}"))?;
    if SKEW.contains(&skew) {
        Ok(skew)
    } else {
        Err("0 to 5".into())
    }
}

fn length(text: &str) -> Result<Duration, String> {
    let length = arguments::length(text)?;
    if LENGTH.contains(&length) {
        Ok(length)
    } else {
        Err("100ms to 10m".into())
    }
}
