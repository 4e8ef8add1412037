//! A lock that is split in sub-locks, and how they are wanted.

use std::time::Duration;

use ringfence_coordinator::{
    engine::{Engine, SubLockTerms, SubLocks},
    name::{Label, Namespace},
};
use ringfence_segment_lock::{Account, Durability, lock, lock::SegmentedLockError};

use crate::Client;

/// A lock that is split in sub-locks: for data of one's own that is split in as many rows. Made by
/// [`Client::segmented_lock`]. Keep it, and clone it: it knows where it was last, and where others were met.
pub type SegmentedLock = lock::SegmentedLock<SubLocks>;

/// A segmented lock, and how its sub-locks are wanted. Made by [`Client::segmented_lock`].
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
    /// // Whichever row is free.
    /// let guard = stock.any().acquire().await?;
    /// println!("row {} of stock, token {}", guard.segment(), guard.token());
    /// guard.release().await;
    ///
    /// // A given one, and all.
    /// drop(stock.at(2).acquire().await?);
    /// let all = stock.all().acquire().await?;
    /// assert_eq!(all.segments().len(), 4);
    /// all.release().await;
    ///
    /// // More of them, while all goes on.
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
            durability: Durability::default(),
        }
    }
}

impl SegmentedLockBuilder<'_> {
    /// In `namespace` instead of `default`.
    pub fn namespace(mut self, namespace: &Namespace) -> Self {
        self.terms.namespace = namespace.clone();
        self
    }

    /// With leases of `length`, instead of the topology's longest.
    pub fn lease(mut self, length: Duration) -> Self {
        self.terms.lease = Some(length);
        self
    }

    /// Held as `label`, instead of as the client is.
    pub fn label(mut self, label: &str) -> Self {
        self.terms.label = Some(Label::new(label));
        self
    }

    /// What the record of how many sub-locks there are is to survive, where it is created; memory, if not said.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Creates it with so many sub-locks, 1 to 1,024, if it does not exist; if it does, it is left as it is.
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

    /// One that exists, or will be found not to.
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    pub fn open(self) -> Result<SegmentedLock, SegmentedLockError> {
        let name = Account::new(self.name)?;
        Ok(self.engine.segmented_lock(name, self.terms))
    }
}
