//! A countdown latch: closed until as many distinct requests as were set have counted it down.
//!
//! At the shards, it is an account of one segment. Its count is a term of the account, `ids_max`: it never changes,
//! and the account remembers that many requests. To count down is to deposit 1. So a latch that is set has no
//! step that a crash could leave undone, and a repeated request counts once. Coordinators have latches of that kind for
//! processes that reach no shard.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_coordinator::{name::Namespace, shard::Effect};
use ringfence_segment_lock::{
    Account, Amount, Counter, CounterError, Durability, RequestId, Terms, impl_failure,
    limits::IDS_MAX, segment::Refusal,
};
use tokio::time::{Instant, sleep_until, timeout};

use crate::Client;

/// The namespace of the accounts that latches use.
const NAMESPACE: &str = "latch";

/// How often a client reads a latch that it waits for, however many tasks wait.
const READ_EVERY: Duration = Duration::from_millis(200);

/// A countdown latch. Made by [`Client::latch`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Latch {
    client: Client,
    shared: Arc<Shared>,
}

/// The latches that a client has at present.
pub(crate) type Latches = Arc<Mutex<HashMap<Account, Weak<Shared>>>>;

/// Shared by all handles of a latch in a client.
#[derive(Debug)]
pub(crate) struct Shared {
    name: Account,
    at: At,
    reading: tokio::sync::Mutex<Reading>,
}

/// Where it is.
#[derive(Debug)]
enum At {
    Shards {
        counter: Counter,
        /// Known once it is set.
        count: OnceLock<u64>,
    },
    #[cfg(feature = "service")]
    Service(crate::service::RemoteLatch),
}

/// The last read, for all tasks that wait.
#[derive(Debug)]
struct Reading {
    next: Instant,
    is_open: bool,
}

/// The reason why a call on a latch failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LatchError {
    /// The count is out of range.
    #[error("count is {0}, must be 1 to {IDS_MAX}")]
    Count(u64),
    /// The latch was set to another count or durability.
    #[error("latch {0} is set already, to another count or durability")]
    AlreadySet(Account),
    /// The latch was not set.
    #[error("latch {0} is not set")]
    NotSet(Account),
    /// In a failure beyond its durability, the latch may have lost counts before it was open.
    #[error("latch {0} may have lost counts: set another one, with another name")]
    Lost(Account),
    /// The wait is over.
    #[error("latch {latch} did not open within {waited:?}")]
    TimedOut {
        /// The latch.
        latch: Account,
        /// The requested length of the wait.
        waited: Duration,
    },
    /// The account behind it refused, or gave no answer.
    #[error(transparent)]
    Counter(CounterError),
}

impl From<CounterError> for LatchError {
    fn from(error: CounterError) -> Self {
        match error {
            CounterError::NoAccount { account } => Self::NotSet(account),
            CounterError::AccountExists { account } => Self::AlreadySet(account),
            CounterError::Lost { account, .. } => Self::Lost(account),
            error => Self::Counter(error),
        }
    }
}

impl LatchError {
    /// Whether the same call may succeed if it is repeated.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Counter(error) => error.is_retryable(),
            Self::NotSet(_) | Self::TimedOut { .. } => true,
            Self::Count(_) | Self::AlreadySet(_) | Self::Lost(_) => false,
        }
    }

    /// Whether the call may have taken effect.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Counter(error) => error.effect(),
            Self::Lost(_) => Effect::Unknown,
            _ => Effect::None,
        }
    }

    /// The earliest time for another attempt, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Counter(error) => error.retry_after(),
            _ => None,
        }
    }
}

impl_failure!(LatchError);

impl Client {
    /// The latch called `name`: 1 to 255 bytes. A latch is used once: it never closes again.
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence_client::{Client, counter::Durability};
    ///
    /// let client = Client::builder().embedded(3).build().await?;
    /// let latch = client.latch("import/2026-11-25")?;
    /// latch.set(2, Durability::Memory).await?;
    /// for part in ["part-1", "part-2"] {
    ///     let done = client.counters().request(part)?;
    ///     latch.count_down(&done).await?;
    ///     latch.count_down(&done).await?; // a repeat counts once
    /// }
    /// latch.opened().await?;
    /// # client.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn latch(&self, name: &str) -> Result<Latch, LatchError> {
        let name = Account::new(name).map_err(CounterError::from)?;
        let mut latches = self.latches.lock();
        let known = latches.get(&name).and_then(Weak::upgrade);
        let shared = known.unwrap_or_else(|| {
            latches.retain(|_, latch| latch.strong_count() > 0);
            let shared = Arc::new(Shared {
                name: name.clone(),
                at: self.latch_at(&name),
                reading: tokio::sync::Mutex::new(Reading {
                    next: Instant::now(),
                    is_open: false,
                }),
            });
            latches.insert(name, Arc::downgrade(&shared));
            shared
        });
        Ok(Latch {
            client: self.clone(),
            shared,
        })
    }

    fn latch_at(&self, name: &Account) -> At {
        #[cfg(feature = "service")]
        if let Some(reach) = &self.reach {
            return At::Service(crate::service::RemoteLatch {
                reach: reach.clone(),
                name: name.clone(),
            });
        }
        let namespace = Namespace::new(NAMESPACE).expect("a valid name");
        At::Shards {
            counter: Counter::open(self.engine.counters(&namespace), name.clone()),
            count: OnceLock::new(),
        }
    }
}

impl Latch {
    /// Sets it, closed, to `count`. To set it again to the same count and durability is no error,
    /// and changes nothing. In a failure beyond `durability`, counts may be lost: then it is
    /// [lost](LatchError::Lost), or not set. It never opens too early.
    ///
    /// # Errors
    ///
    /// [`LatchError::Count`], [`LatchError::AlreadySet`], or its shard gave no answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it set, or not.
    pub async fn set(&self, count: u64, durability: Durability) -> Result<(), LatchError> {
        let ids_max = usize::try_from(count).ok();
        let ids_max = ids_max.filter(|count| (1..=IDS_MAX).contains(count));
        let ids_max = ids_max.ok_or(LatchError::Count(count))?;
        #[cfg(feature = "service")]
        if let At::Service(latch) = &self.shared.at {
            return latch.set(count, durability).await;
        }
        let terms = Terms::new(durability);
        let terms = Terms {
            ids_max,
            // A request is never forgotten earlier to make room.
            idempotency_at_least_ms: terms.idempotency_for_ms,
            effects_max: 0,
            ..terms
        };
        let counters = self.client.counters_of(NAMESPACE).expect("a valid name");
        counters.create(self.name().as_str(), terms, 1).await?;
        Ok(())
    }

    /// Counts down by one, once per `request`: a repeat has no second effect. Use
    /// [`Counters::request`](crate::Counters::request), and repeat a request for at most 24 hours.
    /// Counting down an open latch has no effect.
    ///
    /// # Errors
    ///
    /// [`LatchError::NotSet`], [`LatchError::Lost`], or its shard gave no answer: repeat it with the same request.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it counted, or not: repeat it with the same request.
    pub async fn count_down(&self, request: &RequestId) -> Result<(), LatchError> {
        let counter = match &self.shared.at {
            At::Shards { counter, .. } => counter,
            #[cfg(feature = "service")]
            At::Service(latch) => return latch.count_down(request).await,
        };
        let one = Amount::new(1).expect("a valid amount");
        match counter.deposit(request, one).await {
            // As many others were counted as there may be.
            Ok(_) | Err(CounterError::Refused(Refusal::TooManyIds { .. })) => Ok(()),
            // A latch that is made anew after a loss says that of every earlier request.
            Err(
                error @ CounterError::Refused(Refusal::TooOld { .. } | Refusal::IdExpired { .. }),
            ) => match self.remaining().await? {
                0 => Ok(()),
                _ => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// How often it is still to be counted down; 0 if it is open.
    ///
    /// # Errors
    ///
    /// [`LatchError::NotSet`], [`LatchError::Lost`], or its shard gave no answer.
    pub async fn remaining(&self) -> Result<u64, LatchError> {
        let (counter, count) = match &self.shared.at {
            At::Shards { counter, count } => (counter, count),
            #[cfg(feature = "service")]
            At::Service(latch) => return latch.remaining().await,
        };
        let count = match count.get() {
            Some(count) => *count,
            None => {
                let set_to = counter.read_manifest().await?.terms().ids_max as u64;
                *count.get_or_init(|| set_to)
            }
        };
        let balance = counter.balance().await?;
        let counted = u64::try_from(balance.available).unwrap_or_default();
        let remaining = count.saturating_sub(counted);
        // The counts that are left are enough to open it, if none remains.
        if balance.lost > 0 || balance.losses > 0 && remaining > 0 {
            return Err(LatchError::Lost(self.name().clone()));
        }
        Ok(remaining)
    }

    /// Waits until it is open: within a second of the last count. It may be set meanwhile.
    ///
    /// All tasks of a client that wait for a latch share one request per 200 ms, or one call to a coordinator.
    ///
    /// # Errors
    ///
    /// [`LatchError::Lost`], or its account cannot be read. Errors that may pass are waited out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn opened(&self) -> Result<(), LatchError> {
        loop {
            let mut reading = self.shared.reading.lock().await;
            if !reading.is_open && Instant::now() >= reading.next {
                // Before the read, so that one that fails or is dropped counts too.
                reading.next = Instant::now() + READ_EVERY;
                match self.is_open().await {
                    Ok(is_open) => reading.is_open = is_open,
                    Err(error) if error.is_retryable() => {}
                    Err(error) => return Err(error),
                }
            }
            if reading.is_open {
                return Ok(());
            }
            let next = reading.next;
            drop(reading);
            sleep_until(next).await;
        }
    }

    /// Whether it is open: now at the shards, or after a wait at a coordinator.
    async fn is_open(&self) -> Result<bool, LatchError> {
        #[cfg(feature = "service")]
        if let At::Service(latch) = &self.shared.at {
            return latch.is_opened().await;
        }
        Ok(self.remaining().await? == 0)
    }

    /// As [`opened`](Self::opened), for at most `length`.
    ///
    /// # Errors
    ///
    /// As for [`opened`](Self::opened); and [`LatchError::TimedOut`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn opened_within(&self, length: Duration) -> Result<(), LatchError> {
        timeout(length, self.opened()).await.unwrap_or_else(|_| {
            Err(LatchError::TimedOut {
                latch: self.name().clone(),
                waited: length,
            })
        })
    }

    /// Its name.
    pub fn name(&self) -> &Account {
        &self.shared.name
    }
}
