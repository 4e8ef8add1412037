//! Heads as text at a shard: of accounts, and of segmented locks.

use async_trait::async_trait;
use ringfence_segment_lock::{
    Account, Durability, Head, HeadError, Heads, StorageError, VersionedHead, lock::Split,
};

use super::{CounterFault, Stored};
use crate::shard::{CounterOp, CounterReply};

/// A value that is stored as a head.
trait Text: Sized + Send + 'static {
    /// The name under which the head of `name` is stored.
    fn stored_as(name: &Account) -> String;
    fn encode(&self) -> String;
    fn decode(text: &str) -> Result<Self, HeadError>;
    fn durability(&self) -> Durability;
}

impl Text for Head {
    fn stored_as(name: &Account) -> String {
        name.to_string()
    }

    fn encode(&self) -> String {
        Self::encode(self)
    }

    fn decode(text: &str) -> Result<Self, HeadError> {
        Self::decode(text)
    }

    fn durability(&self) -> Durability {
        self.terms().durability
    }
}

impl Text for Split {
    /// An account may have that name: then neither can read the other's head, and gets an error.
    fn stored_as(name: &Account) -> String {
        format!("{name}#locks")
    }

    fn encode(&self) -> String {
        Self::encode(self)
    }

    fn decode(text: &str) -> Result<Self, HeadError> {
        Self::decode(text)
    }

    fn durability(&self) -> Durability {
        Self::durability(self)
    }
}

#[async_trait]
impl<H: Text> Heads<H> for Stored {
    async fn read(&self, name: &Account) -> Result<Option<VersionedHead<H>>, StorageError> {
        let (version, text, in_doubt) = match self.head::<H>(name, CounterOp::ReadHead).await? {
            CounterReply::Head(None) => return Ok(None),
            CounterReply::Head(Some((version, text))) => (version, text, false),
            CounterReply::HeadInDoubt(version, text) => (version, text, true),
            reply => return Err(CounterFault::unexpected("a head's reading", &reply).into()),
        };
        let head = H::decode(&text).map_err(CounterFault::from)?;
        Ok(Some(VersionedHead {
            version,
            head,
            in_doubt,
        }))
    }

    async fn swap(&self, name: &Account, expected: u64, head: H) -> Result<bool, StorageError> {
        let op = CounterOp::SwapHead {
            expected,
            head: head.encode(),
            durability: head.durability(),
        };
        match self.head::<H>(name, op).await? {
            CounterReply::Swapped(swapped) => Ok(swapped),
            reply => Err(CounterFault::unexpected("a head's change", &reply).into()),
        }
    }
}

impl Stored {
    async fn head<H: Text>(
        &self,
        name: &Account,
        op: CounterOp,
    ) -> Result<CounterReply, StorageError> {
        let key = self.key(&H::stored_as(name)).map_err(CounterFault::from)?;
        self.engine.0.ask_counter(&key, &op).await
    }
}
