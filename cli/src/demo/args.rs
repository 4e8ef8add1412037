//! What can be asked for.

use std::{ops::RangeInclusive, time::Duration};

/// A run is this long: a shorter one shows nothing, a longer one's journal is large.
const LENGTH: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);

/// Skews that mean something: 0 is none at all, at 5 one account is asked for 96 times in 100.
const SKEW: RangeInclusive<f64> = 0.0..=5.0;

/// Deduct coins from accounts under locks, and audit every one
///
/// Workers draw accounts, a few of them all the time, most hardly ever. Each takes the account's
/// lock, reads the balance, subtracts, writes the result with the lock's fencing token, and gives
/// the lock back. At the end every balance is recomputed from the bank's journal. Exit code 1 if
/// one coin is missing.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Shards in this process
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = shards)]
    pub(super) shards: usize,
    /// Lock on these servers, and keep the coins there: redis://[user:password@]host[:port][/db].
    /// They need a topology: ringfence ring init
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    #[arg(conflicts_with = "shards")]
    pub(super) redis: Vec<String>,
    /// Lock on so many Redis servers, started for this run and ended with it, and keep the coins there
    #[arg(long, value_name = "N", conflicts_with_all = ["shards", "redis"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) spawn_redis: Option<u32>,
    /// How many deduct at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) workers: u32,
    /// How many accounts there are
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) accounts: u32,
    /// Coins in each account at first
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(i64).range(0..=1_000_000_000_000))]
    pub(super) coins: i64,
    /// How much more often some accounts are drawn than others: the exponent of a Zipf
    /// distribution, 0 to 5
    #[arg(long, value_name = "S", default_value_t = 0.9, value_parser = skew)]
    pub(super) skew: f64,
    /// How long to go on: 100ms to 10m
    #[arg(long = "for", value_name = "LENGTH", default_value = "8s", value_parser = length)]
    pub(super) length: Duration,
    /// Resize the ring meanwhile: a shard joins, and leaves again. The run lasts until both resizes are
    /// over, about 20 s, even if --for is shorter: slots move 512 at a time, and the locks in them follow
    /// with their next renewal, every second. Exit code 1, too, if a resize does not finish or moves a
    /// slot without need, or if one of 1,000 more locks, held throughout, is lost or granted twice
    #[arg(long, conflicts_with = "redis")]
    pub(super) resize: bool,
    /// Take from one account alone, under a lock, then from counters of more and more segments, --for
    /// divided among them. Says whether more segments can be faster there: only where one shard is at its
    /// limit and others have idle cores
    #[arg(long)]
    #[arg(conflicts_with_all = ["redis", "resize", "unsafe_no_lock", "accounts", "skew", "coins"])]
    pub(super) hot: bool,
    /// How many segments, one or more numbers
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',', default_values_t = [1, 4, 16])]
    #[arg(requires = "hot", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(super) segments: Vec<u32>,
    /// Simulate: with shards in this process, network and time too follow from the seed, and the
    /// same seed reports the same to the byte. With Redis it only seeds which accounts are drawn,
    /// and nothing repeats itself
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Lock a key per worker instead of the account's: the same steps at the same pace, but two workers can
    /// take from one account at once. See the audit fail
    #[arg(long)]
    pub(super) unsafe_no_lock: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// Which time a run takes place in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// Everybody's.
    Real,
    /// One that passes only where somebody waits.
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
    /// Simulated, if there is a seed and nothing outside this process.
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
    let length = crate::length(text)?;
    if LENGTH.contains(&length) {
        Ok(length)
    } else {
        Err("100ms to 10m".into())
    }
}
