//! Manifests as text at a shard: of accounts, and of segmented locks.

use async_trait::async_trait;
use ringfence_segment_lock::{
    Account, Durability, Manifest, ManifestError, Manifests, StorageError, VersionedManifest,
    lock::Split,
};

use super::{CounterFault, Stored};
use crate::shard::{CounterOp, CounterReply};

/// A value that is stored as a manifest.
trait Text: Sized + Send + 'static {
    /// The name under which the manifest of `name` is stored.
    fn stored_as(name: &Account) -> String;
    fn encode(&self) -> String;
    fn decode(text: &str) -> Result<Self, ManifestError>;
    fn durability(&self) -> Durability;
}

impl Text for Manifest {
    fn stored_as(name: &Account) -> String {
        name.to_string()
    }

    fn encode(&self) -> String {
        Self::encode(self)
    }

    fn decode(text: &str) -> Result<Self, ManifestError> {
        Self::decode(text)
    }

    fn durability(&self) -> Durability {
        self.terms().durability
    }
}

impl Text for Split {
    /// An account may have that name: then neither can read the other's manifest, and gets an error.
    fn stored_as(name: &Account) -> String {
        format!("{name}#locks")
    }

    fn encode(&self) -> String {
        Self::encode(self)
    }

    fn decode(text: &str) -> Result<Self, ManifestError> {
        Self::decode(text)
    }

    fn durability(&self) -> Durability {
        Self::durability(self)
    }
}

#[async_trait]
impl<H: Text> Manifests<H> for Stored {
    async fn read(&self, name: &Account) -> Result<Option<VersionedManifest<H>>, StorageError> {
        let (version, text, in_doubt) = match self
            .manifest::<H>(name, CounterOp::ReadManifest)
            .await?
        {
            CounterReply::Manifest(None) => return Ok(None),
            CounterReply::Manifest(Some((version, text))) => (version, text, false),
            CounterReply::ManifestInDoubt(version, text) => (version, text, true),
            reply => return Err(CounterFault::unexpected("a manifest's reading", &reply).into()),
        };
        let manifest = H::decode(&text).map_err(CounterFault::from)?;
        Ok(Some(VersionedManifest {
            version,
            manifest,
            in_doubt,
        }))
    }

    async fn swap(&self, name: &Account, expected: u64, manifest: H) -> Result<bool, StorageError> {
        let op = CounterOp::SwapManifest {
            expected,
            manifest: manifest.encode(),
            durability: manifest.durability(),
        };
        match self.manifest::<H>(name, op).await? {
            CounterReply::Swapped(swapped) => Ok(swapped),
            reply => Err(CounterFault::unexpected("a manifest's change", &reply).into()),
        }
    }
}

impl Stored {
    async fn manifest<H: Text>(
        &self,
        name: &Account,
        op: CounterOp,
    ) -> Result<CounterReply, StorageError> {
        let key = self.key(&H::stored_as(name)).map_err(CounterFault::from)?;
        self.engine.0.ask_counter(&key, &op).await
    }
}
