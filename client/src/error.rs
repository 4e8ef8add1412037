//! One error for every call.

use std::{error::Error as _, fmt, time::Duration};

use ringfence_coordinator::{
    engine::{AcquireError, LockLost},
    name::NameError,
    shard::{Effect, ShardError},
    topology::{ResizeError, TopologyError},
};
use ringfence_ring::RingError;
use ringfence_segment_lock::{
    AmountError, CounterError, Failure, ManifestError, NameError as CounterNameError, TermsError,
    impl_failure, lock::SegmentedLockError,
};

use crate::{BuildError, LatchError, MultiLockError, ReshapeError};

/// Any error of a call of this library. The errors of all calls convert into it.
///
/// # Examples
///
/// ```
/// use ringfence_client::{
///     Client, Error, NewShard, Reshape, Weight,
///     counter::{Amount, Terms},
/// };
///
/// async fn run() -> Result<(), Error> {
///     let client = Client::builder().embedded(3).build().await?;
///
///     let guard = client.lock("order/42").acquire().await?;
///     guard.run_while_held(async { println!("ship it") }).await?;
///     guard.release().await;
///
///     let coins = client.counters().create("coins/42", Terms::on_disk(), 4).await?;
///     let gift = client.counters().request("gift-1")?;
///     coins.deposit(&gift, Amount::new(100)?).await?;
///
///     client.multi_lock(["order/1", "order/2"]).acquire().await?.release().await;
///
///     let stock = client.segmented_lock("stock/7").create(4).await?;
///     drop(stock.any().acquire().await?);
///
///     let shard = NewShard::embedded().weight(Weight::new(2)?);
///     client.ring().reshape(Reshape::new().add_shard(shard)).await?.run().await?;
///     client.close().await;
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// if let Err(error) = run().await {
///     println!("{error}; retry: {}", error.is_retryable());
/// #   panic!("{error:?}");
/// }
/// # }
/// ```
///
/// Its `Debug` is a sentence, too, with the causes: a `main` that returns it prints that.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The lock was not granted.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// A set of locks was not granted.
    #[error(transparent)]
    MultiLock(#[from] MultiLockError),
    /// A call on a latch failed.
    #[error(transparent)]
    Latch(#[from] LatchError),
    /// The lock was lost.
    #[error(transparent)]
    LockLost(#[from] LockLost),
    /// A call on a segmented lock failed.
    #[error(transparent)]
    SegmentedLock(#[from] SegmentedLockError),
    /// A call on a counter failed.
    #[error(transparent)]
    Counter(#[from] CounterError),
    /// A shard gave no answer.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The ring was not reshaped.
    #[error(transparent)]
    Reshape(#[from] ReshapeError),
    /// A resize cannot begin, or be aborted.
    #[error(transparent)]
    Resize(#[from] ResizeError),
    /// The topology is unavailable or unusable.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A key, a namespace or a prefix is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The name of an account or of a request is invalid.
    #[error(transparent)]
    CounterName(#[from] CounterNameError),
    /// An amount is invalid.
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// The terms of an account are out of range.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The manifest of an account cannot be changed in this way.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A shard's id or weight is invalid.
    #[error(transparent)]
    Ring(#[from] RingError),
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")?;
        let mut cause = self.source();
        while let Some(source) = cause {
            write!(formatter, ": {source}")?;
            cause = source.source();
        }
        Ok(())
    }
}

impl Error {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        self.failure().is_some_and(Failure::is_retryable)
    }

    /// Whether the call may have taken effect.
    pub fn effect(&self) -> Effect {
        self.failure().map_or(Effect::None, Failure::effect)
    }

    /// The earliest time to try again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.failure().and_then(Failure::retry_after)
    }

    /// The error with its consequences; none for an id or a weight that was refused at once.
    fn failure(&self) -> Option<&dyn Failure> {
        Some(match self {
            Self::Build(error) => error,
            Self::Acquire(error) => error,
            Self::MultiLock(error) => error,
            Self::Latch(error) => error,
            Self::LockLost(error) => error,
            Self::SegmentedLock(error) => error,
            Self::Counter(error) => error,
            Self::Shard(error) => error,
            Self::Reshape(error) => error,
            Self::Resize(error) => error,
            Self::Topology(error) => error,
            Self::Name(error) => error,
            Self::CounterName(error) => error,
            Self::Amount(error) => error,
            Self::Terms(error) => error,
            Self::Manifest(error) => error,
            Self::Ring(_) => return None,
        })
    }
}

impl_failure!(Error, BuildError, MultiLockError, ReshapeError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_fails_prints_a_sentence() {
        let error = Error::from(AcquireError::Closed);
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn adds_nothing_to_its_error() {
        let inner = AcquireError::Grace {
            shard: "a".into(),
            new: false,
            retry_after: Duration::from_micros(1_999_873),
        };
        let outer = Error::from(inner.clone());
        assert_eq!(outer.to_string(), inner.to_string());
        assert_eq!(outer.to_string(), "shard a is recovering: new locks in 2s");
        assert_eq!(outer.retry_after(), inner.retry_after());
        assert!(outer.is_retryable() && outer.effect() == Effect::None);
        assert!(outer.source().is_none());

        let lost = Error::from(LockLost);
        assert_eq!(lost.effect(), Effect::Unknown);

        let refused = ReshapeError::Topology(TopologyError::Unreachable {
            address: "h:1".into(),
            reason: "refused".into(),
        });
        let error = Error::from(refused);
        assert!(error.is_retryable() && error.effect() == Effect::Unknown);
    }
}
