//! A lock that is split into sub-locks, and the terms on which they are wanted.

use std::time::Duration;

use ringfence_coordinator::{
    engine::{Engine, SubLockTerms, SubLocks},
    name::{Label, Namespace},
};
use ringfence_segment_lock::{Account, Durability, lock, lock::SegmentedLockError};

use crate::Client;

/// A lock that is split into sub-locks, for your own data that is split into as many rows. Made by
/// [`Client::segmented_lock`]. Keep it, and clone it: it remembers its last segment, and the
/// segments where it met other holders.
pub type SegmentedLock = lock::SegmentedLock<SubLocks>;

/// A segmented lock, and the terms for its sub-locks. Made by [`Client::segmented_lock`].
#[derive(Clone, Debug)]
#[must_use = "nothing is done until it is created or opened"]
pub struct SegmentedLockBuilder<'a> {
    engine: &'a Engine,
    name: &'a str,
    terms: SubLockTerms,
    durability: Durability,
}

impl Client {
    /// The segmented lock called `name`: 1 to 255 bytes. Its sub-locks are locks called `name#0.…`, `name#1.…` and so
    /// on.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence_client::Client;
    ///
    /// let client = Client::builder().embedded(3).build().await?;
    /// let stock = client.segmented_lock("stock/7").create(4).await?;
    ///
    /// // Any free row.
    /// let guard = stock.any().acquire().await?;
    /// println!("row {} of stock, token {}", guard.segment(), guard.token());
    /// guard.release().await;
    ///
    /// // A given row, and all rows.
    /// drop(stock.at(2).acquire().await?);
    /// let all = stock.all().acquire().await?;
    /// assert_eq!(all.segments().len(), 4);
    /// all.release().await;
    ///
    /// // More rows, online.
    /// stock.resize(8).run().await?;
    /// # client.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn segmented_lock<'a>(&'a self, name: &'a str) -> SegmentedLockBuilder<'a> {
        SegmentedLockBuilder {
            engine: &self.engine,
            name,
            terms: SubLockTerms::default(),
            durability: Durability::Memory,
        }
    }
}

impl SegmentedLockBuilder<'_> {
    /// Uses `namespace` instead of `default`.
    pub fn namespace(mut self, namespace: &Namespace) -> Self {
        self.terms.namespace = namespace.clone();
        self
    }

    /// Sets the lease, instead of the topology's longest.
    pub fn lease(mut self, length: Duration) -> Self {
        self.terms.lease = Some(length);
        self
    }

    /// Sets the holder's name shown to others, instead of the client's label.
    pub fn label(mut self, label: &str) -> Self {
        self.terms.label = Some(Label::new(label));
        self
    }

    /// The durability of the record of the number of sub-locks, if it is created here. Default:
    /// memory.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Creates the lock with `segments` sub-locks, 1 to 1,024. If it exists, it stays unchanged.
    ///
    /// # Errors
    ///
    /// The name or the number is out of range, or the record's shard gave no answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it created, or not.
    pub async fn create(self, segments: u32) -> Result<SegmentedLock, SegmentedLockError> {
        let durability = self.durability;
        let lock = self.open()?;
        lock.create(segments, durability).await?;
        Ok(lock)
    }

    /// Opens a lock. Its existence is checked by its first use.
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    pub fn open(self) -> Result<SegmentedLock, SegmentedLockError> {
        let name = Account::new(self.name)?;
        Ok(self.engine.segmented_lock(name, self.terms))
    }
}
